"""Looking back: what ended, merged with what the schedules' items still hold."""

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final

from duetick.domain.schedule import Occurrence
from duetick.domain.states import LEASED, WAITING, State
from duetick.stores.dynamodb.entities import Entities
from duetick.stores.dynamodb.items import Entity, item_key, name_of, read
from duetick.stores.dynamodb.journal import Journal
from duetick.stores.dynamodb.occurrences import (
    Entry,
    history_key,
    history_partition,
    history_sort,
    read_history,
    slot,
    text,
)
from duetick.stores.dynamodb.schema import ATTENTION
from duetick.stores.dynamodb.table import Item, key_of

FAR: Final = 10**15
"""Later than any nominal time."""


class History:
    """The items are always read before the history: what leaves one is by then in the other."""

    def __init__(self, entities: Entities, journal: Journal) -> None:
        self._entities = entities
        self._journal = journal

    def get(self, user_id: str, key: str, nominal_at: int, origin: str) -> Entry | None:
        """One occurrence, wherever it stands."""
        held = self._entities.load(user_id, key).open.get(slot(nominal_at, origin))
        if held:
            return held
        item = self._entities.table.get(history_key(user_id, key, nominal_at, origin))
        return read_history(item) if item else None

    def ended(self, occurrence: Occurrence) -> Occurrence | None:
        """The same, where it has left its schedule's item."""
        item = self._entities.table.get(history_key(*occurrence.identity))
        return read_history(item).occurrence if item else None

    def find(
        self,
        user_id: str | None,
        key: str | None,
        state: State | None,
        limit: int,
        before: int | None,
    ) -> Sequence[Occurrence]:
        """See `Ledger.find`."""
        until = FAR if before is None else before
        if user_id is None:
            found = self._dead(limit, until) if state in (None, State.DEAD) else self._under_way()
        elif key is None:
            found = self._of_user(user_id, state, limit, until)
        else:
            found = self._of_schedule(self._entities.load(user_id, key), state, limit, until)
        wanted = [held for held in found if _wanted(held, state, until, user_id is None)]
        return sorted(_once(wanted), key=_newest_first)[:limit]

    def _of_schedule(
        self, entity: Entity, state: State | None, limit: int, before: int
    ) -> list[Occurrence]:
        held = [entry.occurrence for entry in entity.open.values()]
        if state in WAITING | LEASED:
            return held
        past = self._entities.table.query(
            "p = :p AND s < :s",
            {
                ":p": text(history_partition(entity.user_id, entity.key)),
                ":s": text(history_sort(before)),
            },
            forward=False,
            page=limit,
        )
        ended = (read_history(item).occurrence for item in past)
        wanted = (one for one in ended if state in (None, one.state))
        return held + list(islice(wanted, limit))

    def _of_user(
        self, user_id: str, state: State | None, limit: int, before: int
    ) -> list[Occurrence]:
        """A user's schedules are few; those deleted not long ago are among them."""
        partition, _ = item_key(user_id, "")
        items = self._entities.table.query("p = :p", {":p": text(partition)})
        found: list[Occurrence] = []
        for entity in [read(item) for item in items]:
            found += self._of_schedule(entity, state, limit, before)
        return found

    def _dead(self, limit: int, before: int) -> list[Occurrence]:
        """Those that schedules' items still hold, poisoned ones among them, and those that left."""
        held = [*self._attention("open"), *self._attention("poisoned")]
        entities = self._entities.load_many([name_of(item) for item in held])
        found = [e.occurrence for entity in entities.values() for e in entity.open.values()]
        left = islice(self._attention("dead", before), limit)
        items = self._entities.table.get_many([key_of(item) for item in left])
        return found + [read_history(item).occurrence for item in items.values()]

    def _attention(self, kind: str, before: int = FAR) -> Iterator[Item]:
        return self._entities.table.query(
            "att = :a AND aat < :b",
            {":a": text(kind), ":b": {"N": str(before)}},
            index=ATTENTION,
            forward=False,
        )

    def _under_way(self) -> list[Occurrence]:
        """Every occurrence under way is covered by a note."""
        names = [(line.user_id, line.key) for note in self._journal.all() for line in note.lines]
        entities = self._entities.load_many(names)
        return [e.occurrence for entity in entities.values() for e in entity.under_way]


def _wanted(held: Occurrence, state: State | None, before: int, only_dead: bool) -> bool:
    if state is None and only_dead:
        state = State.DEAD
    return held.nominal_at < before and state in (None, held.state)


def _once(found: Sequence[Occurrence]) -> Sequence[Occurrence]:
    """What a schedule's item holds comes first, and counts."""
    by_name: dict[tuple[str, str, int, str], Occurrence] = {}
    for held in found:
        by_name.setdefault(held.identity, held)
    return list(by_name.values())


def _newest_first(held: Occurrence) -> tuple[int, str, str, str]:
    return -held.nominal_at, held.user_id, held.key, held.origin

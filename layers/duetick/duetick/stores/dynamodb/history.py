"""Looking back: what ended, merged with what the schedules' items still hold."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final

from duetick.domain.attempts import accounted
from duetick.domain.identity import SCHEDULE_ORIGIN
from duetick.domain.schedule import LATEST, Identity, Occurrence
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
from duetick.stores.paging import check_findable, newest_first, place_of

AT_ONCE: Final = 500


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

    def standing(self, entity: Entity, asked: Occurrence) -> Occurrence | None:
        """What stands for an occurrence that its schedule's item does not hold by its name."""
        if asked.fence or asked.origin != SCHEDULE_ORIGIN:
            return self.ended(asked)
        held = (entry.occurrence for entry in entity.open.values())
        own = [one for one in held if one.origin == SCHEDULE_ORIGIN]
        up_to = [one for one in own if one.nominal_at <= asked.nominal_at]
        left = (read_history(item).occurrence for item in self._back_from(asked))
        up_to += islice((one for one in left if one.origin == SCHEDULE_ORIGIN), 1)
        newest = max(up_to, key=lambda one: one.nominal_at, default=None)
        return accounted(newest, asked)

    def _back_from(self, asked: Occurrence) -> Iterator[Item]:
        partition, sort = history_key(*asked.identity)
        return self._entities.table.query(
            "p = :p AND s <= :s", {":p": text(partition), ":s": text(sort)}, forward=False, page=5
        )

    def find(
        self,
        user_id: str | None,
        key: str | None,
        state: State | None,
        limit: int,
        before: int | Identity | None,
    ) -> Sequence[Occurrence]:
        """See `Ledger.find`."""
        check_findable(user_id, key, state)
        page = Page(place_of(before), state, limit)
        if user_id is None:
            found = self._dead(page) if state is State.DEAD else self._under_way(page)
        elif key is None:
            found = self._of_user(user_id, page)
        else:
            found = self._of_schedule(self._entities.load(user_id, key), page)
        return page.of(found)

    def _of_schedule(self, entity: Entity, page: "Page") -> list[Occurrence]:
        held = [entry.occurrence for entry in entity.open.values()]
        if page.state in WAITING | LEASED:
            return held
        past = self._entities.table.query(
            "p = :p AND s < :s",
            {
                ":p": text(history_partition(entity.user_id, entity.key)),
                ":s": text(history_sort(page.until)),
            },
            forward=False,
            page=page.limit,
        )
        ended = (read_history(item).occurrence for item in past)
        return held + page.read(ended)

    def _of_user(self, user_id: str, page: "Page") -> list[Occurrence]:
        """A user's schedules are few; those deleted not long ago are among them."""
        partition, _ = item_key(user_id, "")
        items = self._entities.table.query("p = :p", {":p": text(partition)})
        found: list[Occurrence] = []
        for entity in [read(item) for item in items]:
            found += self._of_schedule(entity, page)
        return found

    def _dead(self, page: "Page") -> list[Occurrence]:
        """Those that schedules' items still hold, poisoned ones among them, and those that left."""
        held = [*self._held("open", page), *self._held("poisoned", page)]
        return held + page.read(self._left(page))

    def _held(self, kind: str, page: "Page") -> list[Occurrence]:
        """An item stands at the newest of its dead: none of those after it holds a newer one."""
        found: list[Occurrence] = []
        items = self._attention(kind)
        while chunk := list(islice(items, page.limit)):
            entities = self._entities.load_many([name_of(item) for item in chunk])
            every = (e.occurrence for entity in entities.values() for e in entity.open.values())
            found += filter(page.wants, every)
            reached = int(chunk[-1]["aat"]["N"])
            if sum(one.nominal_at > reached for one in found) >= page.limit:
                break
        return found

    def _left(self, page: "Page") -> Iterator[Occurrence]:
        """The dead of the history, the newest first."""
        found = self._attention("dead", page.until)
        while keys := [key_of(item) for item in islice(found, page.limit)]:
            items = self._entities.table.get_many(keys)
            yield from sorted(
                (read_history(item).occurrence for item in items.values()), key=_order
            )

    def _attention(self, kind: str, before: int = LATEST) -> Iterator[Item]:
        return self._entities.table.query(
            "att = :a AND aat < :b",
            {":a": text(kind), ":b": {"N": str(before)}},
            index=ATTENTION,
            forward=False,
        )

    def _under_way(self, page: "Page") -> Sequence[Occurrence]:
        """Every occurrence under way is covered by a note; what waits is among them.

        A note says when to look at a schedule, not why: one line covers all of it, leased and
        waiting alike. To tell them apart, a begin would have to write its note anew, or the item
        an attribute of an index, and a fire would pay for it each time; an operator's question may
        read more. No more than one page and one chunk of schedules are held at once.
        """
        lines = (line for note in self._journal.all() for line in note.lines)
        names = iter(dict.fromkeys((line.user_id, line.key) for line in lines))
        found: Sequence[Occurrence] = ()
        while chunk := list(islice(names, AT_ONCE)):
            entities = self._entities.load_many(chunk).values()
            waiting = [e.occurrence for entity in entities for e in entity.under_way]
            found = page.of([*found, *waiting])
        return found


@dataclass(frozen=True, slots=True)
class Page:
    """The first `limit` after an identity, of one state or of any."""

    after: Identity
    state: State | None
    limit: int

    @property
    def until(self) -> int:
        """Later than all of them."""
        return self.after[2] + 1

    def read(self, found: Iterator[Occurrence]) -> list[Occurrence]:
        """As many as may stand on it, of one source; of the last one's time all there are."""
        taken: list[Occurrence] = []
        for one in found:
            if len(taken) >= self.limit and one.nominal_at < taken[-1].nominal_at:
                break
            if self.wants(one):
                taken.append(one)
        return taken

    def of(self, found: Iterable[Occurrence]) -> Sequence[Occurrence]:
        """The page. What a schedule's item holds comes first, and counts."""
        once: dict[Identity, Occurrence] = {}
        for held in found:
            once.setdefault(held.identity, held)
        return sorted(filter(self.wants, once.values()), key=_order)[: self.limit]

    def wants(self, one: Occurrence) -> bool:
        """Whether it may stand on it."""
        later = newest_first(one.identity) > newest_first(self.after)
        return later and self.state in (None, one.state)


def _order(one: Occurrence) -> tuple[int, str, str, str]:
    return newest_first(one.identity)

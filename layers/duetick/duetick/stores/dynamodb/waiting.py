"""What waits for a tick: ended leases, and scheduled and retrying occurrences that are due."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from duetick.domain.attempts import OnLost, tell_lost
from duetick.domain.schedule import Identity, Occurrence
from duetick.domain.states import WAITING, State
from duetick.stores.dynamodb import attempts
from duetick.stores.dynamodb.entities import Entities, Name, tell_too_large
from duetick.stores.dynamodb.errors import Conflict, ItemTooLarge
from duetick.stores.dynamodb.items import Entity, wake_of
from duetick.stores.dynamodb.journal import Journal, Line, Note

MOST_LINES: Final = 5_000


class Waiting:
    """Reads the notes that are due, and takes up what they lead to."""

    def __init__(self, entities: Entities, journal: Journal) -> None:
        self._entities = entities
        self._journal = journal

    def claim(
        self, now: int, limit: int, ahead: int, on_lost: OnLost | None
    ) -> Sequence[Occurrence]:
        """See `Ledger.claim_waiting`."""
        until = now + ahead
        while True:
            notes = list(self._notes(until))
            names = {(line.user_id, line.key) for note in notes for line in _due(note, until)}
            entities = self._entities.load_many(names)
            taken = self._take_up(entities, now, limit, ahead)
            tell_lost(on_lost, taken)
            self._cover(notes, entities, now)
            alive = [held for held in taken if held.state is State.QUEUED]
            if alive or not taken:
                return alive

    def _notes(self, now: int) -> Iterator[Note]:
        """The earliest, up to as many lines as one pass may look at."""
        lines = 0
        for note in self._journal.due(now):
            due = len(_due(note, now))
            lines += due
            if due:
                yield note
            if lines >= MOST_LINES:
                return

    def _take_up(
        self, entities: dict[Name, Entity], now: int, limit: int, ahead: int
    ) -> Sequence[Occurrence]:
        """Those that are first in order, each schedule in one write."""
        found = [held for entity in entities.values() for held in _ready(entity, now, ahead)]
        chosen = sorted(found, key=attempts.order)[:limit]
        taken: dict[Identity, Occurrence] = {}
        for name in dict.fromkeys((held.user_id, held.key) for held in chosen):
            mine = [held for held in chosen if (held.user_id, held.key) == name]
            for after in self._write(entities, name, mine, now):
                taken[after.identity] = after
        return [taken[held.identity] for held in chosen if held.identity in taken]

    def _write(
        self, entities: dict[Name, Entity], name: Name, mine: Sequence[Occurrence], now: int
    ) -> Sequence[Occurrence]:
        """One schedule's. Where it cannot be written now, it is left to the next pass."""
        entity = entities[name]
        after = [attempts.take_up(entity, held, now) for held in mine]
        try:
            self._entities.save(entity, now)
        except (Conflict, ItemTooLarge) as error:
            tell_too_large(entity, error)
            entities[name] = self._entities.load(*name)
            return []
        return after

    def _cover(self, notes: Sequence[Note], entities: Mapping[Name, Entity], now: int) -> None:
        """Write anew what must be looked at later, then drop the notes that led to nothing more.

        A note stays while a claim that it announced may yet come, or what is due was left.
        """
        done = [note for note in notes if not any(_pending(x, entities, now) for x in note.lines)]
        names = {(line.user_id, line.key) for note in done for line in note.lines}
        later = ((name, entities[name].wake()) for name in names if name in entities)
        self._journal.write(Line(*name, wake) for name, wake in later if wake is not None)
        for note in done:
            self._journal.drop(note)


def _due(note: Note, now: int) -> Sequence[Line]:
    return [line for line in note.lines if line.wake <= now]


def _ready(entity: Entity, now: int, ahead: int) -> Sequence[Occurrence]:
    """Leases that are over, and what comes due: only the latter may lie ahead."""
    under_way = (entry.occurrence for entry in entity.under_way)
    return [o for o in under_way if wake_of(o) <= now + (ahead if o.state in WAITING else 0)]


def _pending(line: Line, entities: Mapping[Name, Entity], now: int) -> bool:
    """Whether the line's note must stay."""
    if line.wake > now:
        return True
    entity = entities.get((line.user_id, line.key))
    if entity is None:
        return False
    row = entity.indexed
    announced = line.seen is not None and row is not None and row.next_fire_at == line.seen
    wake = entity.wake()
    return announced or (wake is not None and wake <= now)

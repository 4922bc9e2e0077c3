"""The index: rows that are due, oldest first over all shards, and the claim of each.

Units of a fire, counted: claim 3 (the item 1, its place in the index `due` 2), the occurrence
before it to the history 1, begin 1, settle 1, and its share of a note, 2 notes for a chunk.
"""

import heapq
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import islice
from typing import Final

from duetick.domain.errors import PoisonedRow
from duetick.domain.firing import Missed, Times
from duetick.domain.occurrences import poisoned, ranged
from duetick.domain.schedule import IndexRow, Occurrence
from duetick.domain.states import Reason, State
from duetick.stores.dynamodb.clock import Skew
from duetick.stores.dynamodb.entities import SCHEMA_KEY, Entities, pause, read_layout
from duetick.stores.dynamodb.items import Entity, Poison, name_of, statuses
from duetick.stores.dynamodb.journal import Journal, Line
from duetick.stores.dynamodb.occurrences import number, slot_of, text
from duetick.stores.dynamodb.schema import ATTENTION, DUE
from duetick.stores.dynamodb.table import Conflict, Item
from duetick.stores.sql.claim import Shape, shape_of

WRITERS: Final = 8
MOST_OPEN: Final = 500
"""How many occurrences of one schedule may be under way; what comes then is over its quota."""


class DynamoIndex:
    """`ports.Index` on one table."""

    def __init__(
        self,
        entities: Entities,
        journal: Journal,
        now: Callable[[], int],
        new_id: Callable[[], str],
        skew: Skew,
    ) -> None:
        self._entities = entities
        self._journal = journal
        self._now = now
        self._new_id = new_id
        self._skew = skew
        self._pool: ThreadPoolExecutor | None = None

    def upsert(self, row: IndexRow) -> None:
        """See `ports.Index`."""

        def alter(entity: Entity) -> tuple[None, bool]:
            entity.row, entity.poison = row, None
            return None, True

        self._entities.change(row.user_id, row.key, self._now(), alter)

    def remove(self, user_id: str, key: str) -> None:
        """See `ports.Index`."""

        def alter(entity: Entity) -> tuple[None, bool]:
            was, entity.row, entity.poison = entity.row, None, None
            return None, was is not None

        self._entities.change(user_id, key, self._now(), alter)

    def get(self, user_id: str, key: str) -> IndexRow | None:
        """See `ports.Index`."""
        return self._entities.load(user_id, key).indexed

    def poisoned(self, limit: int = 100, *, since: int = 0) -> Sequence[Occurrence]:
        """See `ports.Index`."""
        values = {":a": text("poisoned"), ":since": number(since)}
        condition = "att = :a AND aat >= :since"
        found = self._entities.table.query(condition, values, index=ATTENTION, page=limit)
        return list(islice(self._poisoned(found, limit), limit))

    def _poisoned(self, found: Iterator[Item], limit: int) -> Iterator[Occurrence]:
        while names := [name_of(item) for item in islice(found, limit)]:
            entities = self._entities.load_many(names)
            for entity in (entities[name] for name in names if name in entities):
                if entity.row and entity.poison:
                    yield poisoned(entity.row, ValueError(entity.poison.error), entity.poison.at)

    def backlog(self, now: int, limit: int = 10_000) -> int:
        """See `ports.Index`."""
        layout = read_layout(self._entities.table.get(SCHEMA_KEY))
        return sum(1 for _ in islice(self._due(layout, now, min(limit, 1_000)), limit))

    def restore(self, user_id: str, key: str, *, now: int | None = None) -> bool:
        """See `ports.Index`."""
        at = self._now() if now is None else now

        def alter(entity: Entity) -> tuple[bool, bool]:
            if entity.row is None or entity.poison is None:
                return False, False
            self._mend(entity, entity.row, at)
            return True, True

        return self._entities.change(user_id, key, at, alter)

    def _mend(self, entity: Entity, row: IndexRow, now: int) -> None:
        times = Times.of(row)
        try:
            fresh, first = times.after(now), times.after(row.next_fire_at)
        except ValueError as error:
            raise PoisonedRow(f"{row.user_id}/{row.key} still cannot be read: {error}") from error
        if first is not None and first <= now:
            last = times.newest(row.next_fire_at, now) or first
            count = times.count(row.next_fire_at, now)
            held = ranged(row, Missed(first, last, count), Reason.MISSED, now)
            entity.keep(replace(held, id=self._new_id()))
            entity.mark(last)
        entity.poison = None
        entity.row = None if fresh is None else replace(row, next_fire_at=fresh)

    def claim_due(self, now: int, limit: int = 100, *, ahead: int = 0) -> Sequence[Occurrence]:
        """See `ports.Index`. Pages forward: what the index shows late is not asked for again."""
        layout, date = self._entities.table.get_dated(SCHEMA_KEY)
        self._skew.check(date)
        while True:
            rows, contended = self._due(read_layout(layout), now + ahead, limit), False
            while names := list(islice(rows, limit)):
                claim = Claim(self._entities, now, ahead, self._new_id)
                claimed = self._claim(claim, names)
                if claimed:
                    return claimed
                contended = contended or claim.contended
            if not contended:
                return []

    def _due(self, layout: Sequence[int], until: int, page: int) -> Iterator[tuple[str, str]]:
        """The names of the rows that are due, oldest first."""
        partitions = [status for shards in layout for status in statuses(shards)]
        pages = [self._due_in(status, until, page) for status in partitions]
        return (name for _, name in heapq.merge(*pages))

    def _due_in(self, status: str, until: int, page: int) -> Iterator[tuple[int, tuple[str, str]]]:
        found = self._entities.table.query(
            "st = :st AND run <= :until",
            {":st": text(status), ":until": number(until)},
            index=DUE,
            page=page,
        )
        return ((int(item["run"]["N"]), name_of(item)) for item in found)

    def _claim(self, claim: "Claim", names: Sequence[tuple[str, str]]) -> list[Occurrence]:
        """Plan the chunk, note it, write what has ended, then each row on its condition."""
        entities = self._entities.load_many(names)
        due = [entities[name] for name in names if name in entities]
        due = [entity for entity in due if claim.is_due(entity)]
        self._entities.flush(due)
        planned = [(entity, claim.seen(entity), claim.plan(entity)) for entity in due]
        self._journal.write(
            Line(entity.user_id, entity.key, wake, seen)
            for entity, seen, _ in planned
            if (wake := entity.wake()) is not None
        )
        if len(planned) > 1:
            written = self._writers().map(claim.write, planned)
        else:
            written = map(claim.write, planned)
        return [occurrence for made in written for occurrence in made]

    def _writers(self) -> ThreadPoolExecutor:
        if self._pool is None:
            self._pool = ThreadPoolExecutor(WRITERS, "duetick-claim")
        return self._pool

    def close(self) -> None:
        """Let go of the threads."""
        if self._pool:
            self._pool.shutdown()
            self._pool = None


Planned = tuple[Entity, int, list[Occurrence]]


class Claim:
    """One chunk of rows: what each yields, and the conditional write that makes it so."""

    def __init__(self, entities: Entities, now: int, ahead: int, new_id: Callable[[], str]) -> None:
        self._entities = entities
        self._now = now
        self._ahead = ahead
        self._until = now + ahead
        self._new_id = new_id
        self.contended = False

    def is_due(self, entity: Entity) -> bool:
        """What the index showed may be late: the item itself decides."""
        row = entity.indexed
        return row is not None and row.next_fire_at <= self._until

    @staticmethod
    def seen(entity: Entity) -> int:
        """The time that the row is due for."""
        return entity.row.next_fire_at if entity.row else 0

    def plan(self, entity: Entity) -> list[Occurrence]:
        """Advance the item's row; the occurrences to hand on."""
        row = entity.row
        if row is None:
            return []
        shape = shape_of(row, entity.fired_through, self._now, self._ahead)
        _advance(entity, row, shape, self._now)
        named = [replace(occurrence, id=self._new_id()) for occurrence in shape.made]
        held = [self._within_quota(entity, occurrence) for occurrence in named]
        new = [occurrence for occurrence in held if entity.keep(occurrence)]
        return [occurrence for occurrence in new if occurrence.state is State.QUEUED]

    def _within_quota(self, entity: Entity, occurrence: Occurrence) -> Occurrence:
        if len(entity.open) < MOST_OPEN or occurrence.state not in (State.QUEUED, State.SCHEDULED):
            return occurrence
        return replace(
            occurrence, state=State.CANCELLED, reason=Reason.QUOTA, fence=0, lease_until=None
        )

    def write(self, planned: Planned) -> list[Occurrence]:
        """Make it so; nothing where another claimed it first."""
        entity, seen, claimed = planned
        for attempt in range(5):
            try:
                self._entities.save(entity, self._now)
            except Conflict:
                pause(attempt)
            else:
                return claimed
            entity, again = self._entities.load(entity.user_id, entity.key), claimed
            if _holds(entity, again):
                return again
            if not self.is_due(entity):
                return []
            if self.seen(entity) != seen:
                break
            claimed = self.plan(entity)
        self.contended = True
        return []


def _advance(entity: Entity, row: IndexRow, shape: Shape, now: int) -> None:
    if shape.error is not None:
        entity.poison = Poison(shape.error, now)
        entity.mark(row.next_fire_at)
        return
    entity.fired_through = shape.through
    entity.row = None if shape.next_at is None else replace(row, next_fire_at=shape.next_at)


def _holds(entity: Entity, claimed: Sequence[Occurrence]) -> bool:
    """Whether a write that seemed to fail was ours after all (its answer was lost on the way)."""
    held = [entity.open.get(slot_of(occurrence)) for occurrence in claimed]
    ids = [entry.occurrence.id if entry else None for entry in held]
    return bool(claimed) and ids == [occurrence.id for occurrence in claimed]

"""The index: rows that are due, oldest first over all shards, and the claim of each.

Units of a fire, counted: claim 3 (the item 1, its place in the index `due` 2), the occurrence
before it to the history 1, begin 1, settle 1, and its share of a note, 2 notes for a chunk.
"""

import heapq
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import Final

from duetick.domain.mirror import restored
from duetick.domain.occurrences import poisoned
from duetick.domain.schedule import IndexRow, Occurrence
from duetick.ports import OnPoisoned
from duetick.stores.dynamodb.claim import Claim
from duetick.stores.dynamodb.clock import Skew
from duetick.stores.dynamodb.entities import Entities, Name
from duetick.stores.dynamodb.items import Entity, name_of, statuses
from duetick.stores.dynamodb.journal import Journal, Line
from duetick.stores.dynamodb.occurrences import number, text
from duetick.stores.dynamodb.schema import ATTENTION, DUE
from duetick.stores.dynamodb.table import Item

WRITERS: Final = 8


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
        every = self._poisoned(found, limit)
        return list(islice((one for one in every if one.updated_at >= since), limit))

    def _poisoned(self, found: Iterator[Item], limit: int) -> Iterator[Occurrence]:
        while names := [name_of(item) for item in islice(found, limit)]:
            entities = self._entities.load_many(names)
            told = [
                poisoned(entity.row, ValueError(entity.poison.error), entity.poison.at)
                for entity in entities.values()
                if entity.row and entity.poison
            ]
            yield from sorted(told, key=lambda one: (one.updated_at, one.user_id, one.key))

    def backlog(self, now: int, limit: int = 10_000) -> int:
        """See `ports.Index`."""
        layout, _ = self._entities.layout.read()
        return sum(1 for _ in islice(self._due(layout, now, min(limit, 1_000)), limit))

    def restore(self, user_id: str, key: str, *, now: int | None = None) -> bool:
        """See `ports.Index`."""
        at = self._now() if now is None else now

        def alter(entity: Entity) -> tuple[bool, bool]:
            if entity.row is None or entity.poison is None:
                return False, False
            row, missed = restored(entity.row, at)
            entity.account(missed, self._new_id)
            entity.row, entity.poison = row, None
            return True, True

        return self._entities.change(user_id, key, at, alter)

    def claim_due(
        self, now: int, limit: int = 100, *, ahead: int = 0, on_poisoned: OnPoisoned | None = None
    ) -> Sequence[Occurrence]:
        """See `ports.Index`. Pages forward: what the index shows late is not asked for again."""
        layout, date = self._entities.layout.read()
        self._skew.check(date)
        while True:
            rows, contended = self._due(layout, now + ahead, limit), False
            while names := list(islice(rows, limit)):
                claim = Claim(self._entities, now, ahead, self._new_id, on_poisoned)
                claimed = self._claim(claim, names, now)
                if claimed:
                    return claimed
                contended = contended or claim.contended
            if not contended:
                return []

    def _due(self, layout: Sequence[int], until: int, page: int) -> Iterator[Name]:
        """The names of the rows that are due, oldest first."""
        partitions = [status for shards in layout for status in statuses(shards)]
        pages = [self._due_in(status, until, page) for status in partitions]
        return (name for _, name in heapq.merge(*pages))

    def _due_in(self, status: str, until: int, page: int) -> Iterator[tuple[int, Name]]:
        found = self._entities.table.query(
            "st = :st AND run <= :until",
            {":st": text(status), ":until": number(until)},
            index=DUE,
            page=page,
        )
        return ((int(item["run"]["N"]), name_of(item)) for item in found)

    def _claim(self, claim: Claim, names: Sequence[Name], now: int) -> list[Occurrence]:
        """Write what has ended, plan the chunk, note it, then write each row on its condition."""
        entities = self._entities.load_many(names)
        due = [entities[name] for name in dict.fromkeys(names) if name in entities]
        self._entities.flush(due, now)
        plans = [plan for plan in map(claim.plan, due) if plan]
        self._journal.write(
            Line(plan.entity.user_id, plan.entity.key, wake, plan.seen)
            for plan in plans
            if (wake := plan.entity.wake()) is not None
        )
        every = map if len(plans) < 2 else self._writers().map
        return [occurrence for claimed in every(claim.write, plans) for occurrence in claimed]

    def _writers(self) -> ThreadPoolExecutor:
        if self._pool is None:
            self._pool = ThreadPoolExecutor(WRITERS, "duetick-claim")
        return self._pool

    def close(self) -> None:
        """Let go of the threads."""
        if self._pool:
            self._pool.shutdown()
            self._pool = None

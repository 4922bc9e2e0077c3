"""A fourth store, written from the README's "Adding a store" alone: everything in dictionaries."""

import time
from collections.abc import Callable, Sequence
from dataclasses import replace

from duetick.domain import mirror
from duetick.domain.creation import Made, Repeatable
from duetick.domain.errors import InvalidSchedule, VersionConflict
from duetick.domain.firing import decide, unfired
from duetick.domain.occurrences import fired, poisoned, ranged
from duetick.domain.schedule import IndexRow, Occurrence, Schedule
from duetick.domain.states import Reason, State
from duetick.domain.versions import Expected, check_version
from duetick.ports import Difference, OnPoisoned, Page
from duetick.stores.paging import (
    make_cursor,
    read_cursor,
)

from tests.conformance.memory_data import Data, Kept
from tests.conformance.memory_ledger import MemoryLedger


class MemoryIndex:
    def __init__(self, data: Data, now: Callable[[], int]) -> None:
        self._data, self._now = data, now

    def upsert(self, row: IndexRow) -> None:
        kept = self._data.of(row.user_id, row.key)
        kept.row, kept.poison = row, None

    def remove(self, user_id: str, key: str) -> None:
        kept = self._data.of(user_id, key)
        kept.row, kept.poison = None, None

    def get(self, user_id: str, key: str) -> IndexRow | None:
        return self._data.of(user_id, key).indexed

    def claim_due(
        self, now: int, limit: int = 100, *, ahead: int = 0, on_poisoned: OnPoisoned | None = None
    ) -> Sequence[Occurrence]:
        while True:
            with self._data.lock:
                rows = [kept.indexed for kept in self._data.kept.values()]
                due = [row for row in rows if row and row.next_fire_at <= now + ahead]
                due.sort(key=lambda row: row.next_fire_at)
                claimed = [
                    one for row in due[:limit] for one in self._claim(row, now, ahead, on_poisoned)
                ]
            if claimed or not due:
                return claimed

    def _claim(
        self, row: IndexRow, now: int, ahead: int, told: OnPoisoned | None
    ) -> list[Occurrence]:
        kept = self._data.of(row.user_id, row.key)
        try:
            fresh = unfired(row, kept.mark)
            if fresh is None or fresh.next_fire_at > now + ahead:
                kept.row = fresh
                return []
            decision = decide(fresh, now, ahead)
        except ValueError as error:
            kept.poison = poisoned(row, error, now)
            self._data.account([kept.poison])
            if told:
                told(kept.poison)
            return []
        missed = [ranged(fresh, part, Reason.MISSED, now) for part in decision.missed]
        new = self._data.account([*missed, *fired(fresh, decision, now, ahead)])
        kept.row = replace(row, next_fire_at=decision.next_at) if decision.next_at else None
        return [one for one in new if one.state is State.QUEUED]

    def poisoned(self, limit: int = 100, *, since: int = 0) -> Sequence[Occurrence]:
        found = [kept.poison for kept in self._data.kept.values() if kept.poison]
        found = [one for one in found if one.created_at >= since]
        return sorted(found, key=lambda one: one.created_at)[:limit]

    def backlog(self, now: int, limit: int = 10_000) -> int:
        rows = [kept.indexed for kept in self._data.kept.values()]
        return min(limit, sum(row is not None and row.next_fire_at <= now for row in rows))

    def restore(self, user_id: str, key: str, *, now: int | None = None) -> bool:
        with self._data.lock:
            kept = self._data.of(user_id, key)
            if kept.poison is None or kept.row is None:
                return False
            row, missed = mirror.restored(kept.row, self._now() if now is None else now)
            self._data.account(missed)
            kept.row, kept.poison = row, None
            return True


class MemorySchedules:
    def __init__(self, data: Data, now: Callable[[], int]) -> None:
        self._data, self._now = data, now

    def put(
        self,
        schedule: Schedule,
        *,
        now: int | None = None,
        if_version: Expected | None = None,
        at_most: int | None = None,
        repeatable: Repeatable | None = None,
    ) -> Schedule:
        at = self._now() if now is None else now
        with self._data.lock:
            kept = self._data.of(schedule.user_id, schedule.key)
            current = self.get(schedule.user_id, schedule.key)
            check_version(current, if_version)
            before = mirror.Before(current, kept.indexed, kept.mark, kept.defined_at)
            change = mirror.plan_put(before, schedule, at)
            owner = schedule.external_id and self.find_by_external(schedule.external_id)
            if owner and owner.id != schedule.id:
                raise InvalidSchedule("external_id", "is already another schedule's.")
            if current is None and at_most is not None:
                self._check_count(schedule.user_id, at_most)
            if repeatable and self.made(schedule.user_id, repeatable.name, now=at):
                raise VersionConflict(0, 1)
            if change:
                self.write(kept, change)
            put = self.get(schedule.user_id, schedule.key) or schedule
            if repeatable:
                made = Made(repeatable.digest, put.created_at, put.next_fire_at)
                self._data.made[put.user_id, repeatable.name] = made, repeatable.until
            return put

    def made(self, user_id: str, name: str, *, now: int | None = None) -> Made | None:
        made, until = self._data.made.get((user_id, name), (None, 0))
        return made if until > (self._now() if now is None else now) else None

    def _check_count(self, user_id: str, at_most: int) -> None:
        names = [name for name, kept in self._data.kept.items() if kept.record]
        if sum(user == user_id for user, _ in names) >= at_most:
            raise mirror.too_many(at_most)

    def write(self, kept: Kept, change: mirror.Change) -> None:
        self._data.account(change.ranges)
        kept.record = change.schedule
        if change.redefines:
            kept.definitions.append(change.schedule)
            if kept.mark is not None:
                ends = [one.range_end for one in self._data.siblings(change.schedule)]
                told = [end for end in ends if end is not None]
                kept.mark = min(kept.mark, max([change.schedule.timing, *told]))
        if change.row or change.redefines:
            kept.row, kept.poison = change.row, None

    def get(self, user_id: str, key: str) -> Schedule | None:
        kept = self._data.of(user_id, key)
        if kept.record is None:
            return None
        runs = [at for at in self._begins(user_id, key) if at >= kept.record.created_at]
        return replace(
            kept.record,
            next_fire_at=kept.indexed.next_fire_at if kept.indexed else None,
            last_run_at=max(runs, default=None),
            defect=kept.poison.error if kept.poison else None,
        )

    def _begins(self, user_id: str, key: str) -> Sequence[int]:
        mine = self._data.siblings(Occurrence(user_id, key, "", None, 0))
        return [one.begun_at for one in mine if one.begun_at is not None]

    def list(self, user_id: str, *, limit: int = 100, cursor: str | None = None) -> Page:
        after = read_cursor(cursor)
        names = sorted(key for user, key in self._data.kept if user == user_id and key > after)
        found = [one for one in (self.get(user_id, key) for key in names) if one]
        more = len(found) > limit
        return Page(tuple(found[:limit]), make_cursor(found[limit - 1].key) if more else None)

    def delete(
        self,
        user_id: str,
        key: str,
        *,
        now: int | None = None,
        if_version: Expected | None = None,
    ) -> bool:
        at = self._now() if now is None else now
        with self._data.lock:
            kept = self._data.of(user_id, key)
            check_version(kept.record, if_version)
            if kept.record is None:
                return False
            self._data.fires_no_more(kept.record, Reason.SCHEDULE_DELETED, at)
            kept.record = None
            return True

    def find_by_external(self, external_id: str) -> Schedule | None:
        names = [n for n, k in self._data.kept.items() if k.record]
        found = (self.get(*name) for name in names)
        return next((one for one in found if one and one.external_id == external_id), None)


class MemoryStore:
    def __init__(self) -> None:
        self._data = Data()
        self.index = MemoryIndex(self._data, self.now)
        self.schedules = MemorySchedules(self._data, self.now)
        self.ledger = MemoryLedger(self._data, self.schedules, self.now)

    def now(self) -> int:
        return time.time_ns() // 1_000_000

    def migrate(self) -> None:
        """Dictionaries have no schema."""

    check_schema = close = migrate

    def check(self, *, now: int | None = None) -> Sequence[Difference]:
        at, found = self.now() if now is None else now, []
        for (user_id, key), kept in sorted(self._data.kept.items()):
            problem = mirror.problem_of(kept.record, kept.indexed, kept.mark, at)
            if kept.poison:
                problem = "unreadable"
            if problem:
                found.append(Difference(user_id, key, problem))
        return found

    def rebuild(self, *, now: int | None = None) -> int:
        at = self.now() if now is None else now
        with self._data.lock:
            return sum(self._mend(one, at) for one in self.check(now=at))

    def admit_run(self, user_id: str, at_most: int, *, now: int | None = None) -> bool:
        name = user_id, (self.now() if now is None else now) // 60_000
        with self._data.lock:
            runs = self._data.runs.get(name, 0)
            self._data.runs[name] = min(runs + 1, at_most)
            return runs < at_most

    def erase(self, user_id: str) -> int:
        with self._data.lock:
            return self._data.erase(user_id)

    def _mend(self, found: Difference, now: int) -> bool:
        kept = self._data.of(found.user_id, found.key)
        if found.problem == "unreadable":
            return False
        if kept.record is None or not kept.record.enabled:
            kept.row = None
            return True
        change = mirror.repair(kept.record, kept.indexed, kept.mark, now)
        kept.row = None
        self.schedules.write(kept, change)
        return True

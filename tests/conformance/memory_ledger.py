"""The ledger of the store that was written from the README."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from duetick.domain import attempts
from duetick.domain.errors import ConfigurationError
from duetick.domain.lifecycle import held_key, lease_over, same_outcome
from duetick.domain.schedule import Identity, Occurrence, Schedule
from duetick.domain.states import LEASED, WAITING, Reason, State
from duetick.ports import (
    Begun,
    CallerKey,
    Clock,
    Event,
    OnLost,
    Outcome,
    Refused,
    Schedules,
    Transaction,
)
from duetick.stores.paging import check_findable, newest_first, place_of

from tests.conformance.memory_data import Data


class NoEffects:
    """An action can write nothing of its own into dictionaries."""

    def run(self, sql: str, /, **params: object) -> Sequence[Sequence[object]]:
        del sql, params
        raise ConfigurationError("This store has no SQL database.")

    def write(self, item: Mapping[str, Any], /) -> None:
        del item
        raise ConfigurationError("This store has no DynamoDB table.")


class MemoryLedger:
    def __init__(self, data: Data, schedules: Schedules, now: Callable[[], int]) -> None:
        self._data, self._schedules, self._now = data, schedules, now

    def begin(
        self,
        occurrence: Occurrence,
        *,
        now: int | None = None,
        key: CallerKey | None = None,
        on_lost: OnLost | None = None,
    ) -> Begun | Refused:
        at = self._now() if now is None else now
        with self._data.lock:
            taken = None if occurrence.fence else key and self.holds(key, now=at)
            if taken:
                return taken
            held, asked = self._standing(occurrence), occurrence
            if held is None and occurrence.fence == 0:
                held = asked = self._bring(occurrence, key, at)
            if held is None:
                return Refused("unknown")
            return attempts.refuse(held, asked, at) or self._begin(held, at, on_lost)

    def bring(
        self, occurrence: Occurrence, *, now: int | None = None, key: CallerKey | None = None
    ) -> Occurrence | Refused:
        at = self._now() if now is None else now
        with self._data.lock:
            taken = key and self.holds(key, now=at)
            held = self._standing(occurrence)
            if taken:
                return taken
            if held:
                return attempts.recorded_already(held, occurrence, at)
            return self._bring(occurrence, key, at)

    def _bring(self, asked: Occurrence, key: CallerKey | None, now: int) -> Occurrence:
        [made] = self._data.record([attempts.brought(asked, "", now)])
        if key:
            self._data.caller_keys[key.flow, key.key] = (made.identity, now + key.window_ms)
        return made

    def _standing(self, asked: Occurrence) -> Occurrence | None:
        held = self._data.ledger.get(asked.identity)
        if held or asked.fence:
            return held
        mine = (one for one in self._data.siblings(asked) if one.origin == "schedule")
        up_to = (one for one in mine if one.nominal_at <= asked.nominal_at)
        newest = max(up_to, key=lambda one: one.nominal_at, default=None)
        return attempts.accounted(newest, asked)

    def holds(self, key: CallerKey, *, now: int | None = None) -> Refused | None:
        at = self._now() if now is None else now
        identity, until = self._data.caller_keys.get((key.flow, key.key), (None, 0))
        holder = identity and self._data.ledger.get(identity)
        verdict = holder and held_key(holder, until, at)
        return Refused(verdict, holder.state, holder.reason) if holder and verdict else None

    def _begin(self, held: Occurrence, now: int, on_lost: OnLost | None) -> Begun | Refused:
        record = self._schedules.get(held.user_id, held.key)
        after = attempts.begun(
            held,
            record,
            now,
            lambda: self._another_runs(held, now, on_lost),
            lambda limited: self._count_run(limited, now),
        )
        if after.state is State.QUEUED:
            for other in self._data.siblings(after):
                if attempts.displaces(after, other):
                    self._data.move(attempts.cancelled(other, Reason.OVERLAP, now))
        return attempts.not_begun(self._data.move(after)) or Begun(
            after, self._schedules.get(held.user_id, held.key)
        )

    def _another_runs(self, held: Occurrence, now: int, on_lost: OnLost | None) -> bool:
        running = [o for o in self._data.siblings(held) if o.state is State.PROCESSING]
        for other in running:
            if not lease_over(other, now):
                return True
            after = attempts.ousted(other, now)
            self._data.move(after, attempts.trace_of_loss(other, after))
            attempts.tell_lost(on_lost, [after])
        return False

    def _count_run(self, limited: Schedule, now: int) -> bool:
        kept = self._data.of(limited.user_id, limited.key)
        if kept.record is None or kept.record.used_up:
            return False
        kept.record = replace(kept.record, runs=kept.record.runs + 1)
        if kept.record.used_up:
            self._data.fires_no_more(kept.record, Reason.QUOTA, now)
        return True

    def _holds(self, occurrence: Occurrence, *states: State) -> Occurrence | None:
        held = self._data.ledger.get(occurrence.identity)
        mine = held and held.fence == occurrence.fence and held.state in states
        return held if mine else None

    def settle(
        self, occurrence: Occurrence, outcome: Outcome, *, now: int | None = None
    ) -> Occurrence | None:
        with self._data.lock:
            held = self._holds(occurrence, *State)
            if held is None:
                return None
            if held.state is not State.PROCESSING:
                return held if same_outcome(held, outcome.state, outcome.reason) else None
            after = attempts.settled(held, outcome, self._now() if now is None else now)
            return self._data.move(after, attempts.trace_of_retry(held, after))

    @contextmanager
    def settling(self, occurrence: Occurrence, clock: Clock) -> Iterator[Transaction]:
        with self._data.lock:
            yield NoEffects()
            held = self._data.ledger.get(occurrence.identity)
            self._data.move(attempts.settled_with_effects(held, occurrence.fence, clock()))

    def release(
        self, occurrence: Occurrence, *, now: int | None = None, on_lost: OnLost | None = None
    ) -> bool:
        with self._data.lock:
            held = self._holds(occurrence, State.QUEUED)
            if held:
                after = attempts.released(held, self._now() if now is None else now)
                attempts.tell_lost(on_lost, [self._data.move(after, attempts.RELEASED)])
            return held is not None

    def renew(self, occurrence: Occurrence, *, now: int | None = None) -> Occurrence | None:
        with self._data.lock:
            held = self._holds(occurrence, State.PROCESSING)
            at = self._now() if now is None else now
            return self._data.move(attempts.renewed(held, at)) if held else None

    def claim_waiting(
        self, now: int, limit: int = 100, *, ahead: int = 0, on_lost: OnLost | None = None
    ) -> Sequence[Occurrence]:
        while True:
            with self._data.lock:
                every = self._data.ledger.values()
                over = [o for o in every if o.state in LEASED and lease_over(o, now)]
                due = [o for o in every if o.state in WAITING and o.due_at <= now + ahead]
                over.sort(key=lambda one: one.lease_until or 0)
                due.sort(key=lambda one: (-one.priority, one.due_at, one.created_at))
                taken = [self._take_up(held, now) for held in [*over, *due][:limit]]
            attempts.tell_lost(on_lost, taken)
            alive = [one for one in taken if one.state is State.QUEUED]
            if alive or not taken:
                return alive

    def _take_up(self, held: Occurrence, now: int) -> Occurrence:
        after = attempts.taken_up(held, now)
        note = None if held.state in WAITING else attempts.trace_of_loss(held, after)
        return self._data.move(after, note)

    def find(
        self,
        user_id: str | None = None,
        key: str | None = None,
        *,
        state: State | None = None,
        limit: int = 50,
        before: int | Identity | None = None,
    ) -> Sequence[Occurrence]:
        check_findable(user_id, key, state)
        after = newest_first(place_of(before))
        found = [
            one
            for one in self._data.ledger.values()
            if user_id in (None, one.user_id)
            and key in (None, one.key)
            and state in (None, one.state)
            and newest_first(one.identity) > after
        ]
        return sorted(found, key=lambda one: newest_first(one.identity))[:limit]

    def get(self, user_id: str, key: str, nominal_at: int, origin: str) -> Occurrence | None:
        return self._data.ledger.get((user_id, key, nominal_at, origin))

    def events(self, occurrence: Occurrence) -> Sequence[Event]:
        return self._data.events.get(occurrence.identity, [])

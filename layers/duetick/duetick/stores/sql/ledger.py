"""The ledger on SQL: the domain's rules, read, decided and written in one transaction."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TypeAlias

from duetick.domain.attempts import (
    RELEASED,
    begun,
    cancelled,
    displaces,
    not_begun,
    ousted,
    recorded_already,
    refuse,
    released,
    renewed,
    settled,
    settled_with_effects,
    taken_up,
    tell_lost,
    trace_of_loss,
    trace_of_retry,
)
from duetick.domain.lifecycle import lease_over, same_outcome
from duetick.domain.schedule import Identity, Occurrence, Schedule
from duetick.domain.states import WAITING, Reason, State
from duetick.ports import (
    Begun,
    CallerKey,
    Clock,
    Event,
    OnLost,
    Outcome,
    Refused,
    Transaction,
)
from duetick.stores.paging import check_findable, place_of
from duetick.stores.sql.bringing import bring, standing
from duetick.stores.sql.caller_keys import key_held
from duetick.stores.sql.occurrences import lock, move, select, trace, trace_lost
from duetick.stores.sql.rows import (
    identity_params,
    move_params,
    read_schedule,
    storable,
)
from duetick.stores.sql.session import Database, Params, Session, retried
from duetick.stores.sql.transaction import SqlTransaction

CountRun: TypeAlias = Callable[[Session, Schedule, int], bool]
"""Whether a schedule with a limit may run once more."""


class SqlLedger:
    """`ports.Ledger` on any SQL database."""

    def __init__(
        self,
        database: Database,
        now: Callable[[], int],
        new_id: Callable[[], str],
        count_run: CountRun,
    ) -> None:
        self._database = database
        self._now = now
        self._new_id = new_id
        self._count_run = count_run

    @retried
    def begin(
        self,
        occurrence: Occurrence,
        *,
        now: int | None = None,
        key: CallerKey | None = None,
        on_lost: OnLost | None = None,
    ) -> Begun | Refused:
        """See `ports.Ledger`."""
        at = self._now() if now is None else now
        with self._database.transaction() as session:
            # One at a time: one that waits looks at others of its schedule, and they at it.
            session.rows("name_lock", {"user_id": occurrence.user_id, "key": occurrence.key})
            made = occurrence.fence == 0 and bring(session, occurrence, key, self._new_id, at)
            if isinstance(made, Refused):
                return made
            held = made or standing(session, occurrence)
            if held is None:
                return Refused("unknown")
            refused, ended = refuse(held, made or occurrence, at), list[Occurrence]()
            answer = refused or self._begin(session, held, at, ended)
        tell_lost(on_lost, ended)
        return answer

    @retried
    def bring(
        self, occurrence: Occurrence, *, now: int | None = None, key: CallerKey | None = None
    ) -> Occurrence | Refused:
        """See `ports.Ledger`."""
        at = self._now() if now is None else now
        with self._database.transaction() as session:
            made = bring(session, occurrence, key, self._new_id, at)
            if made:
                return made
            held = standing(session, occurrence)
            return recorded_already(held, occurrence, at) if held else Refused("unknown")

    @retried
    def holds(self, key: CallerKey, *, now: int | None = None) -> Refused | None:
        """See `ports.Ledger`."""
        at = self._now() if now is None else now
        with self._database.transaction() as session:
            return key_held(session, key, at)

    @retried
    def settle(
        self, occurrence: Occurrence, outcome: Outcome, *, now: int | None = None
    ) -> Occurrence | None:
        """See `ports.Ledger`."""
        at = self._now() if now is None else now
        with self._database.transaction() as session:
            return _settle(session, occurrence, outcome, at)

    @contextmanager
    def settling(self, occurrence: Occurrence, clock: Clock) -> Iterator[Transaction]:
        """See `ports.Ledger`."""
        with self._database.transaction() as session:
            yield SqlTransaction(session)
            held = lock(session, occurrence)
            move(session, settled_with_effects(held, occurrence.fence, clock()))

    @retried
    def release(
        self, occurrence: Occurrence, *, now: int | None = None, on_lost: OnLost | None = None
    ) -> bool:
        """See `ports.Ledger`."""
        at = self._now() if now is None else now
        with self._database.transaction() as session:
            held = lock(session, occurrence)
            if held is None or held.fence != occurrence.fence or held.state is not State.QUEUED:
                return False
            given_back = released(held, at)
            trace(session, held, given_back, RELEASED)
            move(session, given_back)
        tell_lost(on_lost, [given_back])
        return True

    @retried
    def renew(self, occurrence: Occurrence, *, now: int | None = None) -> Occurrence | None:
        """See `ports.Ledger`."""
        at = self._now() if now is None else now
        with self._database.transaction() as session:
            held = lock(session, occurrence)
            stale = held is None or held.fence != occurrence.fence
            if held is None or stale or held.state is not State.PROCESSING:
                return None
            return move(session, renewed(held, at))

    @retried
    def claim_waiting(
        self, now: int, limit: int = 100, *, ahead: int = 0, on_lost: OnLost | None = None
    ) -> Sequence[Occurrence]:
        """See `ports.Ledger`."""
        while self._anything_waits(now, now + ahead):
            with self._database.transaction() as session:
                found = select(session, "occurrences_lease_over", {"now": now, "limit": limit})
                rest: Params = {"until": now + ahead, "limit": limit - len(found)}
                found += select(session, "occurrences_due", rest)
                claimed = [taken_up(held, now) for held in found]
                trace_lost(session, found, claimed)
                session.each("occurrence_move", [move_params(after) for after in claimed])
            tell_lost(on_lost, claimed)
            alive = [held for held in claimed if held.state is State.QUEUED]
            if alive or not claimed:
                return alive
        return []

    def _anything_waits(self, now: int, until: int) -> bool:
        """Asked first, in one round trip: most ticks find nothing."""
        with self._database.transaction() as session:
            return bool(session.last("anything_waits", {"now": now, "until": until})()[0][0])

    @retried
    def find(
        self,
        user_id: str | None = None,
        key: str | None = None,
        *,
        state: State | None = None,
        limit: int = 50,
        before: int | Identity | None = None,
    ) -> Sequence[Occurrence]:
        """See `ports.Ledger`."""
        check_findable(user_id, key, state)
        if user_id is None:
            name = "occurrences_waiting" if state in WAITING else "occurrences_dead"
        else:
            name = "occurrences_of_user" if key is None else "occurrences_of_schedule"
        wanted: Params = {"user_id": user_id, "key": key, "state": state or "", "limit": limit}
        params = {**wanted, **_page_params(before)}
        with self._database.transaction() as session:
            return select(session, name, params)

    @retried
    def get(self, user_id: str, key: str, nominal_at: int, origin: str) -> Occurrence | None:
        """See `ports.Ledger`."""
        name: Params = {"user_id": user_id, "key": key, "nominal_at": nominal_at, "origin": origin}
        with self._database.transaction() as session:
            found = select(session, "occurrence_get", name)
        return found[0] if found else None

    @retried
    def events(self, occurrence: Occurrence) -> Sequence[Event]:
        """See `ports.Ledger`."""
        with self._database.transaction() as session:
            rows = session.rows("event_list", identity_params(occurrence))
        return [
            Event(int(str(at)), State(str(before)), State(str(after)), str(note))
            for at, before, after, note in rows
        ]

    def _begin(
        self, session: Session, held: Occurrence, now: int, ended: list[Occurrence]
    ) -> Begun | Refused:
        schedule = _schedule_of(session, held)
        after = begun(
            held,
            schedule,
            now,
            lambda: _another_runs(session, held, now, ended),
            lambda limited: self._count_run(session, limited, now),
        )
        if after.state is State.QUEUED:
            _displace(session, after, now)
        return not_begun(move(session, after)) or Begun(after, _schedule_of(session, held))


def _settle(
    session: Session, occurrence: Occurrence, outcome: Outcome, now: int
) -> Occurrence | None:
    held = lock(session, occurrence)
    if held is None or held.fence != occurrence.fence:
        return None
    if held.state is not State.PROCESSING:
        return held if same_outcome(held, outcome.state, outcome.reason) else None
    after = settled(held, replace(outcome, error=storable(outcome.error)), now)
    trace(session, held, after, trace_of_retry(held, after))
    return move(session, after)


def _page_params(before: int | Identity | None) -> Params:
    user_id, key, nominal_at, origin = place_of(before)
    return {
        "before": nominal_at,
        "after_user": user_id,
        "after_key": key,
        "after_origin": origin,
    }


def _schedule_of(session: Session, held: Occurrence) -> Schedule | None:
    rows = session.rows("schedule_get", {"user_id": held.user_id, "key": held.key})
    return read_schedule(rows[0]) if rows else None


def _another_runs(session: Session, held: Occurrence, now: int, ended: list[Occurrence]) -> bool:
    """Whether another one runs; one whose lease is over is ended here and now."""
    for other in select(session, "occurrence_running", {"user_id": held.user_id, "key": held.key}):
        if not lease_over(other, now):
            return True
        after = ousted(other, now)
        trace(session, other, after, trace_of_loss(other, after))
        ended.append(move(session, after))
    return False


def _displace(session: Session, waiting: Occurrence, now: int) -> None:
    older: Params = {
        "user_id": waiting.user_id,
        "key": waiting.key,
        "nominal_at": waiting.nominal_at,
    }
    for other in select(session, "occurrences_waiting_behind", older):
        if displaces(waiting, other):
            move(session, cancelled(other, Reason.OVERLAP, now))

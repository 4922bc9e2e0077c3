"""The ledger on SQL: the domain's rules, read, decided and written in one transaction."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Final, TypeAlias

from duetick.domain.errors import LeaseLost
from duetick.domain.lifecycle import lease_over, same_outcome, why_cancelled
from duetick.domain.occurrences import leased
from duetick.domain.policies import Overlap
from duetick.domain.schedule import Occurrence, Schedule
from duetick.domain.states import WAITING, Reason, State
from duetick.ports import (
    SUCCEEDED,
    Begun,
    CallerKey,
    Clock,
    Event,
    Outcome,
    Refused,
    Transaction,
)
from duetick.stores.attempts import after_lease, cancelled, refuse, settled
from duetick.stores.sql.caller_keys import take_key
from duetick.stores.sql.rows import (
    identity_params,
    move_params,
    occurrence_params,
    read_occurrence,
    read_schedule,
    storable,
)
from duetick.stores.sql.session import Database, Params, Session, Value, retried
from duetick.stores.sql.transaction import SqlTransaction

CountRun: TypeAlias = Callable[[Session, Schedule, int], bool]
"""Whether a schedule with a limit may run once more."""

FAR: Final = 2**63 - 1


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
        self, occurrence: Occurrence, *, now: int | None = None, key: CallerKey | None = None
    ) -> Begun | Refused:
        """See `ports.Ledger`."""
        at = self._now() if now is None else now
        with self._database.transaction() as session:
            taken = key and take_key(session, key, occurrence, at)
            if taken:
                return taken
            held, asked = _lock(session, occurrence), occurrence
            if held is None and occurrence.fence == 0:
                held = asked = self._record(session, occurrence, at)
            if held is None:
                return Refused("unknown")
            refused = refuse(held, asked, at)
            return refused or self._begin(session, held, _schedule_of(session, held), at)

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
            if _settle(session, occurrence, SUCCEEDED, clock()) is None:
                raise LeaseLost("The lease ended before the transaction; nothing was written.")

    @retried
    def release(self, occurrence: Occurrence, *, now: int | None = None) -> bool:
        """See `ports.Ledger`."""
        at = self._now() if now is None else now
        with self._database.transaction() as session:
            held = _lock(session, occurrence)
            if held is None or held.fence != occurrence.fence or held.state is not State.QUEUED:
                return False
            given_back = after_lease(held, at)
            if given_back.state is State.QUEUED:
                given_back = replace(given_back, lease_until=at + 1)
            _trace(session, held, given_back, "released: it never began")
            _move(session, given_back)
            return True

    @retried
    def renew(self, occurrence: Occurrence, *, now: int | None = None) -> Occurrence | None:
        """See `ports.Ledger`."""
        at = self._now() if now is None else now
        with self._database.transaction() as session:
            held = _lock(session, occurrence)
            stale = held is None or held.fence != occurrence.fence
            if held is None or stale or held.state is not State.PROCESSING:
                return None
            until = at + held.policies.lease_ms
            return _move(session, replace(held, lease_until=until, updated_at=at))

    @retried
    def claim_waiting(self, now: int, limit: int = 100, *, ahead: int = 0) -> Sequence[Occurrence]:
        """See `ports.Ledger`."""
        while True:
            with self._database.transaction() as session:
                found = _select(session, "occurrences_lease_over", {"now": now, "limit": limit})
                rest: Params = {"until": now + ahead, "limit": limit - len(found)}
                waiting = _select(session, "occurrences_due", rest)
                claimed = [after_lease(held, now) for held in found]
                _trace_ended(session, found, claimed)
                claimed += [leased(held, now) for held in waiting]
                session.each("occurrence_move", [move_params(after) for after in claimed])
            alive = [held for held in claimed if held.state is State.QUEUED]
            if alive or not claimed:
                return alive

    @retried
    def find(
        self,
        user_id: str | None = None,
        key: str | None = None,
        *,
        state: State | None = None,
        limit: int = 50,
        before: int | None = None,
    ) -> Sequence[Occurrence]:
        """See `ports.Ledger`."""
        params: dict[str, Value] = {"before": FAR if before is None else before, "limit": limit}
        if user_id is None:
            name = "occurrences_waiting" if state in WAITING else "occurrences_dead"
            params |= {"state": state or ""}
        else:
            name = "occurrences_of_user" if key is None else "occurrences_of_schedule"
            params |= {"user_id": user_id, "key": key, "state": state or ""}
        with self._database.transaction() as session:
            return _select(session, name, params)

    @retried
    def get(self, user_id: str, key: str, nominal_at: int, origin: str) -> Occurrence | None:
        """See `ports.Ledger`."""
        name: Params = {"user_id": user_id, "key": key, "nominal_at": nominal_at, "origin": origin}
        with self._database.transaction() as session:
            found = _select(session, "occurrence_get", name)
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

    def _record(self, session: Session, occurrence: Occurrence, now: int) -> Occurrence:
        """A caller that is not the tick brings its occurrence along."""
        made = leased(replace(occurrence, id=self._new_id(), created_at=now), now)
        session.rows("occurrence_insert", occurrence_params(made))
        return made

    def _begin(
        self, session: Session, held: Occurrence, schedule: Schedule | None, now: int
    ) -> Begun | Refused:
        policies = schedule.policies if schedule else held.policies
        exclusive = policies.overlap is not Overlap.ALLOW
        reason = why_cancelled(held, schedule)
        if reason is None and exclusive and _running(session, held, now):
            if policies.overlap is Overlap.WAIT:
                return _wait(session, held, now)
            reason = Reason.OVERLAP
        if reason is None and schedule and schedule.policies.max_runs:
            reason = None if self._count_run(session, schedule, now) else Reason.QUOTA
        if reason:
            _move(session, cancelled(held, reason, now))
            return Refused("cancelled", State.CANCELLED, reason)
        begun = replace(
            held,
            state=State.PROCESSING,
            attempts=held.attempts + 1,
            begun_at=now,
            lease_until=now + policies.lease_ms,
            policies=policies,
            updated_at=now,
        )
        return Begun(_move(session, begun), schedule)


def _settle(
    session: Session, occurrence: Occurrence, outcome: Outcome, now: int
) -> Occurrence | None:
    held = _lock(session, occurrence)
    if held is None or held.fence != occurrence.fence:
        return None
    if held.state is not State.PROCESSING:
        return held if same_outcome(held, outcome.state, outcome.reason) else None
    after = settled(held, outcome, now)
    if after.state is State.RETRYING:
        _trace(session, held, after, f"attempt {held.attempts}: {outcome.error or ''}")
    return _move(session, after)


def _schedule_of(session: Session, held: Occurrence) -> Schedule | None:
    rows = session.rows("schedule_get", {"user_id": held.user_id, "key": held.key})
    return read_schedule(rows[0]) if rows else None


def _running(session: Session, held: Occurrence, now: int) -> bool:
    """Whether another one runs; one whose lease is over is ended here and now."""
    for other in _select(session, "occurrence_running", {"user_id": held.user_id, "key": held.key}):
        if not lease_over(other, now):
            return True
        after = after_lease(other, now)
        _trace(session, other, after, f"lease ended during attempt {other.attempts}")
        _move(session, after)
    return False


def _wait(session: Session, held: Occurrence, now: int) -> Refused:
    """The newest waits for the next tick; an older one that waited is displaced."""
    older: Params = {"user_id": held.user_id, "key": held.key, "nominal_at": held.nominal_at}
    for other in _select(session, "occurrences_waiting_behind", older):
        _move(session, cancelled(other, Reason.OVERLAP, now))
    _move(session, replace(held, lease_until=now + 1, updated_at=now))
    return Refused("in_progress", State.QUEUED, Reason.OVERLAP)


def _select(session: Session, name: str, params: Params) -> list[Occurrence]:
    return [read_occurrence(row) for row in session.rows(name, params)]


def _lock(session: Session, occurrence: Occurrence) -> Occurrence | None:
    found = _select(session, "occurrence_lock", identity_params(occurrence))
    return found[0] if found else None


def _move(session: Session, after: Occurrence) -> Occurrence:
    session.rows("occurrence_move", move_params(after))
    return after


def _trace(session: Session, before: Occurrence, after: Occurrence, note: str) -> None:
    session.rows("event_put", _event(before, after, note))


def _trace_ended(session: Session, before: list[Occurrence], after: list[Occurrence]) -> None:
    """A lease that ended unused and begins anew is told by the row itself."""
    session.each(
        "event_put",
        [
            _event(held, now, f"lease ended during attempt {held.attempts}")
            for held, now in zip(before, after, strict=True)
            if held.state is not State.QUEUED or now.state is not State.QUEUED
        ],
    )


def _event(before: Occurrence, after: Occurrence, note: str) -> Params:
    return identity_params(before) | {
        "at": after.updated_at,
        "before": before.state,
        "after": after.state,
        "note": storable(note),
    }

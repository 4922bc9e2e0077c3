"""The transitions of an occurrence, and the rules of leases. Every transition is checked."""

from dataclasses import replace
from typing import Literal, NamedTuple, TypeAlias

from duetick.domain.identity import RUN_ORIGIN, is_job, stands_beside
from duetick.domain.occurrence import NewOccurrence, Occurrence
from duetick.domain.policies import Delivery, Policies
from duetick.domain.states import (
    LEASED,
    TERMINAL,
    Reason,
    State,
    check_reason,
    check_transition,
    end_state,
)

Hold: TypeAlias = Literal["duplicate", "in_progress"]


class Next(NamedTuple):
    """The state that follows, its reason if it is terminal, and the new due time, if any."""

    state: State
    reason: Reason | None = None
    due_at: int | None = None


class Said(NamedTuple):
    """The texts of an attempt's end: for operators, and for the user."""

    error: str | None
    told: str | None


def move(
    before: Occurrence,
    state: State,
    now: int,
    reason: Reason | None = None,
    said: Said | None = None,
) -> Occurrence:
    """Return the occurrence in another state. Raises IllegalTransition if that may not follow.

    If the state is the same, nothing changes.
    """
    if not check_transition(before.state, state):
        return before
    return _become(before, Next(state, reason), now, said)


def _become(before: Occurrence, then: Next, now: int, said: Said | None = None) -> Occurrence:
    """Return the occurrence in its next state, by one copy: a settle waits for it."""
    check_reason(then.state, then.reason)
    error, told = said or (before.error, before.told)
    return replace(
        before,
        state=then.state,
        reason=then.reason,
        due_at=before.due_at if then.due_at is None else then.due_at,
        lease_until=before.lease_until if then.state in LEASED else None,
        error=error,
        told=told,
        updated_at=now,
    )


def cancel(before: Occurrence, reason: Reason, now: int) -> Occurrence:
    """Return the occurrence, ended without a run."""
    return move(before, State.CANCELLED, now, reason)


def lease(before: Occurrence, now: int) -> Occurrence:
    """Return the occurrence under a new lease. The fence before is stale now."""
    check_transition(before.state, State.QUEUED)
    return replace(
        before,
        state=State.QUEUED,
        fence=before.fence + 1,
        lease_until=lease_end(before.policies, before.due_at, now),
        updated_at=now,
    )


def lease_end(policies: Policies, due_at: int, now: int) -> int:
    """Return the end of a lease that is given now for a delivery at `due_at`."""
    return max(now, due_at) + policies.lease_ms


def renew(before: Occurrence, now: int) -> Occurrence:
    """Return a begun attempt with a longer lease."""
    return replace(before, lease_until=now + before.policies.lease_ms, updated_at=now)


def put_off(before: Occurrence, due_at: int, now: int) -> Occurrence:
    """Take the lease from an occurrence that has begun once. A tick leases it from `due_at` on."""
    failed = replace(before, state=State.FAILED)
    return replace(move(failed, State.RETRYING, now), due_at=due_at)


def hold_back(before: Occurrence, now: int) -> Occurrence:
    """Take the lease from an occurrence that waits for a limit. It is due at once.

    The lease of one that never began ends as it is due: so `is_held_back` knows it.
    """
    if before.attempts or stands_beside(before.origin):
        return put_off(before, now + 1, now)
    return replace(before, due_at=now + 1, lease_until=now + 1, updated_at=now)


def is_held_back(occurrence: Occurrence) -> bool:
    """Return True if an occurrence that never began waits for a limit, or did as it was claimed.

    An occurrence that stands beside its schedule waits for a limit or a pause as `retrying`.
    """
    if occurrence.attempts:
        return False
    if occurrence.state is State.RETRYING:
        return True
    waits = occurrence.state in (State.SCHEDULED, State.QUEUED)
    return waits and occurrence.lease_until == occurrence.due_at


def is_waiting_job(occurrence: Occurrence) -> bool:
    """Return True if a job waits for its time, and was never leased."""
    return occurrence.state is State.SCHEDULED and is_job(occurrence.origin)


def due_again(held: Occurrence, now: int) -> Occurrence:
    """Return an occurrence that was held back as it is leased: waiting was no lateness."""
    return replace(held, due_at=max(held.due_at, now))


def lose(before: Occurrence, now: int) -> Occurrence:
    """Return the occurrence after the end of its lease.

    It passes through `failed` in the same write.
    """
    then, failed = _after_lost_lease(before, now), replace(before, state=State.FAILED)
    if then.state is State.QUEUED:
        return lease(failed, now)
    return move(failed, then.state, now, then.reason)


def release(before: Occurrence, now: int) -> Occurrence:
    """Give back an occurrence that never began: it is due at once, or lost if its time is over."""
    after = lose(before, now)
    return replace(after, lease_until=now + 1) if after.state is State.QUEUED else after


def write_off(before: Occurrence, now: int) -> Occurrence:
    """Return a leased occurrence as lost: nobody knows whether it ran, and it gets no more try.

    No failure hook tells of it: it may have succeeded, or been told of, after the backup.
    """
    silent = replace(before.policies, on_failure=None)
    failed = replace(before, state=State.FAILED, policies=silent)
    return move(failed, State.DEAD, now, Reason.LOST)


def record(wanted: NewOccurrence, name: str, now: int) -> Occurrence:
    """Return the occurrence that a caller requests, under a lease. `name` is its id."""
    made = Occurrence(
        user_id=wanted.user_id,
        key=wanted.key,
        cron=wanted.cron,
        timezone=wanted.timezone,
        nominal_at=wanted.nominal_at,
        origin=wanted.origin,
        id=name,
        flow=wanted.flow,
        due_at=wanted.due_at,
        priority=wanted.policies.priority,
        redefined_at=wanted.redefined_at,
        policies=wanted.policies,
        idempotency_key=wanted.idempotency_key,
        created_at=now,
    )
    return lease(made, now)


def fail(
    before: Occurrence, reason: Reason, now: int, *, final: bool, said: Said | None = None
) -> Occurrence:
    """Return the occurrence after a failed attempt: another attempt follows, or it is dead."""
    then = Next(State.DEAD, reason)
    if not final:
        then = _after_failure(before, reason, now)
    check_transition(before.state, State.FAILED)
    check_transition(State.FAILED, then.state)
    return _become(before, then, now, said)


def _after_failure(before: Occurrence, reason: Reason, now: int) -> Next:
    policies = before.policies
    if policies.retries and reason is not Reason.REJECTED:
        delay = policies.retry.delay(before.attempts, before.id)
        if delay is not None:
            return Next(State.RETRYING, due_at=now + delay)
    return Next(State.DEAD, reason)


def _after_lost_lease(before: Occurrence, now: int) -> Next:
    """Return the state after a lost lease.

    If the occurrence never began, it may begin within its window. A leased retry is leased again,
    however long it waited.
    """
    policies = before.policies
    if before.state is State.QUEUED and before.attempts:
        return Next(State.QUEUED)
    if before.state is State.QUEUED:
        in_time = now <= _window_start(before) + policies.begin_within_ms
        return Next(State.QUEUED) if in_time else Next(State.DEAD, Reason.LOST)
    again = policies.delivery is not Delivery.AT_MOST_ONCE
    if again and before.attempts < policies.retry.attempts:
        return Next(State.QUEUED)
    return Next(State.DEAD, Reason.LOST)


def _window_start(before: Occurrence) -> int:
    """Return the start of the window in which an occurrence may begin.

    A caught-up misfire has its hour from its claim on: after a long downtime it would otherwise be
    lost at once. A `longest_lateness` always counts from the due time.
    """
    if before.policies.longest_lateness is not None:
        return before.due_at
    return max(before.due_at, before.created_at)


def holds_key(holder: Occurrence, until: int, now: int) -> Hold | None:
    """Return the answer to a call whose key `holder` took; None if the key is free again.

    An occurrence holds its key while it runs or waits for another attempt. After a success it holds
    the key up to `until`; after a failure the key is free. A run by hand holds its key up to
    `until` in any case: its caller requested one run.
    """
    by_hand = holder.origin.startswith(RUN_ORIGIN)
    match end_state(holder.state, holder.reason):
        case State.QUEUED | State.PROCESSING:
            over = lease_over(holder, now)
            lost = over and _after_lost_lease(holder, now).state is State.DEAD
            return None if lost and not by_hand else "in_progress"
        case State.SCHEDULED | State.RETRYING:
            return "duplicate"
        case State.SUCCEEDED:
            return "duplicate" if now < until else None
        case _:
            return "duplicate" if by_hand and now < until else None


def has_ended(occurrence: Occurrence) -> bool:
    """Return True if the outcome of the occurrence is final."""
    return occurrence.state in TERMINAL or occurrence.state is State.DELETED


def lease_over(occurrence: Occurrence, now: int) -> bool:
    """Return True if the occurrence has no lease, or its lease is over."""
    return occurrence.lease_until is None or occurrence.lease_until <= now


def wake_of(occurrence: Occurrence) -> int:
    """Return the time at which a tick must look at an occurrence that has not ended."""
    if occurrence.state in LEASED:
        return occurrence.lease_until or 0
    return occurrence.due_at


def came_back(occurrence: Occurrence) -> bool:
    """Return True if the occurrence is leased again because a lease ended.

    A retry is not: it is due after its attempt began.
    """
    begun_at = occurrence.begun_at
    return occurrence.fence > 1 and (begun_at is None or begun_at >= occurrence.due_at)

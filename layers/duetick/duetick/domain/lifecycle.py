"""What the states of an occurrence allow: the rules behind every store's conditional writes."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

from duetick.domain.firing import Times
from duetick.domain.identity import RUN_ORIGIN, SCHEDULE_ORIGIN
from duetick.domain.policies import Delivery, Policies
from duetick.domain.schedule import Occurrence, Schedule
from duetick.domain.states import TERMINAL, Reason, State

Held: TypeAlias = Literal["duplicate", "in_progress"]


@dataclass(frozen=True, slots=True)
class Next:
    """The state that follows, with its reason when it is the end, and when it is due again."""

    state: State
    reason: Reason | None = None
    due_at: int | None = None


def why_cancelled(occurrence: Occurrence, schedule: Schedule | None) -> Reason | None:
    """Why a claimed occurrence may not begin any more: only timing, a pause or a delete says so.

    An occurrence of an index row without a record (`timing` 0) answers to nobody.
    """
    if occurrence.timing == 0:
        return None
    if schedule is None:
        return Reason.SCHEDULE_DELETED
    if occurrence.origin != SCHEDULE_ORIGIN:
        return None
    if not schedule.enabled:
        return Reason.DISABLED
    if schedule.timing == occurrence.timing or _stands(occurrence, schedule):
        return None
    return Reason.SUPERSEDED


def _stands(occurrence: Occurrence, schedule: Schedule) -> bool:
    """Whether a time that was claimed ahead is one of those to which it was changed meanwhile."""
    nominal_at = occurrence.nominal_at
    times = Times(schedule.cron, schedule.timezone, schedule.anchor, schedule.policies)
    try:
        return nominal_at > schedule.timing and times.after(nominal_at - 1) == nominal_at
    except ValueError:
        return False


def after_failure(policies: Policies, attempts: int, reason: Reason, now: int) -> Next:
    """What a failed attempt leads to: another one, or the end."""
    if policies.retries and reason is not Reason.REJECTED:
        delay = policies.retry.delay(attempts)
        if delay is not None:
            return Next(State.RETRYING, due_at=now + delay)
    return Next(State.DEAD, reason)


def same_outcome(held: Occurrence, state: State, reason: Reason) -> bool:
    """Whether an attempt has ended like that before: its caller says so again.

    A failure is passed through, so it shows as the retry or the death that followed.
    """
    if state is State.FAILED:
        return held.state is State.RETRYING or (held.state, held.reason) == (State.DEAD, reason)
    return (held.state, held.reason) == (state, reason)


def after_lost_lease(occurrence: Occurrence, now: int) -> Next:
    """What the end of a lease leads to. What never began may begin within its window."""
    policies = occurrence.policies
    if occurrence.state is State.QUEUED:
        in_time = now <= _wanted_since(occurrence) + policies.begin_within_ms
        return Next(State.QUEUED) if in_time else Next(State.DEAD, Reason.LOST)
    again = policies.delivery is not Delivery.AT_MOST_ONCE
    if again and occurrence.attempts < policies.retry.attempts:
        return Next(State.QUEUED)
    return Next(State.DEAD, Reason.LOST)


def _wanted_since(occurrence: Occurrence) -> int:
    """When its window begins: a misfire made good has its hour from when it was claimed, or what
    came to nothing after a long downtime would be lost at once. The longest lateness is what it is.
    """
    if occurrence.policies.longest_lateness is not None:
        return occurrence.due_at
    return max(occurrence.due_at, occurrence.created_at)


def held_key(holder: Occurrence, until: int, now: int) -> Held | None:
    """What a caller's own key says that `holder` took; None where it is free again.

    It holds while its occurrence runs or waits for another attempt, and after a success up to
    `until`; a failure lets go of it. A run by hand holds it up to `until` whatever became of it:
    its caller asked for one run.
    """
    by_hand = holder.origin.startswith(RUN_ORIGIN)
    match holder.state:
        case State.QUEUED | State.PROCESSING:
            over = lease_over(holder, now)
            lost = over and after_lost_lease(holder, now).state is State.DEAD
            return None if lost and not by_hand else "in_progress"
        case State.SCHEDULED | State.RETRYING:
            return "duplicate"
        case State.SUCCEEDED:
            return "duplicate" if now < until else None
        case _:
            return "duplicate" if by_hand and now < until else None


def ended(occurrence: Occurrence) -> bool:
    """Whether its outcome is final."""
    return occurrence.state in TERMINAL or occurrence.state is State.DELETED


def lease_over(occurrence: Occurrence, now: int) -> bool:
    """Whether nobody holds it any more."""
    return occurrence.lease_until is None or occurrence.lease_until <= now


def came_back(occurrence: Occurrence) -> bool:
    """Whether it is leased anew because a lease ended. A retry is due after its attempt began."""
    begun_at = occurrence.begun_at
    return occurrence.fence > 1 and (begun_at is None or begun_at >= occurrence.due_at)

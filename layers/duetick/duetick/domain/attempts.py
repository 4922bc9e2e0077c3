"""A begin, a settle and the end of a lease, decided: what an occurrence becomes, for every store.

A store reads the occurrence as it stands, asks here, and writes the answer on the condition that
nothing came in between. Every transition passes through `moved`.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Final, Literal, TypeAlias

from duetick.domain.errors import LeaseLost
from duetick.domain.identity import SCHEDULE_ORIGIN
from duetick.domain.lifecycle import (
    after_failure,
    after_lost_lease,
    ended,
    lease_over,
    why_cancelled,
)
from duetick.domain.occurrences import leased
from duetick.domain.policies import Overlap
from duetick.domain.schedule import Occurrence, Schedule
from duetick.domain.states import LEASED, WAITING, Reason, State, check_reason, check_transition

OnLost: TypeAlias = Callable[[Occurrence], object]
"""Told of each occurrence that a call made dead, reason `lost`, when that is written."""


@dataclass(frozen=True, slots=True)
class Refused:
    """The attempt may not run.

    `stale`: another holds the fence. `duplicate`: it ended, or waits for a retry. `in_progress`:
    it is running. `cancelled`: this call ended it, for `reason`. `unknown`: it was never recorded.
    """

    verdict: Literal["stale", "duplicate", "in_progress", "cancelled", "unknown"]
    state: State | None = None
    reason: Reason | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of an attempt. Its reason is one of its state's; a failure's, one of the dead."""

    state: Literal[State.SUCCEEDED, State.FAILED, State.CANCELLED]
    reason: Reason
    error: str | None = None

    def __post_init__(self) -> None:
        check_transition(State.PROCESSING, self.state)
        check_reason(State.DEAD if self.state is State.FAILED else self.state, self.reason)


SUCCEEDED: Final = Outcome(State.SUCCEEDED, Reason.FIRED)


def moved(held: Occurrence, state: State, now: int, reason: Reason | None = None) -> Occurrence:
    """The same in another state. Raises IllegalTransition where that may not follow.

    A repeat of the state that it is in changes nothing: it comes back as it is.
    """
    if not check_transition(held.state, state):
        return held
    check_reason(state, reason)
    until = held.lease_until if state in LEASED else None
    return replace(held, state=state, reason=reason, lease_until=until, updated_at=now)


def cancelled(held: Occurrence, reason: Reason, now: int) -> Occurrence:
    """The same, ended without having run."""
    return moved(held, State.CANCELLED, now, reason)


def brought(asked: Occurrence, name: str, now: int) -> Occurrence:
    """A new one of a caller that is not the tick, under a lease. `name` is its id.

    Whatever the caller wrote into it of a life before: it begins here, and nobody has tried it yet.
    """
    anew = replace(
        asked,
        id=name,
        state=State.QUEUED,
        reason=None,
        fence=0,
        attempts=0,
        error=None,
        range_end=None,
        count=1,
        begun_at=None,
        created_at=now,
    )
    return leased(anew, now)


def accounted(newest: Occurrence | None, asked: Occurrence) -> Occurrence | None:
    """What already stands for the time that a caller brings: a range may, which it lies in.

    `newest` is the newest of the schedule's own times that the ledger has up to that one.
    """
    if newest is None or asked.origin != SCHEDULE_ORIGIN:
        return None
    return newest if asked.nominal_at <= (newest.range_end or newest.nominal_at) else None


def refuse(held: Occurrence, asked: Occurrence, now: int) -> Refused | None:
    """Why `asked` may not begin, as far as `held`, its own row, tells.

    One of another flow does not exist for the caller.
    """
    if asked.flow and held.flow and asked.flow != held.flow:
        return Refused("unknown")
    if ended(held) or held.state in WAITING:
        return Refused("duplicate", held.state, held.reason)
    if held.state is State.PROCESSING:
        return Refused("in_progress", held.state)
    if asked.fence == held.fence:
        return Refused("stale", held.state) if lease_over(held, now) else None
    return Refused("stale" if asked.fence else "in_progress", held.state)


def recorded_already(held: Occurrence, asked: Occurrence, now: int) -> Refused:
    """What is told to who brings an occurrence that is there."""
    return refuse(held, asked, now) or Refused("in_progress", held.state)


def begun(
    held: Occurrence,
    schedule: Schedule | None,
    now: int,
    another_runs: Callable[[], bool],
    count_run: Callable[[Schedule], bool],
) -> Occurrence:
    """What a begin makes of it: processing, cancelled, or queued still where it has to wait.

    `another_runs` says whether one of the same schedule is under way; it is asked only where that
    matters; so is `count_run`, which counts one more run where the limit of runs allows it. What
    waits displaces those of its schedule that waited before (`displaces`).
    """
    policies = schedule.policies if schedule else held.policies
    reason = why_cancelled(held, schedule)
    if reason is None and policies.overlap is not Overlap.ALLOW and another_runs():
        if policies.overlap is Overlap.WAIT:
            return replace(held, lease_until=now + 1, updated_at=now)
        reason = Reason.OVERLAP
    if reason is None and schedule and schedule.policies.max_runs and not count_run(schedule):
        reason = Reason.QUOTA
    if reason:
        return cancelled(held, reason, now)
    return replace(
        moved(held, State.PROCESSING, now),
        attempts=held.attempts + 1,
        begun_at=now,
        lease_until=now + policies.lease_ms,
        policies=policies,
    )


def not_begun(after: Occurrence) -> Refused | None:
    """What the caller is told of an answer of `begun`; None where the attempt may run."""
    if after.state is State.PROCESSING:
        return None
    if after.state is State.QUEUED:
        return Refused("in_progress", State.QUEUED, Reason.OVERLAP)
    return Refused("cancelled", after.state, after.reason)


def displaces(waiting: Occurrence, other: Occurrence) -> bool:
    """Whether one that has to wait ends another of its schedule: newer ones that wait stay."""
    return other.state is State.QUEUED and other.nominal_at < waiting.nominal_at


def settled(held: Occurrence, outcome: Outcome, now: int) -> Occurrence:
    """The end of an attempt: of the occurrence too, unless another attempt follows."""
    done = replace(held, error=outcome.error)
    if outcome.state is not State.FAILED:
        return moved(done, outcome.state, now, outcome.reason)
    then = after_failure(held.policies, held.attempts, outcome.reason, now)
    after = moved(moved(done, State.FAILED, now), then.state, now, then.reason)
    return after if then.due_at is None else replace(after, due_at=then.due_at)


def settled_with_effects(held: Occurrence | None, fence: int, now: int) -> Occurrence:
    """A success whose effects are written with it. Said again it is refused: they are there.

    Raises LeaseLost where the attempt has ended, as succeeded too, or its fence is stale.
    """
    if held is None or held.fence != fence or held.state is not State.PROCESSING:
        raise LeaseLost("The attempt had ended before the transaction; nothing was written.")
    return settled(held, SUCCEEDED, now)


def lost(held: Occurrence, now: int) -> Occurrence:
    """What the end of a lease makes of it: it passes through failed in the same write."""
    then, failed = after_lost_lease(held, now), replace(held, state=State.FAILED)
    if then.state is State.QUEUED:
        return leased(failed, now)
    return moved(failed, then.state, now, then.reason)


def taken_up(held: Occurrence, now: int) -> Occurrence:
    """One that waited under a lease, one that was lost as that leaves it."""
    return leased(held, now) if held.state in WAITING else lost(held, now)


def released(held: Occurrence, now: int) -> Occurrence:
    """What never began, given back: due again at once, or lost when its time is over."""
    after = lost(held, now)
    return replace(after, lease_until=now + 1) if after.state is State.QUEUED else after


def ousted(held: Occurrence, now: int) -> Occurrence:
    """What a begin makes of another of its schedule that runs with its lease over.

    One that may wait for its successor is due again at once. Any other would meet it and end as an
    overlap: it comes back when its successor's lease is over.
    """
    may_wait = held.policies.overlap is Overlap.WAIT
    return released(held, now) if may_wait else lost(held, now)


def renewed(held: Occurrence, now: int) -> Occurrence:
    """A begun attempt, held longer."""
    return replace(held, lease_until=now + held.policies.lease_ms, updated_at=now)


def tell_lost(on_lost: OnLost | None, after: Iterable[Occurrence]) -> None:
    """Of what was made of ended leases and releases, those that are lost."""
    for one in after:
        if on_lost and one.reason is Reason.LOST:
            on_lost(one)


def trace_of_loss(before: Occurrence, after: Occurrence) -> str | None:
    """What to note of a lost lease. One that never began and begins anew tells it by itself."""
    if before.state is State.QUEUED and after.state is State.QUEUED:
        return None
    return f"lease ended during attempt {before.attempts}"


def trace_of_retry(held: Occurrence, after: Occurrence) -> str | None:
    """What to note of an attempt that another one follows."""
    if after.state is not State.RETRYING:
        return None
    return f"attempt {held.attempts}: {after.error or ''}"


RELEASED: Final = "released: it never began"

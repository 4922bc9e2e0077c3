"""What begin, settle and the end of a lease make of one occurrence: the same in every store."""

from dataclasses import replace

from duetick.domain.lifecycle import after_failure, after_lost_lease, ended, lease_over
from duetick.domain.occurrences import leased
from duetick.domain.schedule import Occurrence
from duetick.domain.states import WAITING, Reason, State
from duetick.ports import Outcome, Refused


def refuse(held: Occurrence, asked: Occurrence, now: int) -> Refused | None:
    """Why `asked` may not begin, as far as its own record tells.

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


def cancelled(held: Occurrence, reason: Reason, now: int) -> Occurrence:
    """The same, ended without having run."""
    return replace(held, state=State.CANCELLED, reason=reason, lease_until=None, updated_at=now)


def settled(held: Occurrence, outcome: Outcome, now: int) -> Occurrence:
    """The same after an attempt: ended, unless another attempt follows."""
    done = replace(held, lease_until=None, error=outcome.error, updated_at=now)
    if outcome.state is not State.FAILED:
        return replace(done, state=outcome.state, reason=outcome.reason)
    then = after_failure(held.policies, held.attempts, outcome.reason, now)
    due_at = held.due_at if then.due_at is None else then.due_at
    return replace(done, state=then.state, reason=then.reason, due_at=due_at)


def after_lease(held: Occurrence, now: int) -> Occurrence:
    """What the end of its lease makes of it."""
    then = after_lost_lease(held, now)
    if then.state is State.QUEUED:
        return leased(held, now)
    return replace(held, state=then.state, reason=then.reason, lease_until=None, updated_at=now)

"""Begin, settle and the end of a lease: the answers to callers, and the traces."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Final, Literal, NamedTuple, TypeAlias

from duetick.domain.errors import LeaseLost
from duetick.domain.failures import Event, note_failure, note_loss
from duetick.domain.identity import is_failure_hook, stands_beside
from duetick.domain.occurrence import Leased, NewOccurrence, Occurrence, storable
from duetick.domain.overlap import beside
from duetick.domain.policies import Policies
from duetick.domain.schedule import Pause, Record
from duetick.domain.states import (
    WAITING,
    Reason,
    State,
    check_reason,
    check_transition,
    end_state,
)
from duetick.domain.transitions import Said, fail, has_ended, holds_key, lease_over, move

OnLost: TypeAlias = Callable[[Occurrence], object]
"""A function that sees each occurrence that a call made dead, reason `lost`, after the write."""


class Begun(NamedTuple):
    """The answer that an attempt may run. `schedule` is the record after the begin, or None."""

    occurrence: Occurrence
    schedule: Record | None


class Refused(NamedTuple):
    """The answer that an attempt may not run.

    `stale`: another lease has the fence. `duplicate`: the occurrence has ended, or waits for its
    time or a retry. `in_progress`: it runs, or waits because of `reason`, or for the `limit` of
    that scope. `cancelled`: this call ended it, for `reason`. `unknown`: it was never recorded.
    `due_at` is the time of the next attempt; of a limit, the time from which on it has a place.
    """

    verdict: Literal["stale", "duplicate", "in_progress", "cancelled", "unknown"]
    state: State | None = None
    reason: Reason | None = None
    due_at: int | None = None
    limit: str | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """The end of an attempt. `error` is for operators; `told` is what the user may read of it.

    The state allows the reason; `failed` has the reasons of `dead`. If a failure is `final`, no
    other attempt follows it, whatever the retry policy says.
    """

    state: Literal[State.SUCCEEDED, State.FAILED, State.CANCELLED]
    reason: Reason
    error: str | None = None
    final: bool = False
    told: str | None = None

    def __post_init__(self) -> None:
        check_transition(State.PROCESSING, self.state)
        check_reason(State.DEAD if self.state is State.FAILED else self.state, self.reason)
        for name, text in (("error", self.error), ("told", self.told)):
            if text is not None:
                object.__setattr__(self, name, storable(text))

    def is_said_of(self, ended: Occurrence) -> bool:
        """Return True if the attempt has ended with this outcome before.

        Then the caller repeats itself. No occurrence stays `failed`: a failure shows as the retry
        or the death that followed.
        """
        if self.state is State.FAILED:
            dead = (ended.state, ended.reason) == (State.DEAD, self.reason)
            return dead or ended.state is State.RETRYING
        return (ended.state, ended.reason) == (self.state, self.reason)


SUCCEEDED: Final = Outcome(State.SUCCEEDED, Reason.FIRED)


def reject(why: str) -> Outcome:
    """Return the end of an attempt that cannot run. The user may read why."""
    return Outcome(State.FAILED, Reason.REJECTED, why, told=why)


_NOT_DEPLOYED: Final = "not_deployed: "
"""The beginning of the error of an occurrence whose flow, or action, is not in the deployment."""


def reject_gone(why: str) -> Outcome:
    """Return the end of an attempt whose flow, or action, is not in the deployment."""
    return replace(reject(why), error=f"{_NOT_DEPLOYED}{why}")


def died_of_gone(occurrence: Occurrence) -> bool:
    """Return True if the occurrence is dead because its flow, or action, was not deployed."""
    error = occurrence.error or ""
    return occurrence.reason is Reason.REJECTED and error.startswith(_NOT_DEPLOYED)


class Settled(NamedTuple):
    """An attempt before and after its end. `event` is the trace that it leaves, if any."""

    before: Occurrence
    after: Occurrence
    event: Event | None = None


class CallerKey(NamedTuple):
    """An idempotency key that an outside caller chose. At most one run has it within a flow."""

    flow: str
    key: str
    window_ms: int


def refuse(occurrence: Occurrence, leased: Leased, now: int) -> Refused | None:
    """Return the refusal of a begin, as far as the occurrence alone decides it, or None.

    To the caller, an occurrence of another flow does not exist.
    """
    if leased.flow and occurrence.flow and leased.flow != occurrence.flow:
        return Refused("unknown")
    if has_ended(occurrence):
        ended = end_state(occurrence.state, occurrence.reason)
        return Refused("duplicate", ended, occurrence.reason)
    if occurrence.state in WAITING:
        return Refused("duplicate", occurrence.state, due_at=occurrence.due_at)
    if occurrence.state is State.PROCESSING:
        return Refused("in_progress", occurrence.state)
    if leased.fence != occurrence.fence or lease_over(occurrence, now):
        return Refused("stale", occurrence.state)
    return None


def refuse_again(occurrence: Occurrence, wanted: NewOccurrence | None = None) -> Refused:
    """Return the refusal of a request for an occurrence that is recorded already."""
    if wanted and wanted.flow and occurrence.flow and wanted.flow != occurrence.flow:
        return Refused("unknown")
    if has_ended(occurrence):
        ended = end_state(occurrence.state, occurrence.reason)
        return Refused("duplicate", ended, occurrence.reason)
    if occurrence.state in WAITING:
        return Refused("duplicate", occurrence.state, due_at=occurrence.due_at)
    return Refused("in_progress", occurrence.state)


def refuse_key(holder: Occurrence, until: int, now: int) -> Refused | None:
    """Return the refusal of a caller's key that `holder` took up to `until`, or None."""
    verdict = holds_key(holder, until, now)
    due_at = holder.due_at if holder.state in WAITING else None
    return Refused(verdict, holder.state, holder.reason, due_at) if verdict else None


def refuse_begun(after: Occurrence) -> Refused | None:
    """Return the refusal for an occurrence after its begin; None if the attempt may run."""
    if after.state is State.PROCESSING:
        return None
    if after.state is State.QUEUED:
        return Refused("in_progress", State.QUEUED, Reason.OVERLAP)
    if after.state is State.RETRYING:
        why = Reason.PAUSED if after.lease_until is None else Reason.OVERLAP
        return Refused("in_progress", State.RETRYING, why, after.due_at)
    return Refused("cancelled", after.state, after.reason)


def policies_now(occurrence: Occurrence, record: Record | None) -> Policies:
    """Return the policies of an occurrence under the current definition. A failure hook has its
    own.
    """
    if record is None or is_failure_hook(occurrence.origin):
        return occurrence.policies
    return beside(record.policies) if stands_beside(occurrence.origin) else record.policies


def counts_as_run(occurrence: Occurrence) -> bool:
    """Return True if the begin of the occurrence uses up a run.

    The first begin does, unless the occurrence stands beside its schedule.
    """
    return not occurrence.attempts and not stands_beside(occurrence.origin)


def start(occurrence: Occurrence, record: Record | None, now: int) -> Occurrence:
    """Return the occurrence with one more attempt running, under the current definition."""
    policies = policies_now(occurrence, record)
    return replace(
        move(occurrence, State.PROCESSING, now),
        attempts=occurrence.attempts + 1,
        begun_at=now,
        lease_until=now + policies.lease_ms,
        policies=policies,
        redefined_at=record.redefined_at
        if record and occurrence.redefined_at
        else occurrence.redefined_at,
        labels=record.labels if record else occurrence.labels,
    )


def settle(occurrence: Occurrence, outcome: Outcome, now: int) -> Settled:
    """End an attempt. The occurrence ends too, unless another attempt follows."""
    said = Said(outcome.error, outcome.told)
    if outcome.state is not State.FAILED:
        return Settled(occurrence, move(occurrence, outcome.state, now, outcome.reason, said))
    after = fail(occurrence, outcome.reason, now, final=outcome.final, said=said)
    if after.state is not State.RETRYING:
        return Settled(occurrence, after)
    note = note_failure(occurrence.attempts, after.error)
    return Settled(occurrence, after, Event(now, occurrence.state, after.state, note, after.told))


def gives_run_back(occurrence: Occurrence, outcome: Outcome) -> bool:
    """Return True if this attempt was counted as a run, and its schedule was rejected.

    Then the schedule, not the action, failed. Only the first attempt is counted.
    """
    if stands_beside(occurrence.origin):
        return False
    return occurrence.attempts == 1 and outcome.reason is Reason.REJECTED


def check_running(occurrence: Occurrence | None, leased: Leased) -> Occurrence:
    """Return the attempt that runs under the fence.

    Raises LeaseLost if the fence is stale or the attempt has ended, even with success.
    """
    if (
        occurrence is None
        or occurrence.fence != leased.fence
        or occurrence.state is not State.PROCESSING
    ):
        raise LeaseLost("The attempt had ended before the transaction; nothing was written.")
    return occurrence


def tell_lost(on_lost: OnLost | None, after: Iterable[Occurrence]) -> None:
    """Pass each lost occurrence to `on_lost`."""
    for one in after:
        if on_lost and one.reason is Reason.LOST:
            on_lost(one)


def pause_of(occurrence: Occurrence, record: Record | None, now: int) -> Pause | None:
    """Return the pause that holds an occurrence, or None. It holds what has begun once, and what a
    backfill has brought, but no failure hook.
    """
    is_held = occurrence.attempts or stands_beside(occurrence.origin)
    tells = is_failure_hook(occurrence.origin)
    pause = record.pause if record and is_held and not tells else None
    return pause if pause and pause.holds(now) else None


def trace_loss(before: Occurrence, after: Occurrence) -> str | None:
    """Return the note of a lost lease, or None.

    An occurrence that never began and is leased again needs no note.
    """
    if before.state in WAITING:
        return None
    if before.state is State.QUEUED:
        return None if after.state is State.QUEUED else trace_wait(after)
    return note_loss(before.attempts)


def trace_wait(after: Occurrence) -> str | None:
    """Return the note of a lease that a begin took away; None if it did not."""
    refused = refuse_begun(after)
    if refused is None or refused.state is not State.RETRYING:
        return None
    paused = refused.reason is Reason.PAUSED
    return "put off: its schedule is paused" if paused else "put off: another one has begun"


RELEASED: Final = "released: it never began"
HELD_BACK: Final = "put off: a limit has no place"

"""The changes that operators make to one occurrence: retry, cancel, delete.

A retry makes a dead occurrence due now, under the same name. If its attempts are spent, it gets
exactly one more. Before it begins, it waits for a pause, and for another one in the place of its
schedule, as any occurrence does that has begun once.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import Final, NamedTuple

from duetick.domain.attempts import counts_as_run, pause_of
from duetick.domain.cancelling import why_cancelled
from duetick.domain.errors import OccurrenceConflict
from duetick.domain.failures import Event, Verb, note_failure, note_operated
from duetick.domain.group_pauses import NO_PAUSES, Pauses, pause_of_begin
from duetick.domain.identity import stands_beside
from duetick.domain.occurrence import Occurrence
from duetick.domain.overlap import may_be_leased, reserve
from duetick.domain.schedule import Record
from duetick.domain.states import LEASED, TERMINAL, WAITING, Reason, State, check_transition
from duetick.domain.transitions import cancel, move, put_off


class Operator(NamedTuple):
    """The operator who makes a change, and the reason that the operator gives for it."""

    who: str
    why: str = ""

    def note(self, verb: Verb) -> str:
        """Return the note of a change."""
        return note_operated(verb, self.who, self.why)


class Operated(NamedTuple):
    """An occurrence after an operator's change. If it was so already, `changed` is False."""

    occurrence: Occurrence
    changed: bool


USED_UP: Final = (
    "The runs that its schedule may have are used up, so it would not begin; allow more first."
)
_IN_VAIN: Final = {
    Reason.SCHEDULE_DELETED: "Its schedule was deleted, so it would not begin.",
    Reason.DISABLED: "Its schedule is paused or disabled, so it would not begin; resume it first.",
    Reason.SUPERSEDED: "The fire times of its schedule were changed, so it would not begin; run "
    "the schedule by hand instead.",
    Reason.PAUSED: "Its user, its flow or everything is paused now, or was at its time, so it "
    "would not begin; resume that, or run the schedule by hand instead.",
    Reason.QUOTA: USED_UP,
}
NO_ROOM: Final = (
    "Too many occurrences of its schedule are under way; retry it when some of them have ended."
)


def is_under_way(occurrence: Occurrence) -> bool:
    """Return True if an occurrence runs, or will begin by itself."""
    return occurrence.state in LEASED | WAITING


def check_retry(occurrence: Occurrence) -> None:
    """Raise OccurrenceConflict unless the occurrence is dead and can be tried again."""
    if occurrence.state is not State.DEAD:
        raise _wrong_state(occurrence, "retried", "one that is dead")
    if occurrence.reason is Reason.POISONED:
        raise OccurrenceConflict(
            "It is poisoned: the cron or the zone of its row could not be read, and there is "
            "nothing to run. Mend its schedule and resume it."
        )


def retry(
    dead: Occurrence,
    record: Record | None,
    in_place: Iterable[Occurrence],
    now: int,
    pauses: Pauses = NO_PAUSES,
) -> Occurrence:
    """Return a dead occurrence that is due now. No call that had a lease of it may begin or settle.

    It is queued, and the next tick leases it. If it has begun once, and its schedule is paused or
    another occurrence has the place, it waits for that as a retry. Raises OccurrenceConflict if it
    would not begin.
    """
    check_transition(dead.state, State.QUEUED)
    policies = dead.policies
    if record and not stands_beside(dead.origin):
        policies = replace(policies, overlap=record.policies.overlap)
    due = replace(
        dead,
        state=State.QUEUED,
        reason=None,
        due_at=now,
        fence=dead.fence + 1,
        lease_until=now + 1,
        policies=policies,
        error=None,
        told=None,
        updated_at=now,
    )
    in_vain = why_cancelled(due, record) or _why_not_begun(due, record, pauses, now)
    if in_vain:
        raise OccurrenceConflict(_IN_VAIN[in_vain])
    pause = pause_of(due, record, now)
    if pause:
        return put_off(due, pause.end, now)
    waiting = put_off(due, now, now) if due.attempts else due
    return due if may_be_leased(waiting, in_place) else reserve(waiting, now)


def _why_not_begun(
    due: Occurrence, record: Record | None, pauses: Pauses, now: int
) -> Reason | None:
    """Return the reason why the first begin of an occurrence would cancel it, or None. What has
    begun once, and what a backfill has brought, waits for a pause and is no new run.
    """
    if not counts_as_run(due):
        return None
    if pause_of_begin(due, pauses, now):
        return Reason.PAUSED
    return Reason.QUOTA if record and record.used_up else None


def trace_retry(dead: Occurrence, after: Occurrence, by: Operator) -> list[Event]:
    """Return the events of a retry. The failure that the fields of a dead one show moves there."""
    events = [Event(after.updated_at, dead.state, after.state, by.note("retried"))]
    if dead.attempts and dead.reason is not Reason.LOST:
        note = note_failure(dead.attempts, dead.error)
        failed = Event(dead.updated_at, State.PROCESSING, dead.state, note, dead.told)
        events.insert(0, failed)
    return events


def counts_again(dead: Occurrence, record: Record | None) -> bool:
    """Return True if a retry uses up a run: its rejected attempt gave one back.

    An occurrence of a backfill never used up a run.
    """
    is_its_own = record is not None and dead.redefined_at >= record.created_at
    if stands_beside(dead.origin):
        return False
    return is_its_own and dead.attempts == 1 and dead.reason is Reason.REJECTED


def call_off(occurrence: Occurrence, now: int) -> Occurrence:
    """Return an occurrence that an operator ended. A running attempt can no longer settle.

    Raises OccurrenceConflict if it has ended otherwise.
    """
    if not is_under_way(occurrence):
        raise _wrong_state(occurrence, "cancelled", "one that runs or waits")
    return cancel(occurrence, Reason.OPERATOR, now)


def strip(occurrence: Occurrence, now: int) -> Occurrence:
    """Return what stays of a deleted occurrence: its name, its times, and the reason of its end.

    So its time still has its outcome, and nothing fires again. Raises OccurrenceConflict if it may
    still begin or settle.
    """
    begun = occurrence.state is State.QUEUED and occurrence.attempts
    if begun or occurrence.state not in TERMINAL | {State.QUEUED}:
        ended = "one that has ended, or is queued and never began; cancel it first"
        raise _wrong_state(occurrence, "deleted", ended)
    reason = occurrence.reason or Reason.OPERATOR
    bare = replace(occurrence, error=None, told=None, labels={}, death=None)
    return move(bare, State.DELETED, now, reason)


def _wrong_state(occurrence: Occurrence, verb: str, wanted: str) -> OccurrenceConflict:
    reason = f", {occurrence.reason}" if occurrence.reason else ""
    return OccurrenceConflict(f"It is {occurrence.state}{reason}; {verb} is only {wanted}.")

"""The end of a schedule: it is done if it will never fire again.

The change that takes the row of a schedule away sets the end of its record. A paused schedule is
not done.
"""

from dataclasses import replace
from typing import Final, Literal, NamedTuple, TypeAlias

from duetick.domain.pausing import is_paused
from duetick.domain.policies import DAY, Policies
from duetick.domain.schedule import Pause, Record

ScheduleState: TypeAlias = Literal["active", "paused", "done"]

KEPT_DONE_MS: Final = 30 * DAY * 1_000
"""The time for which a schedule that is done is kept."""

KEPT_GONE_MS: Final = 400 * DAY * 1_000
"""The time for which a store keeps the mark and the definitions of a deleted schedule: longer than
its history.
"""


class EndTimes(NamedTuple):
    """The instant since which a schedule is done, and the instant at which a purge looks at it."""

    done_at: int | None = None
    purge_at: int | None = None


ACTIVE: Final = EndTimes()


def times_of_end(user_id: str, policies: Policies, pause: Pause | None, at: int) -> EndTimes:
    """Return the end times of an enabled schedule that will never fire again, as of `at`.

    If a pause holds, the schedule is done when the pause is over. A static schedule stays until its
    flow no longer declares it.
    """
    if pause and pause.holds(at):
        return EndTimes(None, pause.until)
    if not user_id:
        return EndTimes(at, None)
    return EndTimes(at, at if policies.after_completion == "delete" else at + KEPT_DONE_MS)


def set_end(record: Record, *, fires_again: bool, at: int) -> Record:
    """Return the record with the end times of a schedule that fires again, or never again."""
    times = ACTIVE
    if record.enabled and not fires_again:
        times = times_of_end(record.user_id, record.policies, record.pause, at)
    if times == (record.done_at, record.purge_at):
        return record
    return replace(record, done_at=times.done_at, purge_at=times.purge_at)


def keep_end(record: Record) -> Record:
    """Return the record after a change that moves none of its times. `done_at` stays.

    `purge_at` follows the policies of the record, which may be new.
    """
    if record.done_at is None:
        return record
    return set_end(record, fires_again=False, at=record.done_at)


def may_leave(record: Record, now: int) -> bool:
    """Return True if a purge may look at the schedule.

    While an occurrence runs, `purge_at` is the end of its lease. A schedule that leaves with that
    occurrence need not wait for it.
    """
    if record.purge_at is None:
        return False
    return record.purge_at <= now or leaves_at_end(record)


def leaves_at_end(record: Record) -> bool:
    """Return True if the schedule is done, and deleted when its last occurrence ends."""
    return record.done_at is not None and record.policies.after_completion == "delete"


def counts(record: Record | None) -> bool:
    """Return True if the schedule counts in its user's quota: it is active or paused."""
    return record is not None and record.done_at is None


def done_since(record: Record, now: int) -> int | None:
    """Return the instant since which the schedule is done, or None.

    After a pause with an end, that is the end, although a purge records it only later.
    """
    over = record.purge_at is not None and record.purge_at <= now
    return record.purge_at if record.done_at is None and over else record.done_at


def state_of(record: Record, now: int) -> ScheduleState:
    """Return the state of a schedule."""
    if done_since(record, now) is not None:
        return "done"
    return "paused" if is_paused(record, now) else "active"

"""What a change of a schedule means for its index row and the ledger: one plan for every store."""

import json
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from duetick.domain.errors import InvalidSchedule, PoisonedRow, QuotaReached
from duetick.domain.expression import parse, sub_minute
from duetick.domain.firing import Missed, Times, unfired
from duetick.domain.occurrences import ranged
from duetick.domain.pausing import nothing_left, resumed
from duetick.domain.schedule import IndexRow, Json, Occurrence, Schedule, check_timing
from duetick.domain.states import Reason

Problem: TypeAlias = Literal["missing", "stray", "stale", "unreadable"]
"""See `ports.Difference`."""


@dataclass(frozen=True, slots=True)
class Before:
    """What a store holds of (user_id, key) as a change begins.

    `row` is the index row, unless it is poisoned; `fired_through` the newest nominal time that was
    claimed; `defined_at` the newest `timing` that (user_id, key) ever had, deletes too, or 0: it
    outlives the record.
    """

    schedule: Schedule | None
    row: IndexRow | None
    fired_through: int | None
    defined_at: int


@dataclass(frozen=True, slots=True)
class Change:
    """What to write: the record, its index row (None: no row) and ranges for the ledger.

    `redefines` says that fire times change from `schedule.timing` on: a high-water mark beyond it,
    which a claim ahead left, comes back to it, or it would hide times that are new; but not into a
    range, which a claim made whose clock was ahead of this change's. What had been claimed stays
    in the ledger: ranges and claims leave it out (`occurrences.apart`).
    """

    schedule: Schedule
    row: IndexRow | None
    ranges: tuple[Occurrence, ...]
    redefines: bool


def row_of(schedule: Schedule, next_fire_at: int) -> IndexRow:
    """The index row that a record asks for."""
    return IndexRow(
        user_id=schedule.user_id,
        key=schedule.key,
        cron=schedule.cron,
        timezone=schedule.timezone,
        next_fire_at=next_fire_at,
        flow=schedule.flow,
        anchor=schedule.anchor,
        timing=schedule.timing,
        policies=schedule.policies,
    )


def fresh_row(schedule: Schedule, now: int) -> IndexRow | None:
    """The row with the first time after `now`; None where it never fires again."""
    if schedule.used_up:
        return None
    row = row_of(schedule, now)
    next_fire_at = Times.of(row).after(now)
    return None if next_fire_at is None else replace(row, next_fire_at=next_fire_at)


def due_range(
    row: IndexRow | None, fired_through: int | None, now: int, reason: Reason
) -> tuple[Occurrence, ...]:
    """The nominal times up to `now` that were not claimed, as one cancelled range."""
    if row is None or row.next_fire_at > now:
        return ()
    times = Times.of(row)
    try:
        fresh = unfired(row, fired_through)
        if fresh is None or fresh.next_fire_at > now:
            return ()
        first = fresh.next_fire_at
        missed = Missed(first, times.newest(first, now) or first, 1 + times.count(first, now))
    except ValueError:
        missed = Missed(row.next_fire_at, row.next_fire_at, 1)
    return (ranged(row, missed, reason, now),)


def held_back(schedule: Schedule, since: int, now: int, reason: Reason) -> tuple[Occurrence, ...]:
    """The nominal times of (since, now] in which it was not indexed, as one cancelled range."""
    try:
        return _held_back(row_of(schedule, now), since, now, reason)
    except ValueError:
        return ()


def _held_back(row: IndexRow, since: int, now: int, reason: Reason) -> tuple[Occurrence, ...]:
    times = Times.of(row)
    first, last = times.after(since), times.newest(since, now)
    if first is None or last is None:
        return ()
    return (ranged(row, Missed(first, last, times.count(since, now)), reason, now),)


def restored(row: IndexRow, now: int) -> tuple[IndexRow | None, tuple[Occurrence, ...]]:
    """A poisoned row with a fresh time, None where there is none, and what it missed meanwhile."""
    try:
        fresh = Times.of(row).after(now)
        missed = _held_back(row, row.next_fire_at, now, Reason.MISSED)
    except ValueError as error:
        raise PoisonedRow(f"{row.user_id}/{row.key} still cannot be read: {error}") from error
    return None if fresh is None else replace(row, next_fire_at=fresh), missed


def drifted(row: IndexRow, fired_through: int | None, now: int) -> bool:
    """Whether a record's row waits for another time than the next one after all it has seen.

    A row that is due, or was set back, tells nothing. Raises ValueError where it cannot be read.
    """
    seen = max(now, row.timing, fired_through or 0)
    return row.next_fire_at > seen and row.next_fire_at != Times.of(row).after(seen)


def problem_of(
    record: Schedule | None, row: IndexRow | None, fired_through: int | None, now: int
) -> Problem | None:
    """Where a record and its index row disagree; `row` is one that is not poisoned.

    A row without a record, and no record's (`timing` 0), is left alone.
    """
    if record is None or not record.enabled:
        return "stray" if row and (record or row.timing) else None
    try:
        if row is None:
            return "missing" if fresh_row(record, now) else None
        same = row == row_of(record, row.next_fire_at) and not drifted(row, fired_through, now)
    except ValueError:
        return "unreadable"
    return None if same else "stale"


def repair(schedule: Schedule, row: IndexRow | None, fired_through: int | None, now: int) -> Change:
    """What brings the index row of an enabled record back in line with it."""
    if row is not None and row.next_fire_at <= now:
        lost = due_range(row, fired_through, now, Reason.SUPERSEDED)
    else:
        lost = held_back(schedule, max(schedule.timing, fired_through or 0), now, Reason.MISSED)
    return Change(schedule, fresh_row(schedule, now), lost, False)


def too_many(at_most: int) -> QuotaReached:
    """The refusal of one more schedule."""
    return QuotaReached(
        "schedules",
        at_most,
        f"A user may have {at_most} schedules, and these are there. Delete one that is not "
        "needed, or have DUETICK_QUOTA_SCHEDULES raised.",
    )


def plan_put(
    before: Before, wanted: Schedule, now: int, *, look_ahead: bool = False
) -> Change | None:
    """What putting `wanted` changes; None where it is as it was.

    Raises ValueError with a helpful message where its expression or zone is bad, or where it is
    below a minute and no tick looks ahead.
    """
    check_timing(wanted.cron, wanted.timezone)
    current = before.schedule
    if not look_ahead:
        _check_pace(current, wanted)
    if current is None:
        return _create(before, wanted, now)
    after = replace(_kept(current, wanted), version=current.version + 1, updated_at=now)
    if _same(replace(after, version=current.version, updated_at=current.updated_at), current):
        return None
    if current.times == wanted.times and current.enabled == wanted.enabled:
        return Change(after, before.row and row_of(after, before.row.next_fire_at), (), False)
    return _retime(before, after, now)


def _same(one: Schedule, other: Schedule) -> bool:
    """Whether nothing is changed. To Python 1 is True, and 1.0; to JSON it is neither."""
    return one == other and _spelled(one.input) == _spelled(other.input)


def _spelled(value: Json) -> str:
    return json.dumps(value, sort_keys=True)


def _check_pace(current: Schedule | None, wanted: Schedule) -> None:
    """Refuse a rate below a minute; one that was taken while ticks looked ahead may be paused."""
    paused = current is not None and current.cron == wanted.cron and not wanted.enabled
    if sub_minute(wanted.cron) and not paused:
        raise InvalidSchedule(
            "cron",
            f"{parse(wanted.cron)} is below a minute, and cron resolves to the minute: the tick "
            "runs once in each, so that only look-ahead can keep it. Turn look-ahead on, or write "
            "60 seconds or more, for example: rate(60 seconds).",
        )


def _kept(current: Schedule, wanted: Schedule) -> Schedule:
    """`wanted` with the fields that are the store's, as they are."""
    return replace(
        wanted,
        version=current.version,
        timing=current.timing,
        anchor=current.anchor,
        created_at=current.created_at,
        updated_at=current.updated_at,
        disabled_at=current.disabled_at,
        next_fire_at=current.next_fire_at,
        last_run_at=current.last_run_at,
        defect=current.defect,
        runs=current.runs,
    )


def _create(before: Before, wanted: Schedule, now: int) -> Change:
    later = max(now, before.defined_at + 1, 1)  # than any life of this name before
    made = replace(
        wanted,
        version=1,
        timing=later,
        anchor=now,
        created_at=later,
        updated_at=later,
        disabled_at=None if wanted.enabled else now,
        next_fire_at=None,
        last_run_at=None,
        defect=None,
        runs=0,
    )
    stray = due_range(before.row, before.fired_through, now, Reason.SUPERSEDED)
    return Change(made, _row_if_enabled(made, now), stray, True)


def paused_so_far(current: Schedule, now: int) -> tuple[Occurrence, ...]:
    """What a pause with an end has kept from firing since its fire times last changed.

    Whatever was claimed meanwhile, it fires after the end: its mark hides nothing of the pause.
    """
    pause = current.pause
    if pause is None or pause.until is None:
        return ()
    since = max(pause.since, current.timing)
    return held_back(resumed(current), since, min(now, pause.until - 1), Reason.PAUSED)


def unfired_so_far(before: Before, now: int, reason: Reason) -> tuple[Occurrence, ...]:
    """What a change of timing, or a delete, ends: a pause, and what was due, for that reason."""
    current = before.schedule
    if current is None:
        return ()
    if current.enabled:
        due = due_range(before.row, before.fired_through, now, reason)
        return paused_so_far(current, now) + due
    since = max(current.timing, before.fired_through or 0)
    return held_back(resumed(current), since, now, Reason.PAUSED)


def _retime(before: Before, after: Schedule, now: int) -> Change:
    timed = replace(
        after,
        timing=max(now, before.defined_at + 1, 1),
        disabled_at=None if after.enabled else now,
        defect=None,
    )
    reason = Reason.SUPERSEDED if after.enabled else Reason.DISABLED
    return Change(timed, _row_if_enabled(timed, now), unfired_so_far(before, now, reason), True)


def _row_if_enabled(schedule: Schedule, now: int) -> IndexRow | None:
    if not schedule.enabled:
        return None
    if schedule.used_up:
        raise InvalidSchedule(
            "policies.max_runs", f"all {schedule.runs} runs are used up; allow more, or pause it."
        )
    row = fresh_row(schedule, now)
    if row is None and schedule.pause:
        raise nothing_left(schedule)
    if row is None:
        raise InvalidSchedule(
            "cron",
            f"{schedule.cron!r} has no time after now, within its start and end; "
            "give one that lies in the future.",
        )
    return row

"""The pause of a schedule, and its end."""

from dataclasses import replace
from typing import TypeVar

from duetick.domain.errors import InvalidSchedule
from duetick.domain.schedule import Pause, Record, Schedule

S = TypeVar("S", bound=Schedule)


def pause(schedule: S, note: str, until: int | None, now: int) -> S:
    """Return the paused schedule.

    A pause without an end disables it. A pause with an end moves the start of its window there.
    """
    resumed = resume(schedule)
    if until is None:
        return replace(resumed, enabled=False, pause=Pause(now, note))
    if until <= now:
        raise InvalidSchedule("until", "lies in the past; name a time to come, or none.", "past")
    starts_at = resumed.policies.starts_at
    later = max(until, starts_at or 0)
    if resumed.policies.ends_at is not None and later > resumed.policies.ends_at:
        raise refuse_nothing_left(resumed)
    return replace(
        resumed,
        policies=replace(resumed.policies, starts_at=later),
        pause=Pause(now, note, until, starts_at),
    )


def refuse_nothing_left(schedule: Schedule) -> InvalidSchedule:
    """Return the refusal of a pause after which the schedule would never fire."""
    return InvalidSchedule(
        "until",
        f"{schedule.cron!r} has no time left after the pause, within its start and end; "
        "pause it without an end, or delete it.",
        "no_time_left",
    )


def refuse_never_firing(schedule: Record, now: int, *, would_else: bool) -> InvalidSchedule:
    """Return the refusal of a schedule that never fires. It names the field in the way.

    If `would_else`, the schedule would fire without its end.
    """
    if schedule.used_up:
        used = f"all {schedule.runs} runs are used up; allow more, or pause it."
        return InvalidSchedule("policies.max_runs", used, "used_up")
    if schedule.pause:
        return refuse_nothing_left(schedule)
    refusal, cron = end_over(schedule, now), schedule.cron
    if refusal:
        return refusal
    if would_else:
        early = f"comes before the first time of {cron!r}; put it later, or leave it out."
        return InvalidSchedule("policies.ends_at", early, "no_time_left")
    last = f"{cron!r} has no time after now; give one that lies in the future."
    return InvalidSchedule("cron", last, "past")


def resume(schedule: S) -> S:
    """Return the schedule as it was before the pause, and enabled."""
    ended = schedule.pause
    if ended is None or ended.until is None:
        return replace(schedule, enabled=True, pause=None)
    policies = replace(schedule.policies, starts_at=ended.starts_at)
    return replace(schedule, enabled=True, policies=policies, pause=None)


def end_over(schedule: Schedule, now: int) -> InvalidSchedule | None:
    """Return the refusal of an end that is over, or None. It reads neither cron nor zone."""
    ends_at = schedule.policies.ends_at
    if ends_at is None or ends_at > now:
        return None
    past = "lies in the past; put it later, or leave it out."
    return InvalidSchedule("policies.ends_at", past, "past")


def ends_pause(current: Schedule, wanted: Schedule) -> bool:
    """Return True if only the end of a pause changes the fire times."""
    was_paused = current.pause is not None or not current.enabled
    is_resumed = was_paused and wanted.pause is None and wanted.enabled
    return is_resumed and wanted.times == resume(current).times


def only_pauses(current: Schedule, wanted: Schedule) -> bool:
    """Return True if a pause with an end is the only change of the fire times."""
    return wanted.pause is not None and resume(wanted).times == resume(current).times


def is_paused(schedule: Schedule, now: int) -> bool:
    """Return True if the schedule does not fire now because it is disabled or paused."""
    found = schedule.pause
    return not schedule.enabled or (found is not None and found.holds(now))


def keep_pause(current: Schedule, wanted: S, now: int) -> S:
    """Return `wanted` under the pause of `current`."""
    if not is_paused(current, now):
        return wanted
    found = current.pause or Pause(now)
    starts_at = wanted.policies.starts_at if found.until is not None else None
    kept = replace(found, starts_at=starts_at)
    return replace(pause(wanted, found.note, found.until, now), pause=kept)

"""What a pause changes of a schedule, and what takes it back."""

from dataclasses import replace

from duetick.domain.errors import InvalidSchedule
from duetick.domain.schedule import Pause, Schedule


def paused(schedule: Schedule, note: str, until: int | None, now: int) -> Schedule:
    """Without an end it is disabled; with one, its window begins there."""
    bare = resumed(schedule)
    if until is None:
        return replace(bare, enabled=False, pause=Pause(now, note))
    if until <= now:
        raise InvalidSchedule("until", "lies in the past; name a time to come, or none.")
    starts_at = bare.policies.starts_at
    later = max(until, starts_at or 0)
    if bare.policies.ends_at is not None and later > bare.policies.ends_at:
        raise nothing_left(bare)
    return replace(
        bare,
        policies=replace(bare.policies, starts_at=later),
        pause=Pause(now, note, until, starts_at),
    )


def nothing_left(schedule: Schedule) -> InvalidSchedule:
    """The refusal of a pause after whose end it would never fire."""
    return InvalidSchedule(
        "until",
        f"{schedule.cron!r} has no time left after the pause, within its start and end; "
        "pause it without an end, or delete it.",
    )


def resumed(schedule: Schedule) -> Schedule:
    """As it was before the pause, and enabled."""
    pause = schedule.pause
    if pause is None or pause.until is None:
        return replace(schedule, enabled=True, pause=None)
    policies = replace(schedule.policies, starts_at=pause.starts_at)
    return replace(schedule, enabled=True, policies=policies, pause=None)


def is_paused(schedule: Schedule, now: int) -> bool:
    """Whether it does not fire now because somebody wanted that."""
    pause = schedule.pause
    return not schedule.enabled or (pause is not None and pause.holds(now))


def as_paused_as(current: Schedule, wanted: Schedule, now: int) -> Schedule:
    """`wanted`, under the pause that `current` is under."""
    if not is_paused(current, now):
        return wanted
    pause = current.pause or Pause(now)
    until = pause.until
    return replace(paused(wanted, pause.note, until, now), pause=_since(wanted, pause))


def _since(wanted: Schedule, pause: Pause) -> Pause:
    starts_at = wanted.policies.starts_at if pause.until is not None else None
    return replace(pause, starts_at=starts_at)

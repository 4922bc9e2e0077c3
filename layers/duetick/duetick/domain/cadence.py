"""T-13: the warning of a schedule that fires more often than the tick comes, for every caller."""

from typing import Final

from duetick.domain.expression import smallest_gap, sub_minute
from duetick.domain.schedule import Record, Schedule

EACH_MINUTE: Final = 60
"""The usual cadence in seconds. Cron resolves to the minute: only a rate may be tighter."""


def least_gap(schedule: Schedule, now: int) -> int:
    """Return the least time between two fires, from the first one of the window on."""
    policies = schedule.policies
    return smallest_gap(
        schedule.cron,
        schedule.timezone,
        max(now, (policies.starts_at or 0) - 1),
        gap=policies.gap,
        repeat=policies.repeat,
        anchor=Record.of(schedule).anchor or now,
    )


def warning(schedule: Schedule, tick_seconds: int, now: int) -> str | None:
    """Return a warning if the schedule fires more often than the tick comes, else None.

    If the cron or the zone of a paused schedule cannot be read, there is none.
    """
    try:
        if tick_seconds <= EACH_MINUTE and not sub_minute(schedule.cron):
            return None
        gap = least_gap(schedule, now)
    except ValueError:
        return None
    if gap >= tick_seconds * 1_000:
        return None
    return (
        f"fires up to each {gap / 1_000:g} s, and a tick comes each {tick_seconds} s: "
        "what comes due between two ticks waits, or collapses to the newest"
    )

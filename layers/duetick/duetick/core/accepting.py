"""What must hold before a schedule is taken: the same for every way to make one."""

from dataclasses import dataclass
from typing import Final

from duetick.core.flows import Flows
from duetick.core.second_opinion import confirm
from duetick.domain.errors import QuotaReached
from duetick.domain.expression import smallest_gap, sub_minute
from duetick.domain.schedule import LARGEST_INPUT, Schedule, check_timing, dump_input

MINUTE_SECONDS: Final = 60


@dataclass(frozen=True, slots=True)
class Quotas:
    """What a user may have, and how often a tick looks."""

    schedules: int = 100
    gap_seconds: int = 60
    input_bytes: int = LARGEST_INPUT
    runs_a_minute: int = 30
    tick_seconds: int = 60


def check(schedule: Schedule, flows: Flows, quotas: Quotas, now: int) -> None:
    """Raise, saying what is wrong and what to do, unless the schedule can be taken."""
    check_timing(schedule.cron, schedule.timezone)
    flows.check_input(schedule)
    confirm(schedule.cron, now)
    _check_gap(schedule, quotas, now)
    _check_size(schedule, quotas)


def warning(schedule: Schedule, quotas: Quotas, now: int) -> str | None:
    """What is worth a warning, though it is taken: it fires more often than a tick looks."""
    gap = _gap(schedule, now)
    if gap >= quotas.tick_seconds * 1_000:
        return None
    return (
        f"fires up to each {gap / 1_000:g} s, and a tick comes each {quotas.tick_seconds} s: "
        "what comes due between two ticks waits, or collapses to the newest"
    )


def _gap(schedule: Schedule, now: int) -> int:
    policies = schedule.policies
    return smallest_gap(
        schedule.cron,
        schedule.timezone,
        now,
        gap=policies.gap,
        repeat=policies.repeat,
        anchor=schedule.anchor or now,
    )


def _check_gap(schedule: Schedule, quotas: Quotas, now: int) -> None:
    gap = _gap(schedule, now)
    # a rate below a minute is the store's to refuse: with look-ahead it is wanted, unless the
    # quota asks for more than the minute that holds without
    finer = sub_minute(schedule.cron) and quotas.gap_seconds <= MINUTE_SECONDS
    least = 0 if finer else quotas.gap_seconds
    if gap < least * 1_000:
        raise QuotaReached(
            "gap_seconds",
            least,
            f"{schedule.cron!r} fires twice within {gap / 1_000:g} s, and {least} s is the least. "
            "Fire less often, or have DUETICK_QUOTA_GAP_SECONDS lowered.",
        )


def _check_size(schedule: Schedule, quotas: Quotas) -> None:
    size = len(dump_input(schedule.input).encode())
    if size > quotas.input_bytes:
        raise QuotaReached(
            "input_bytes",
            quotas.input_bytes,
            f"The input has {size} bytes as JSON, and {quotas.input_bytes} are the most. Keep it "
            "elsewhere and put its name here, or have DUETICK_QUOTA_INPUT_BYTES raised.",
        )

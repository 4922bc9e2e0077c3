"""The checks that every schedule must pass before a store takes it, however it is made."""

from dataclasses import dataclass, replace
from typing import Final

from duetick.core.flows import Flows
from duetick.core.second_opinion import confirm
from duetick.domain.book import check_future
from duetick.domain.cadence import least_gap
from duetick.domain.errors import QuotaReached, Refusal, refusals_of
from duetick.domain.expression import check_zone, parse, sub_minute
from duetick.domain.pausing import end_over
from duetick.domain.policies import DAY
from duetick.domain.schedule import LARGEST_INPUT, Schedule, check_pace, dump_input

MINUTE_SECONDS: Final = 60
DAY_MS: Final = DAY * 1_000


@dataclass(frozen=True, slots=True)
class Quotas:
    """The limits of one user.

    Without `look_ahead`, rates below a minute are refused. With it, the store decides. If the store
    is `managed`, what EventBridge cannot say is refused.
    """

    schedules: int = 100
    gap_seconds: int = 60
    input_bytes: int = LARGEST_INPUT
    runs_a_minute: int = 30
    writes_a_minute: int = 120
    look_ahead: bool = True
    jobs: int = 1_000
    managed: bool = False


def find_refusals(
    schedule: Schedule, flows: Flows, quotas: Quotas, now: int, *, may_be_done: bool = False
) -> list[Refusal]:
    """Return everything that is wrong with a schedule.

    If its cron or zone cannot be read, its fire times are not checked.
    """
    fires = schedule.enabled and not schedule.pause and not may_be_done
    over = end_over(schedule, now) if fires else None
    timing = refusals_of([lambda: parse(schedule.cron), lambda: check_zone(schedule.timezone)])
    found = timing + find_flaws_of_work(schedule, flows, quotas)
    if over:
        found.append(over)
        schedule = replace(schedule, policies=replace(schedule.policies, ends_at=None))
    if timing:
        return found
    return found + doubts_of(schedule, quotas, now, may_be_done=may_be_done)


def doubts_of(
    schedule: Schedule, quotas: Quotas, now: int, *, may_be_done: bool = False
) -> list[Refusal]:
    """Return the faults of the fire times of a schedule whose cron and zone can be read."""
    times = [lambda: _check_pace(schedule, quotas), lambda: _check_gap(schedule, quotas, now)]
    if quotas.managed and schedule.enabled:
        times.append(lambda: _check_bell(schedule, now))
    if not may_be_done:
        times.append(lambda: check_future(schedule, now))
    doubt = refusals_of([lambda: confirm(schedule.cron, now // DAY_MS * DAY_MS)])
    return doubt or refusals_of(times)


def find_flaws_of_work(schedule: Schedule, flows: Flows, quotas: Quotas) -> list[Refusal]:
    """Return everything that is wrong with the action, the input and the hook."""
    size = refusals_of([lambda: _check_size(schedule, quotas)])
    check = flows.action_of if size else flows.check_input  # a huge input stays unread
    return refusals_of([lambda: check(schedule), lambda: flows.check_hook(schedule)]) + size


def _check_pace(schedule: Schedule, quotas: Quotas) -> None:
    """Refuse a rate below a minute. A paused schedule passes: its resume is checked again."""
    if schedule.enabled and not quotas.look_ahead:
        check_pace(schedule)


def _check_bell(schedule: Schedule, now: int) -> None:
    from duetick.domain.bells import check_ringable

    check_ringable(schedule, now)


def _check_gap(schedule: Schedule, quotas: Quotas, now: int) -> None:
    gap = least_gap(schedule, now)
    # The store refuses a rate below a minute, or allows it with look-ahead. The gap matters to such
    # a rate only if the quota is longer than a minute.
    finer = sub_minute(schedule.cron) and quotas.gap_seconds <= MINUTE_SECONDS
    least = 0 if finer else quotas.gap_seconds
    if gap < least * 1_000:
        raise QuotaReached(
            "gap_seconds",
            least,
            f"{schedule.cron!r} fires twice within {gap / 1_000:g} s, and {least} s is the least. "
            "Fire less often.",
            field="cron",
            setting="DUETICK_QUOTA_GAP_SECONDS",
        )


def _check_size(schedule: Schedule, quotas: Quotas) -> None:
    size = len(dump_input(schedule.input).encode())
    if size > quotas.input_bytes:
        raise QuotaReached(
            "input_bytes",
            quotas.input_bytes,
            f"The input has {size} bytes as JSON, and {quotas.input_bytes} are the most. Keep it "
            "elsewhere and put its name here.",
            field="input",
            setting="DUETICK_QUOTA_INPUT_BYTES",
        )

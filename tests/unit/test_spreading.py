"""Windows with too much due, their lengths, and the spread with which nothing is too much."""

from dataclasses import replace

import pytest
from duetick.domain.alike import make_alike
from duetick.domain.firing import Times
from duetick.domain.forecasting import Outlook
from duetick.domain.limits import Per
from duetick.domain.minutes import MinuteSpan, Sums
from duetick.domain.occurrence import IndexRow
from duetick.domain.policies import Policies
from duetick.domain.spreading import Grid, fitting_spread, windows_over
from duetick.testing.conformance.samples import DAY, HOUR, MINUTE, NOON, SECOND

SPAN = MinuteSpan(NOON, NOON + DAY)
BY_MINUTE = Grid(SPAN, "minute")
BY_HOUR = Grid(SPAN, "hour")


def due(**at: int) -> list[int]:
    """Return the fires due, by the minute (`m60`)."""
    made = [0] * SPAN.minutes
    for minute, number in at.items():
        made[int(minute[1:])] = number
    return made


def test_a_window_in_which_more_is_due_is_over_and_says_when_it_is_cleared() -> None:
    found = windows_over(due(m10=25, m11=4, m500=10), 10, BY_MINUTE)
    [one] = found
    assert (one.at, one.due) == (NOON + 10 * MINUTE, 25)
    assert one.cleared_at == NOON + 13 * MINUTE


def test_a_backlog_that_outlasts_the_span_is_not_cleared() -> None:
    [one] = windows_over(due(m1439=25), 10, BY_MINUTE)
    assert one.cleared_at is None


def test_windows_are_those_of_the_clock() -> None:
    span = MinuteSpan(NOON + 30 * MINUTE, NOON + 3 * HOUR)
    grid = Grid(span, "hour")
    by_minute = [1] * span.minutes
    assert grid.add_up(by_minute) == [30, 60, 60]
    assert [one.at for one in windows_over(by_minute, 40, grid)] == [NOON + HOUR, NOON + 2 * HOUR]


def rows(kind: str, number: int, seed: int) -> list[IndexRow]:
    """Return schedules that come due together, or every hour, or at a rate."""
    crons = {"together": "0 15 * * *", "hourly": "0 * * * *", "rates": "rate(8 hours)"}
    first = Times(crons[kind], None, NOON, Policies()).after(NOON) or 0
    made = [
        IndexRow(f"user{seed}", f"k{n}", crons[kind], None, first, "flow", NOON, NOON)
        for n in range(number)
    ]
    if kind == "rates":
        return [replace(one, next_fire_at=first + n % 120 * SECOND) for n, one in enumerate(made)]
    return made


def sums(made: list[IndexRow], spread: int = 0, others: int = 0) -> Sums:
    """Return the sums of rows with a spread, beside others that have none."""
    outlook = Outlook(SPAN, NOON)
    policies = Policies(spread=spread)
    outlook.add(make_alike(replace(one, policies=policies), None) for one in made)
    outlook.finish()
    found = outlook.sums[0]
    found.due[180] += others
    return found


def is_over(found: Sums, most: int, per: Per) -> bool:
    return bool(windows_over(found.due, most, Grid(SPAN, per)))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    ("kind", "number", "most", "per"),
    [
        ("together", 3_000, 100, "minute"),
        ("together", 60, 10, "minute"),
        ("together", 3_000, 1_000, "hour"),
        ("hourly", 500, 30, "minute"),
        ("hourly", 500, 600, "hour"),
        ("rates", 2_000, 60, "minute"),
    ],
)
def test_with_this_spread_no_window_is_over(
    kind: str, number: int, most: int, per: Per, seed: int
) -> None:
    """The places are the real ones of the names."""
    made = rows(kind, number, seed)
    without = sums(made, others=most // 4)
    assert is_over(without, most, per)
    spread = fitting_spread(without, most, Grid(SPAN, per))
    assert spread is not None
    assert not is_over(sums(made, spread, others=most // 4), most, per)


@pytest.mark.slow
@pytest.mark.parametrize(("number", "most"), [(3_000, 100), (50_000, 500), (2_000, 1_000)])
def test_the_spread_is_no_guess_a_third_of_it_would_not_do(number: int, most: int) -> None:
    made = rows("together", number, 0)
    spread = fitting_spread(sums(made), most, BY_MINUTE)
    assert spread is not None
    assert is_over(sums(made, spread // 3), most, "minute")
    assert spread <= 2.5 * 60 * number / most


def test_no_spread_does_it_where_too_much_stays_or_too_much_is_due() -> None:
    made = rows("together", 100, 0)
    assert fitting_spread(sums(made, others=50), 40, BY_MINUTE) is None
    assert fitting_spread(sums(rows("together", 3_000, 0)), 1, BY_MINUTE) is None


def test_what_moves_alone_may_not_exceed_what_stays_beside_it() -> None:
    made = rows("together", 400, 0)
    alone = fitting_spread(sums(made), 60, BY_MINUTE)
    beside = fitting_spread(sums(made, others=40), 60, BY_MINUTE)
    assert alone is not None
    assert beside is not None
    assert beside > alone
    assert not is_over(sums(made, beside, others=40), 60, "minute")


def test_what_one_schedule_has_within_an_hour_counts_together() -> None:
    assert fitting_spread(sums(rows("hourly", 500, 0)), 600, BY_HOUR) is not None
    dense = sums(rows("hourly", 500, 0))
    dense.densest = 60
    assert fitting_spread(dense, 520, BY_HOUR) != 60

"""Ranges: the unfired times that are one row, and the division of a range."""

from dataclasses import replace

from duetick.domain.expression import fires
from duetick.domain.occurrence import IndexRow, Missed, range_of
from duetick.domain.ranges import divide, leave_out, range_of_due, range_within
from duetick.domain.schedule import Record
from duetick.domain.states import Reason, State
from hypothesis import given
from hypothesis import strategies as st

NOON = 1_803_902_400_000
MINUTE = 60_000
HOUR = 60 * MINUTE
DAY = 24 * HOUR
ROW = IndexRow("ada", "digest", "0 12 * * *", None, NOON + DAY, flow="reminders", redefined_at=5)
RECORD = Record("ada", "digest", "0 12 * * *", "reminders", "send", redefined_at=NOON)


def test_j09_a_range_stands_for_its_times() -> None:
    one = range_of(ROW, Missed(NOON, NOON + 2 * DAY, 3), Reason.MISSED, NOON + 3 * DAY)
    assert (one.nominal_at, one.range_end, one.count) == (NOON, NOON + 2 * DAY, 3)
    assert (one.state, one.reason) == (State.CANCELLED, Reason.MISSED)


def test_m07_what_is_due_but_cannot_be_read_is_one_time() -> None:
    broken = replace(ROW, cron="nonsense", next_fire_at=NOON)
    (missed,) = range_of_due(broken, None, NOON + DAY, Reason.SUPERSEDED)
    assert (missed.nominal_at, missed.range_end, missed.count) == (NOON, NOON, 1)


def test_m07_what_has_fired_is_not_due() -> None:
    assert range_of_due(ROW, NOON + DAY, NOON + DAY, Reason.DISABLED) == ()
    (missed,) = range_of_due(ROW, NOON + DAY, NOON + 2 * DAY, Reason.DISABLED)
    assert (missed.nominal_at, missed.count) == (NOON + 2 * DAY, 1)


def test_m07_a_row_that_is_not_due_leaves_nothing() -> None:
    assert range_of_due(ROW, None, NOON + DAY - 1, Reason.DISABLED) == ()
    assert range_of_due(None, None, NOON + DAY, Reason.DISABLED) == ()


def test_a01_nothing_is_held_back_where_no_time_has_come() -> None:
    assert range_within(RECORD, NOON, NOON + HOUR, Reason.PAUSED) == ()


def test_a01_what_cannot_be_read_any_more_is_held_back_from_no_time_that_is_known() -> None:
    gone = replace(RECORD, timezone="Mars/Olympus")
    assert range_within(gone, NOON, NOON + 2 * DAY, Reason.PAUSED) == ()


MINUTELY = st.sampled_from(["* * * * *", "1-59/7 * * * *", "rate(7 minutes)"])


@given(
    MINUTELY,
    st.integers(1, 90),
    st.integers(-5, 700) | st.integers(-5, 700).map(lambda minutes: minutes * MINUTE),
)
def test_a01_a_divided_range_tells_the_same_times_each_beyond_by_itself(
    cron: str, count: int, at: int
) -> None:
    times = fires(cron, None, NOON - 1, NOON + DAY, limit=count, anchor=NOON)
    row = replace(ROW, cron=cron, anchor=NOON)
    held = range_of(row, Missed(times[0], times[-1], count), Reason.MISSED, NOON)
    parts = divide(held, NOON + at)
    assert parts[0].identity == held.identity
    told = [
        time
        for part in parts
        for time in fires(cron, None, part.nominal_at - 1, part.range_end or 0, anchor=NOON)
    ]
    assert told == times
    assert sum(part.count for part in parts) == count
    assert all(one.count == 1 for one in parts if (one.range_end or 0) > NOON + at)


@given(MINUTELY, st.integers(1, 90), st.sets(st.integers(0, 89)))
def test_a01_a_range_leaves_out_what_is_known_and_nothing_else(
    cron: str, count: int, places: set[int]
) -> None:
    times = fires(cron, None, NOON - 1, NOON + DAY, limit=count, anchor=NOON)
    row = replace(ROW, cron=cron, anchor=times[0])
    held = range_of(row, Missed(times[0], times[-1], count), Reason.MISSED, NOON)
    known = {time for place, time in enumerate(times) if place in places}
    parts = leave_out(held, known)
    told = [
        time
        for part in parts
        for time in fires(cron, None, part.nominal_at - 1, part.range_end or 0, anchor=times[0])
    ]
    assert told == [time for time in times if time not in known]
    assert sum(part.count for part in parts) == len(told)

"""C-01: the fires at a change of a clock.

Berlin in 2026 goes an hour forward on 29 March at 01:00Z, and back on 25 October at 01:00Z.
"""

import pytest
from duetick.domain.expression import next_fire, upcoming

from tests.unit.expression.cases import Gap, Repeat
from tests.unit.expression.times import ms, utc

BERLIN = "Europe/Berlin"
SPRING, AUTUMN = ms("2026-03-28T12:00"), ms("2026-10-24T12:00")


def test_c01_a_fixed_time_in_a_gap_fires_once_at_the_first_instant_after_the_jump() -> None:
    times = upcoming("30 2 * * *", BERLIN, SPRING, 2)
    assert utc(times) == ["2026-03-29T01:00", "2026-03-30T00:30"]


def test_c01_several_times_of_a_gap_collapse_into_one_with_the_one_due_after_the_jump() -> None:
    times = upcoming("0,20,40 2,3 * * *", BERLIN, SPRING, 3)
    assert utc(times) == ["2026-03-29T01:00", "2026-03-29T01:20", "2026-03-29T01:40"]


def test_c01_with_gap_skip_a_time_in_a_gap_does_not_fire() -> None:
    assert utc(upcoming("30 2 * * *", BERLIN, SPRING, 1, gap="skip")) == ["2026-03-30T00:30"]


def test_c01_with_gap_skip_the_time_at_the_first_instant_after_the_jump_still_fires() -> None:
    assert utc(upcoming("0 2,3 * * *", BERLIN, SPRING, 1, gap="skip")) == ["2026-03-29T01:00"]


def test_c01_a_fixed_time_that_is_repeated_fires_on_the_first_pass() -> None:
    times = upcoming("30 2 * * *", BERLIN, AUTUMN, 2)
    assert utc(times) == ["2026-10-25T00:30", "2026-10-26T01:30"]


def test_c01_asked_between_the_passes_the_second_pass_stays_silent() -> None:
    after = ms("2026-10-25T00:45")
    assert utc([next_fire("30 2 * * *", BERLIN, after) or 0]) == ["2026-10-26T01:30"]


def test_c01_with_repeat_both_a_repeated_time_fires_on_both_passes() -> None:
    times = upcoming("30 2 * * *", BERLIN, AUTUMN, 3, repeat="both")
    assert utc(times) == ["2026-10-25T00:30", "2026-10-25T01:30", "2026-10-26T01:30"]


@pytest.mark.parametrize(
    "text", ["*/30 * * * *", "30,0 * * * *", "*/30 2,3 * * *", "0,30 */1 * * *"]
)
def test_c01_with_a_star_in_minute_or_hour_real_time_is_kept_through_a_repeat(text: str) -> None:
    times = upcoming(text, BERLIN, ms("2026-10-24T23:59"), 4)
    expected = ["2026-10-25T00:00", "2026-10-25T00:30", "2026-10-25T01:00", "2026-10-25T01:30"]
    assert [time for time in utc(times) if time in expected] == expected


def test_c01_with_a_star_nothing_fires_in_a_gap() -> None:
    times = upcoming("*/30 2 * * *", BERLIN, SPRING, 1)
    assert utc(times) == ["2026-03-30T00:00"]


@pytest.mark.parametrize(("text", "second_pass"), [("0-59 2 * * *", False), ("*/1 2 * * *", True)])
def test_c01_the_star_as_written_decides_not_what_it_stands_for(
    text: str, second_pass: bool
) -> None:
    following = next_fire(text, BERLIN, ms("2026-10-25T00:59"))
    assert (following == ms("2026-10-25T01:00")) is second_pass


@pytest.mark.parametrize(
    ("text", "second_pass"), [("0,*/30 2 * * *", False), ("*/30,0 2 * * *", True)]
)
def test_c01_a_field_that_does_not_begin_with_the_star_is_fixed(
    text: str, second_pass: bool
) -> None:
    following = next_fire(text, BERLIN, ms("2026-10-25T00:59"))
    assert (following == ms("2026-10-25T01:00")) is second_pass


@pytest.mark.parametrize("gap", ["run", "skip"])
@pytest.mark.parametrize("repeat", ["first", "both"])
def test_c01_the_options_leave_an_expression_with_a_star_alone(gap: Gap, repeat: Repeat) -> None:
    for after in (SPRING, AUTUMN):
        plain = upcoming("*/20 * * * *", BERLIN, after, 100)
        assert upcoming("*/20 * * * *", BERLIN, after, 100, gap=gap, repeat=repeat) == plain


def test_c01_day_of_month_or_day_of_week_is_enough_when_both_are_restricted() -> None:
    times = upcoming("0 0 13 * FRI", None, ms("2026-11-01"), 4)
    assert utc(times) == [f"2026-11-{day}T00:00" for day in ("06", "13", "20", "27")]


@pytest.mark.parametrize(
    ("text", "days"),
    [
        ("0 0 */2 * MON", "2026-11-09 2026-11-23 2026-12-07 2026-12-21"),
        ("0 0 1-31/2 * */7", "2026-11-15 2026-11-29 2026-12-13 2026-12-27"),
    ],
)
def test_c01_both_must_match_when_one_begins_with_a_star(text: str, days: str) -> None:
    times = utc(upcoming(text, None, ms("2026-11-01T12:00"), 4))
    assert times == [f"{expected}T00:00" for expected in days.split()]


def test_c01_a_whole_day_that_a_zone_skips_fires_once_after_it() -> None:
    """Samoa had no 30 December 2011."""
    times = upcoming("0 9 30 12 *", "Pacific/Apia", ms("2011-06-01"), 2)
    assert utc(times) == ["2011-12-30T10:00", "2012-12-29T19:00"]


def test_c01_each_time_of_a_skipped_day_collapses_and_the_next_day_is_its_own() -> None:
    times = upcoming("0 0,9,17 * * *", "Pacific/Apia", ms("2011-12-30T05:00"), 3)
    assert utc(times) == ["2011-12-30T10:00", "2011-12-30T19:00", "2011-12-31T03:00"]


def test_c01_a_skipped_day_matches_by_its_own_weekday() -> None:
    """The day that Kwajalein skipped, 21 August 1993, was a Saturday."""
    times = upcoming("0 9 * * SAT", "Pacific/Kwajalein", ms("1993-08-18"), 2)
    assert utc(times) == ["1993-08-21T12:00", "1993-08-27T21:00"]


def test_c01_half_an_hour_is_a_gap_too() -> None:
    """Lord Howe, 4 October 2026: 02:00 becomes 02:30 at 15:30Z the day before."""
    times = upcoming("15 2 * * *", "Australia/Lord_Howe", ms("2026-10-03T00:00"), 2)
    assert utc(times) == ["2026-10-03T15:30", "2026-10-04T15:15"]


def test_c01_half_an_hour_is_a_repeat_too() -> None:
    """Lord Howe, 5 April 2026: 02:00 becomes 01:30 at 15:00Z the day before."""
    text, zone, after = "45 1 * * *", "Australia/Lord_Howe", ms("2026-04-04T12:00")
    assert utc(upcoming(text, zone, after, 2)) == ["2026-04-04T14:45", "2026-04-05T15:15"]
    both = upcoming(text, zone, after, 2, repeat="both")
    assert utc(both) == ["2026-04-04T14:45", "2026-04-04T15:15"]


def test_c01_midnight_that_is_skipped_does_not_lose_the_day() -> None:
    """Cairo, 24 April 2026: 00:00 becomes 01:00."""
    times = upcoming("0 0 * * *", "Africa/Cairo", ms("2026-04-23T12:00"), 2)
    assert utc(times) == ["2026-04-23T22:00", "2026-04-24T21:00"]


def test_c01_negative_summer_time_is_a_change_like_another() -> None:
    times = upcoming("30 1 * * *", "Europe/Dublin", SPRING, 2)
    assert utc(times) == ["2026-03-29T01:00", "2026-03-30T00:30"]


def test_c01_a_gap_with_seconds_in_it_fires_at_its_end() -> None:
    """Monrovia, 7 January 1972: 00:00:00 became 00:44:30."""
    jump = ms("1972-01-07T00:44:30")
    assert upcoming("10 0 * * *", "Africa/Monrovia", jump - 3_600_000, 1) == [jump]


def test_c01_with_a_star_a_minute_that_a_change_lands_in_is_read() -> None:
    jump = ms("1972-01-07T00:44:30")
    assert upcoming("* * * * *", "Africa/Monrovia", jump - 30_001, 2) == [jump, jump + 30_000]


def test_c01_at_inside_a_gap_fires_at_its_end_or_is_skipped() -> None:
    text = "at(2026-03-29T02:30:00)"
    assert next_fire(text, BERLIN, SPRING) == ms("2026-03-29T01:00")
    assert next_fire(text, BERLIN, SPRING, gap="skip") is None


def test_c01_a_day_map_is_fixed() -> None:
    times = upcoming("days(sun 02:30)", BERLIN, SPRING, 2)
    assert utc(times) == ["2026-03-29T01:00", "2026-04-05T00:30"]


@pytest.mark.parametrize(("gap", "repeat"), [("walk", "first"), ("run", "never")])
def test_c01_an_option_that_does_not_exist_is_refused(gap: Gap, repeat: Repeat) -> None:
    with pytest.raises(ValueError, match=r'gap is "run" or "skip"'):
        next_fire("0 9 * * *", None, 0, gap=gap, repeat=repeat)


def test_c01_the_answer_is_strictly_later() -> None:
    nine = ms("2026-11-18T09:00")
    assert next_fire("0 9 * * *", None, nine - 1) == nine
    assert next_fire("0 9 * * *", None, nine) == nine + 86_400_000


def test_c01_instants_before_the_epoch_and_between_milliseconds_are_fine() -> None:
    assert next_fire("* * * * *", None, -90_001) == -60_000
    assert next_fire("0 0 1 1 *", None, ms("1899-06-01T00:00:00.001")) == ms("1900-01-01")


def test_c01_the_calendar_ends_with_2199() -> None:
    assert next_fire("* * * * *", None, ms("2199-12-31T23:58:30")) == ms("2199-12-31T23:59")
    assert next_fire("* * * * *", "Europe/Berlin", ms("2199-12-31T23:59")) is None
    assert next_fire("rate(1 day)", None, 10**20) is None


def test_c01_the_deepest_past_is_the_year_one() -> None:
    first = next_fire("0 0 * * *", "Europe/Berlin", -(10**20))
    assert first is not None
    assert first < ms("0001-01-05")

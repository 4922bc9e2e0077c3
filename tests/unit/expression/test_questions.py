"""What a claim asks besides the next fire: batches, ranges, the newest, counts, gaps, targets."""

import time
from types import MappingProxyType
from typing import TypedDict, get_args

import pytest
from duetick.domain.expression import (
    InvalidExpression,
    InvalidTimezone,
    count,
    fires,
    from_day_map,
    newest,
    next_fire,
    next_fires,
    parse,
    smallest_gap,
    sub_minute,
    targets,
    upcoming,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.expression.cases import Gap, Repeat
from tests.unit.expression.times import ms, utc

HOUR, DAY = 3_600_000, 86_400_000
BERLIN = "Europe/Berlin"
NOW = ms("2026-11-18T10:00")


def test_t09_an_interval_does_not_drift() -> None:
    anchor = ms("2026-03-28T23:17:05")
    times = upcoming("rate(7 minutes)", BERLIN, anchor, 1_000, anchor=anchor)
    assert times == [anchor + k * 7 * 60_000 for k in range(1, 1_001)]


def test_t09_an_interval_is_elapsed_time_whatever_the_zone() -> None:
    anchor = ms("2026-03-01T12:00")
    for zone in (None, BERLIN, "Australia/Lord_Howe"):
        days = upcoming("rate(1 day)", zone, anchor, 60, anchor=anchor)
        assert days == [anchor + k * DAY for k in range(1, 61)]


@settings(deadline=None)
@given(
    step=st.integers(1, 10_000),
    anchor=st.integers(-(10**12), 10**13),
    after=st.integers(-(10**12), 6 * 10**12),
)
def test_t09_each_fire_is_the_anchor_and_a_whole_number_of_intervals(
    step: int, anchor: int, after: int
) -> None:
    fire = next_fire(f"rate({step} seconds)", None, after, anchor=anchor)
    assert fire is not None
    assert (fire - anchor) % (step * 1000) == 0
    assert after < fire <= after + step * 1000


@pytest.mark.parametrize(
    ("text", "below"),
    [("rate(30 seconds)", True), ("rate(60 seconds)", False), ("rate(1 minute)", False)],
)
def test_c05_a_rate_below_a_minute_is_told(text: str, below: bool) -> None:
    assert sub_minute(text) is below


def test_c05_nothing_else_is_below_a_minute() -> None:
    assert not sub_minute("* * * * *")


def test_g05_a_day_is_enabled_when_its_time_is_a_string() -> None:
    days = {"mon": "09:00", "tue": None, "wed": False, "enabled": False, "thu": "17:30"}
    assert from_day_map(days) == "days(mon 09:00, thu 17:30)"


def test_g05_targets_have_their_own_days() -> None:
    text = from_day_map({"x": {"mon": "9:00", "tue": "09:00"}, "threads": {"mon": "10:00"}})
    assert text == "days(x: mon 09:00, tue 09:00; threads: mon 10:00)"
    assert parse(text) == text


def test_g05_two_targets_at_one_minute_are_one_occurrence_with_both() -> None:
    text = from_day_map({"x": {"mon": "09:00"}, "threads": {"mon": "09:00", "tue": "10:00"}})
    times = upcoming(text, BERLIN, ms("2026-11-22"), 3)
    assert utc(times) == ["2026-11-23T08:00", "2026-11-24T09:00", "2026-11-30T08:00"]
    assert [targets(text, BERLIN, time) for time in times[:2]] == [("x", "threads"), ("threads",)]
    assert targets(text, BERLIN, times[0] + 60_000) == ()


def test_g05_targets_that_a_gap_brings_together_are_due_together() -> None:
    text = "days(a: sun 02:10; b: sun 02:50; c: sun 03:00; d: sun 04:00)"
    jump = ms("2026-03-29T01:00")
    assert upcoming(text, BERLIN, jump - HOUR, 2) == [jump, jump + HOUR]
    assert targets(text, BERLIN, jump) == ("a", "b", "c")
    assert targets(text, BERLIN, jump, gap="skip") == ("c",)


def test_g05_any_mapping_is_a_day_map_and_any_a_target() -> None:
    days = MappingProxyType({"mon": "09:00", "tue": None})
    assert from_day_map(days) == "days(mon 09:00)"
    assert from_day_map(MappingProxyType({"x": days, "off": None})) == "days(x: mon 09:00)"


def test_g05_six_targets_with_seven_days_each_are_no_longer_than_is_read() -> None:
    week = dict.fromkeys(("mon", "tue", "wed", "thu", "fri", "sat", "sun"), "09:00")
    text = from_day_map({f"target-{number}": week for number in range(6)})
    assert targets(text, None, ms("2026-11-23T09:00")) == tuple(f"target-{n}" for n in range(6))


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("days(mon\t09:00)", "days(mon 09:00)"),
        ("days(x:mon 09:00;threads:tue 10:00)", "days(x: mon 09:00; threads: tue 10:00)"),
        ("days( x : mon  09:00 ,tue\n10:00 )", "days(x: mon 09:00, tue 10:00)"),
    ],
)
def test_g05_white_space_is_free(text: str, canonical: str) -> None:
    assert parse(text) == canonical


@pytest.mark.parametrize(
    "days",
    [{}, {"mon": None}, {"x": {}}, {"x": {"mon": None}}, {"enabled": True}],
)
def test_g05_a_map_that_enables_no_day_is_refused(days: dict[str, object]) -> None:
    with pytest.raises(InvalidExpression, match="enables no day"):
        from_day_map(days)


@pytest.mark.parametrize(
    ("days", "words"),
    [
        ({"monday": "09:00"}, "'monday' is not a day"),
        ({"mon": "9"}, "is no time from 00:00"),
        ({"mon": "٠٩:00"}, "is no time from 00:00"),
        ({"mon": "09:00, tue 10:00"}, "is no time from 00:00"),
        ({"x; y": {"mon": "09:00"}}, "is no target's name"),
        ({"x" * 65: {"mon": "09:00"}}, "is no target's name"),
        ({"": {"mon": "09:00"}}, "is no target's name"),
        ({"x": {"mon": "09:00"}, "wed": "10:00"}, "'wed' has a time beside targets"),
    ],
)
def test_g05_a_map_that_is_wrong_is_refused_with_the_piece(
    days: dict[str, object], words: str
) -> None:
    with pytest.raises(InvalidExpression, match=words):
        from_day_map(days)


@pytest.mark.parametrize("days", [None, "mon 09:00", ["mon"], {5: {"mon": "09:00"}}])
def test_g05_what_is_no_mapping_of_names_is_refused_by_its_type(days: dict[str, object]) -> None:
    with pytest.raises(InvalidExpression, match=r"is no mapping of days|a target's name is text"):
        from_day_map(days)


def test_g05_what_is_no_day_map_has_no_targets() -> None:
    assert targets("0 9 * * *", None, 9 * HOUR) == ()
    assert targets("days(mon 09:00)", None, ms("2026-11-23T09:00")) == ()


class Options(TypedDict):
    """C-01's options and an anchor."""

    gap: Gap
    repeat: Repeat
    anchor: int


Question = tuple[str, str | None, int, int, Gap, Repeat]
Timing = tuple[str, str | None, Gap, Repeat, int]
QUESTIONS: st.SearchStrategy[Question] = st.tuples(
    st.sampled_from(
        [
            *("* * * * *", "*/7 * * * *", "30 2 * * *", "0,30 0-4 * * *", "15 */6 1,L * *"),
            *("0 9 * * 1-5", "0 0 29 2 *", "rate(37 minutes)", "days(sun 02:30, mon 09:00)"),
            *("at(2026-10-25T02:30:00)", "cron(0/20 2 ? * SUN 2026)", "0 3 13 * FRI"),
        ]
    ),
    st.sampled_from([None, BERLIN, "Australia/Lord_Howe", "America/St_Johns", "Africa/Cairo"]),
    st.integers(ms("2026-01-01"), ms("2027-01-01")),
    st.integers(-HOUR, 5 * DAY),
    st.sampled_from(get_args(Gap)),
    st.sampled_from(get_args(Repeat)),
)


@settings(max_examples=400, deadline=None)
@given(QUESTIONS)
def test_j09_newest_and_count_say_what_going_through_the_fires_says(question: Question) -> None:
    text, zone, after, length, gap, repeat = question
    until = after + length
    one_by_one = []
    time_ = next_fire(text, zone, after, gap=gap, repeat=repeat, anchor=5)
    while time_ is not None and time_ <= until:
        one_by_one.append(time_)
        time_ = next_fire(text, zone, time_, gap=gap, repeat=repeat, anchor=5)
    options: Options = {"gap": gap, "repeat": repeat, "anchor": 5}
    assert fires(text, zone, after, until, **options) == one_by_one
    assert fires(text, zone, after, until, limit=2, **options) == one_by_one[:2]
    assert count(text, zone, after, until, **options) == len(one_by_one)
    last = one_by_one[-1] if one_by_one else None
    assert newest(text, zone, after, until, **options) == last


def test_j09_a_year_of_minutes_is_counted_without_a_walk() -> None:
    began = time.process_time()
    assert count("* * * * *", BERLIN, NOW, NOW + 365 * DAY) == 365 * 1440
    assert count("* * * * *", BERLIN, 0, ms("2199-12-30")) > 120_000_000
    assert time.process_time() - began < 0.2


def test_j09_the_newest_fire_of_long_ago_is_found_from_the_end() -> None:
    began = time.process_time()
    assert newest("0 0 29 2 *", BERLIN, 0, ms("2027-12-31")) == ms("2024-02-28T23:00")
    assert newest("* * * * *", BERLIN, -(10**15), NOW + 1) == NOW
    assert newest("0 0 30 1 *", None, ms("2026-02-01"), NOW) is None
    assert time.process_time() - began < 0.1


def test_c04_the_newest_of_years_that_are_listed_may_be_any_of_them() -> None:
    text = "cron(0 9 1 1 ? 2020,2025,2030)"
    assert newest(text, None, 0, ms("2024-01-01")) == ms("2020-01-01T09:00")
    assert newest(text, None, 0, ms("2026-01-01")) == ms("2025-01-01T09:00")
    assert newest(text, None, 0, ms("2020-01-01T08:59")) is None
    assert count(text, None, 0, ms("2199-01-01")) == 3


def test_c04_at_is_the_newest_and_counts_once_in_a_range_that_holds_it() -> None:
    text, fire = "at(2026-12-01T09:00:00)", ms("2026-12-01T08:00")
    assert newest(text, BERLIN, NOW, fire) == fire
    assert newest(text, BERLIN, NOW, fire - 1) is None
    assert newest(text, BERLIN, fire, fire + DAY) is None
    assert [count(text, BERLIN, NOW, fire + step) for step in (-1, 0)] == [0, 1]
    assert fires(text, BERLIN, NOW, fire + DAY) == [fire]


@pytest.mark.parametrize("text", ["* * * * *", "0 0 L * *", "rate(1 day)", "days(mon 09:00)"])
def test_c01_ranges_may_reach_beyond_the_calendar(text: str) -> None:
    for zone in (None, BERLIN):
        last = newest(text, zone, -(10**30), 10**30)
        assert last is not None
        assert ms("2199-12-01") < last < ms("2200-01-01")
        assert next_fire(text, zone, last) is None
        assert count(text, zone, last - 1, 10**30) == 1
        assert newest(text, zone, last, 10**30) is None
        assert count(text, zone, 0, 10**30) > 2_700


def test_c04_what_is_over_is_known_to_be_over_in_little_time() -> None:
    began = time.process_time()
    for year in range(1970, 2020):
        assert next_fire(f"cron(0 9 1 1 ? {year})", BERLIN, NOW) is None
        assert newest(f"cron(0 9 1 1 ? {year})", BERLIN, 0, NOW) is not None
    assert time.process_time() - began < 0.5


def test_i06_a_batch_works_out_each_different_timing_once_and_answers_each() -> None:
    nine, often = ("0 9 * * *", BERLIN), ("*/5 * * * *", None)
    hourly: Timing = ("rate(1 hour)", None, "run", "first", 5)
    assert next_fires([nine, often, nine, hourly], NOW) == [
        next_fire("0 9 * * *", BERLIN, NOW),
        next_fire("*/5 * * * *", None, NOW),
        next_fire("0 9 * * *", BERLIN, NOW),
        next_fire("rate(1 hour)", None, NOW, anchor=5),
    ]


def test_i13_a_poison_row_spoils_no_other_of_its_batch() -> None:
    bad, lost, good = next_fires([("x", None), ("0 9 * * *", "Mars"), ("0 9 * * *", None)], NOW)
    assert isinstance(bad, InvalidExpression)
    assert isinstance(lost, InvalidTimezone)
    assert good == next_fire("0 9 * * *", None, NOW)


@pytest.mark.parametrize(
    ("text", "smallest"),
    [
        ("* * * * *", 60_000),
        ("*/7 * * * *", 4 * 60_000),
        ("0 9,17 * * *", 8 * HOUR),
        ("0 9 * * *", 23 * HOUR),
        ("0,45 9 1 6 *", 45 * 60_000),
        ("30 1,2,3 * * *", 30 * 60_000),
        ("rate(10 seconds)", 10_000),
        ("0 0 1 1 *", 366 * DAY),
        ("at(2026-12-01T09:00:00)", 366 * DAY),
    ],
)
def test_t13_the_smallest_gap_is_the_true_one_clock_changes_and_all(
    text: str, smallest: int
) -> None:
    assert smallest_gap(text, BERLIN, NOW) == smallest

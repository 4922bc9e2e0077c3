"""A claim's questions besides the next fire: ranges, the newest, counts, gaps, targets."""

from typing import TypedDict, get_args

import pytest
from duetick.domain.errors import kind_of
from duetick.domain.expression import (
    InvalidExpression,
    count,
    fires,
    newest,
    next_fire,
    smallest_gap,
    sub_minute,
    targets,
    upcoming,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.expression.cases import Gap, Repeat
from tests.unit.expression.effort import seconds
from tests.unit.expression.times import ms

HOUR, DAY = 3_600_000, 86_400_000
BERLIN = "Europe/Berlin"
NOW = ms("2026-11-18T10:00")


def test_t09_an_interval_does_not_drift() -> None:
    anchor = ms("2026-03-28T23:17:05")
    times = upcoming("rate(7 minutes)", BERLIN, anchor, 1_000, anchor=anchor)
    assert times == [anchor + k * 7 * 60_000 for k in range(1, 1_001)]


def test_t09_fires_before_the_anchor_are_counted_back_from_it() -> None:
    assert upcoming("rate(1 hour)", None, NOW - 2 * HOUR, 3, anchor=NOW + 5) == [
        NOW - 2 * HOUR + 5,
        NOW - HOUR + 5,
        NOW + 5,
    ]


@pytest.mark.parametrize("count", [0, 1])
def test_i17_a_zone_that_does_not_exist_is_refused_however_many_fires_are_asked_for(
    count: int,
) -> None:
    with pytest.raises(InvalidExpression, match="no IANA zone"):
        upcoming("0 9 * * *", "Mars/Olympus", NOW, count)


@pytest.mark.parametrize("zone", [5, ["UTC"], b"UTC", {"UTC": 1}])
def test_i17_a_zone_that_is_no_text_is_refused_by_its_type(zone: str) -> None:
    words = f"a name is text, not {kind_of(zone)}"
    for ask in (next_fire, smallest_gap, targets):
        with pytest.raises(InvalidExpression, match=words):
            ask("0 9 * * *", zone, NOW)
    for question in (count, newest, fires, upcoming):
        with pytest.raises(InvalidExpression, match=words):
            question("0 9 * * *", zone, NOW, NOW + 1)


def test_c04_a_year_far_ahead_is_found_without_going_through_those_before() -> None:
    def ask() -> None:
        for month in range(1, 13):
            assert next_fire(f"cron(0 9 1 {month} ? 2199)", None, NOW) is not None

    assert seconds(ask) < 0.05


def test_t09_an_interval_is_elapsed_time_whatever_the_zone() -> None:
    anchor = ms("2026-03-01T12:00")
    for zone in (None, BERLIN, "Australia/Lord_Howe"):
        days = upcoming("rate(1 day)", zone, anchor, 60, anchor=anchor)
        assert days == [anchor + k * DAY for k in range(1, 61)]


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


class Options(TypedDict):
    """C-01's options and an anchor."""

    gap: Gap
    repeat: Repeat
    anchor: int


Question = tuple[str, str | None, int, int, Gap, Repeat]
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


@settings(max_examples=400)
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
    def ask() -> None:
        assert count("* * * * *", BERLIN, NOW, NOW + 365 * DAY) == 365 * 1440
        assert count("* * * * *", BERLIN, 0, ms("2199-12-30")) > 120_000_000

    assert seconds(ask) < 0.2


def test_j09_the_newest_fire_of_long_ago_is_found_from_the_end() -> None:
    def ask() -> None:
        assert newest("0 0 29 2 *", BERLIN, 0, ms("2027-12-31")) == ms("2024-02-28T23:00")
        assert newest("* * * * *", BERLIN, -(10**15), NOW + 1) == NOW
        assert newest("0 0 30 1 *", None, ms("2026-02-01"), NOW) is None

    assert seconds(ask) < 0.1


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
    def ask() -> None:
        for year in range(1970, 2020):
            assert next_fire(f"cron(0 9 1 1 ? {year})", BERLIN, NOW) is None
            assert newest(f"cron(0 9 1 1 ? {year})", BERLIN, 0, NOW) is not None

    assert seconds(ask) < 0.5


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
        ("0 0 1 1 *", 365 * DAY),
        ("at(2026-12-01T09:00:00)", 366 * DAY),
        ("* * 29 2 *", 60_000),
        ("0,30 9 29 2 *", 30 * 60_000),
        ("cron(0/10 9 1 1 ? 2099)", 10 * 60_000),
    ],
)
def test_t13_the_smallest_gap_is_the_true_one_clock_changes_and_all(
    text: str, smallest: int
) -> None:
    assert smallest_gap(text, BERLIN, NOW) == smallest

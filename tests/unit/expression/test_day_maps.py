"""G-05: day maps, for one target or several."""

from types import MappingProxyType

import pytest
from duetick.domain.expression import InvalidExpression, from_day_map, parse, targets, upcoming

from tests.unit.expression.times import ms, utc

HOUR = 3_600_000
BERLIN = "Europe/Berlin"


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
        ({"moonday": "09:00"}, "'moonday' is not a day"),
        ({"mon": "09:00", "Monday": "10:00"}, "'Monday' has its time already"),
        ({"x": {"time": "09:00"}}, "'time' is not a day"),
        ({"x": {"mon": "09:00"}, "wed": {"time": "10:00"}}, "'wed' has a time beside targets"),
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


def test_g05_days_have_long_and_short_names_and_a_time_may_stand_in_an_object() -> None:
    days = {"Monday": {"time": "09:00"}, "tuesday": {"time": None}, "thu": "17:30", "sunday": None}
    assert from_day_map(days) == "days(mon 09:00, thu 17:30)"
    assert from_day_map({"x": days, "mon": {"fri": "08:00"}}) == (
        "days(x: mon 09:00, thu 17:30; mon: fri 08:00)"
    )
    assert parse("days(Monday 09:00, thursday 17:30)") == "days(mon 09:00, thu 17:30)"


def test_g05_each_day_that_is_wrong_is_named() -> None:
    days = {"mon": "9", "moonday": "09:00", "wed": {"time": "25:00"}, "thu": "10:00"}
    with pytest.raises(InvalidExpression) as problem:
        from_day_map({"x": days, "y z": {"fri": "09:00"}})
    assert [flaw.path for flaw in problem.value.flaws] == [
        ("cron", "x", "mon"),
        ("cron", "x", "moonday"),
        ("cron", "x", "wed"),
        ("cron", "y z"),
    ]


@pytest.mark.parametrize("days", [None, "mon 09:00", ["mon"], {5: {"mon": "09:00"}}])
def test_g05_what_is_no_mapping_of_names_is_refused_by_its_type(days: dict[str, object]) -> None:
    with pytest.raises(InvalidExpression, match=r"is no mapping of days|a target's name is text"):
        from_day_map(days)


def test_g05_what_is_no_day_map_has_no_targets() -> None:
    assert targets("0 9 * * *", None, 9 * HOUR) == ()
    assert targets("days(mon 09:00)", None, ms("2026-11-23T09:00")) == ()

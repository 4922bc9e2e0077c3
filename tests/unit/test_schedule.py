"""Schedules, principals and occurrences: checked as they are made."""

from dataclasses import replace
from typing import Any, cast

import pytest
from duetick.domain.errors import InvalidSchedule
from duetick.domain.policies import Policies
from duetick.domain.schedule import (
    IndexRow,
    Json,
    Occurrence,
    Principal,
    Schedule,
    check_timing,
    dump_input,
)
from duetick.domain.states import State

MADE = Schedule("ada", "digest", "0 9 * * *", "reminders", "send")


def test_a_schedule_needs_five_things() -> None:
    assert MADE.id == "ada/digest"
    assert (MADE.timezone, MADE.enabled, MADE.policies) == (None, True, Policies())


@pytest.mark.parametrize("name", ["", "9lives", "send digest", "a" * 65, "ä", "a/b"])
@pytest.mark.parametrize("field", ["flow", "action"])
def test_d09_a_flow_or_action_has_a_plain_name(field: str, name: str) -> None:
    with pytest.raises(InvalidSchedule, match=f"{field}: expected a letter"):
        replace(MADE, **cast("dict[str, Any]", {field: name}))


def test_m06_a_static_schedule_runs_as_its_flow() -> None:
    assert replace(MADE, user_id="", key="reminders/nightly").runs_as == Principal("flow:reminders")


def test_d10_a_schedule_runs_as_its_owner() -> None:
    assert MADE.runs_as == Principal("ada")


def test_d10_a_schedule_runs_as_the_principal_that_it_names() -> None:
    bob = Principal("bob", "org", {"role": "admin"})
    assert replace(MADE, principal=bob).runs_as == bob


def test_d09_a_principal_has_a_user() -> None:
    with pytest.raises(InvalidSchedule, match=r"principal\.user_id"):
        Principal("")


@pytest.mark.parametrize(
    ("field", "value", "wrong"),
    [
        ("labels", {"a": "日" * 2_000}, "labels: has 6,001 bytes"),
        ("labels", {"a": 1}, "labels.a: expected text, got a number"),
        ("labels", {"\ud800": "a"}, "labels: .*cannot be written as UTF-8"),
        (
            "principal",
            Principal("bob", attributes={"a": "b" * 5_000}),
            "principal: has 5,004 bytes",
        ),
        ("principal", Principal("\ud800"), "principal: .*cannot be written as UTF-8"),
        ("external_id", "x" * 129, "external_id: has 129 characters; 128 are allowed"),
        ("external_id", "", "external_id: is blank; write something"),
    ],
)
def test_g08_what_not_every_store_can_keep_is_refused(
    field: str, value: object, wrong: str
) -> None:
    with pytest.raises(InvalidSchedule, match=wrong):
        replace(MADE, **cast("dict[str, Any]", {field: value}))


def test_an_input_of_64_kilobytes_is_taken() -> None:
    assert replace(MADE, input="x" * (64 * 1024 - 2)).input


def test_a_larger_input_is_refused() -> None:
    with pytest.raises(InvalidSchedule, match="input: larger than 64 KB"):
        replace(MADE, input="x" * (64 * 1024 - 1))


def test_an_input_is_measured_in_bytes_and_not_in_characters() -> None:
    with pytest.raises(InvalidSchedule, match="input: larger than 64 KB"):
        replace(MADE, input="日" * (22 * 1024))


@pytest.mark.parametrize("value", [float("nan"), float("inf"), {1, 2}, b"bytes", object()])
def test_an_input_that_is_not_json_is_refused(value: object) -> None:
    with pytest.raises(InvalidSchedule, match="input: is not JSON"):
        dump_input(cast("Json", value))


def test_an_input_with_a_lone_surrogate_is_refused() -> None:
    with pytest.raises(InvalidSchedule, match="input: is not JSON"):
        replace(MADE, input="\ud800")


def test_m04_what_moves_fire_times_is_expression_zone_and_clock_rules() -> None:
    assert replace(MADE, input=1, action="other").times == MADE.times
    assert replace(MADE, cron="0 8 * * *").times != MADE.times
    assert replace(MADE, timezone="UTC").times != MADE.times
    assert replace(MADE, policies=Policies(gap="skip")).times != MADE.times


@pytest.mark.parametrize(("cron", "zone"), [("0 9 * *", None), ("0 9 * * * *", None)])
def test_i17_timing_that_cannot_be_read_is_refused(cron: str, zone: str | None) -> None:
    with pytest.raises(ValueError, match=r".{10}"):
        check_timing(cron, zone)


@pytest.mark.parametrize("zone", ["", "Mars/Olympus", "../../etc/passwd"])
def test_i17_a_zone_that_is_not_there_is_refused(zone: str) -> None:
    with pytest.raises(ValueError, match=r".{10}"):
        check_timing("0 9 * * *", zone)


def test_i16_an_index_row_takes_any_text() -> None:
    assert IndexRow("any/\x00", "", "nonsense", "", 0).cron == "nonsense"


def test_an_occurrence_is_named_by_schedule_time_and_origin() -> None:
    occurrence = Occurrence("ada", "digest", "0 9 * * *", None, 5)
    assert occurrence.identity == ("ada", "digest", 5, "schedule")
    assert occurrence.schedule_id == "ada/digest"


def test_a_retry_of_an_occurrence_has_the_same_identity() -> None:
    occurrence = Occurrence("ada", "digest", "0 9 * * *", None, 5)
    again = replace(occurrence, state=State.RETRYING, due_at=99, fence=3, attempts=2)
    assert again.identity == occurrence.identity

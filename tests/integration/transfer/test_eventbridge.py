"""EventBridge: the output of its commands is read, and nothing of it is lost without a word."""

import json
from typing import Any

import pytest
from duetick.cli.transfer import eventbridge
from duetick.cli.transfer.items import RefusedItem, Remark, SourceItem, SourcePart
from duetick.domain.expression import fires

from tests.integration.transfer.evaluated import SINCE, UNTIL, here
from tests.integration.transfer.parts import items, only, refused

ONE: dict[str, Any] = {
    "Arn": "arn:aws:scheduler:eu-west-1:123456789012:schedule/billing/remind-ann",
    "CreationDate": "2026-01-05T10:23:45.123000+01:00",
    "FlexibleTimeWindow": {"Mode": "OFF"},
    "GroupName": "billing",
    "LastModificationDate": "2026-01-05T10:23:45.123000+01:00",
    "Name": "remind-ann",
    "ScheduleExpression": "cron(0 9 ? * MON-FRI *)",
    "ScheduleExpressionTimezone": "Europe/Berlin",
    "State": "ENABLED",
    "Target": {
        "Arn": "arn:aws:lambda:eu-west-1:123456789012:function:remind",
        "Input": '{"user": "ann", "text": "pay"}',
        "RetryPolicy": {"MaximumEventAgeInSeconds": 86400, "MaximumRetryAttempts": 185},
        "RoleArn": "arn:aws:iam::123456789012:role/scheduler",
    },
}


def read(*documents: object) -> list[SourcePart]:
    """Return the parts of documents that stand one after another, as a shell loop prints them."""
    text = "\n".join(json.dumps(one, indent=4) for one in documents)
    return [*eventbridge.read("listing.json", text)]


def changed(**more: object) -> dict[str, Any]:
    return {**ONE, **more}


def test_a_schedule_is_read_as_get_schedule_prints_it() -> None:
    found = only(read(ONE))
    assert found.name == "billing/remind-ann"
    assert (found.timing.cron, found.timing.timezone) == (
        "cron(0 9 ? * 2-6 *)",
        "Europe/Berlin",
    )
    assert found.timing.policies == {"gap": "skip"}, "its retries are those that nobody chose"
    assert found.facts["input"] == {"user": "ann", "text": "pay"}
    assert found.facts["target_name"] == "remind"
    assert found.notes == []


@pytest.mark.parametrize(
    ("expression", "zone"),
    [
        *[("cron(0/20 1-3 * * ? *)", "Europe/Berlin"), ("cron(0 2 ? * SUN *)", "Europe/Berlin")],
        *[("cron(0 9 L * ? *)", None), ("cron(0 9 ? * 6L 2026-2027)", "America/Santiago")],
    ],
)
def test_it_fires_as_eventbridges_expression_is_read_for_a_year(
    expression: str, zone: str | None
) -> None:
    given = changed(ScheduleExpression=expression, ScheduleExpressionTimezone=zone or "UTC")
    ours = here(only(read(given)).timing)
    assert ours == fires(expression, zone, SINCE - 1, UNTIL, gap="skip")
    assert ours


def test_window_dates_state_completion_and_retries_become_policies() -> None:
    given = changed(
        FlexibleTimeWindow={"Mode": "FLEXIBLE", "MaximumWindowInMinutes": 15},
        StartDate="2026-12-01T00:00:00+01:00",
        EndDate=1_830_297_600.0,
        State="DISABLED",
        ActionAfterCompletion="DELETE",
        Target=ONE["Target"]
        | {"RetryPolicy": {"MaximumEventAgeInSeconds": 3600, "MaximumRetryAttempts": 4}},
    )
    found = only(read(given))
    assert found.timing.policies == {
        "gap": "skip",
        "startsAt": "2026-11-30T23:00:00Z",
        "endsAt": "2028-01-01T00:00:00Z",
        "spread": 900,
        "delivery": "at_least_once",
        "retry": {"attempts": 5},
        "longestLateness": 3600,
        "afterCompletion": "delete",
    }
    assert not found.timing.enabled
    assert [note for note in found.notes if "fixed place" in note]


def test_no_retries_are_at_most_once() -> None:
    target = ONE["Target"] | {"RetryPolicy": {"MaximumRetryAttempts": 0}}
    assert only(read(changed(Target=target))).timing.policies["delivery"] == "at_most_once"


def test_an_option_that_should_be_a_number_is_told_and_ends_no_import() -> None:
    target = ONE["Target"] | {"RetryPolicy": {"MaximumRetryAttempts": "few"}}
    first, second = read(changed(Target=target), ONE)
    assert "MaximumRetryAttempts: expected a whole number, got 'few'" in refused([first]).why
    only([second])


def test_what_is_otherwise_here_is_told() -> None:
    target = ONE["Target"] | {
        "Input": '{"at": "<aws.scheduler.scheduled-time>"}',
        "DeadLetterConfig": {"Arn": "arn:aws:sqs:eu-west-1:123456789012:dead"},
    }
    told = only(read(changed(Target=target, ScheduleExpression="rate(1 hour)"))).notes
    assert len(told) == 3
    for word in ("counts from its creation", "onFailure", "<aws.scheduler."):
        assert any(word in note for note in told)


def test_a_listing_without_expressions_names_the_command_that_prints_them() -> None:
    listed = {name: ONE[name] for name in ("Arn", "Name", "GroupName", "State")}
    found = refused(read({"Schedules": [listed]}))
    assert found.why == "list-schedules prints no expression"
    assert "get-schedule --group-name billing --name remind-ann" in found.instead


def test_an_expression_that_cannot_be_read_is_refused_with_an_example() -> None:
    found = refused(read(changed(ScheduleExpression="cron(0 9 * * MON-FRI *)")))
    assert "cron(0 9 ? * MON-FRI *)" in found.instead


def test_a_rule_has_an_item_for_each_target_and_one_for_events_is_none() -> None:
    rule = {
        "Arn": "arn:aws:events:eu-west-1:123456789012:rule/nightly",
        "Name": "nightly",
        "State": "ENABLED",
        "ScheduleExpression": "rate(5 minutes)",
        "Targets": [{"Id": "1", "Arn": "a:b", "Input": "{}"}, {"Id": "2", "Arn": "a:c"}],
    }
    pattern = {"Arn": "x:rule/other", "Name": "other", "EventPattern": "{}"}
    first, second, other = read({"Rules": [rule, pattern]})
    assert [one.name for one in items([first, second])] == ["nightly/1", "nightly/2"]
    assert isinstance(first, SourceItem)
    assert first.timing.timezone is None
    assert isinstance(other, Remark)


def test_documents_of_a_loop_stand_one_after_another() -> None:
    found = items(read(ONE, changed(Name="second", GroupName="default")))
    assert [one.name for one in found] == ["billing/remind-ann", "second"]
    begins = len(json.dumps(ONE, indent=4).splitlines()) + 1
    places = ["listing.json:1 remind-ann", f"listing.json:{begins} second"]
    assert [one.place for one in found] == places


NO_OBJECTS: tuple[object, ...] = (5, "x", [1], [[]])


@pytest.mark.parametrize("odd", NO_OBJECTS)
@pytest.mark.parametrize("field", ["Target", "FlexibleTimeWindow", "RetryPolicy", "Targets"])
def test_a_part_of_another_shape_is_refused_and_ends_no_import(field: str, odd: object) -> None:
    one: dict[str, object] = {"Name": "a", "ScheduleExpression": "rate(5 minutes)"}
    if field == "RetryPolicy":
        one["Target"] = {field: odd}
    elif field == "Targets":
        one |= {"EventBusName": "default", "Targets": odd}
    else:
        one[field] = odd
    assert "is no object" in refused(read(one)).why


def test_a_listing_of_something_else_is_refused_and_ends_no_import() -> None:
    good = {"Name": "a", "ScheduleExpression": "rate(5 minutes)", "Arn": "x"}
    found = [*read({"Schedules": [None, 5, good]})]
    assert [type(one).__name__ for one in found] == ["RefusedItem", "RefusedItem", "SourceItem"]


@pytest.mark.parametrize("zone", [{"a": 1}, ["UTC"], 5])
def test_a_zone_that_is_no_text_ends_no_import(zone: object) -> None:
    found = read(changed(ScheduleExpressionTimezone=zone), changed())
    assert len(found) == 2


def test_a_date_before_all_dates_is_refused() -> None:
    one = {"Name": "a", "ScheduleExpression": "rate(5 minutes)"}
    early = one | {"StartDate": "0001-01-01T00:00:00+14:00"}
    assert "cannot be read" in refused(read(early)).why


def test_a_document_that_is_no_schedule_is_refused() -> None:
    (found,) = read({"Account": "123456789012"})
    assert isinstance(found, RefusedItem)
    assert "get-schedule" in found.instead

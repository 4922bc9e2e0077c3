"""The calls of EventBridge Scheduler, as botocore sends them. The answers are made here."""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from io import BytesIO
from typing import Any, cast

import pytest
from botocore.awsrequest import AWSPreparedRequest, AWSResponse
from botocore.compat import HTTPHeaders
from duetick.aws import client_of
from duetick.core.managed.trigger import Trigger
from duetick.domain.bells import RING_FIELD, Bell
from duetick.domain.errors import BellsUnavailable
from duetick.runtime.eventbridge import CALL_TRIES, PATIENCE, ScheduleGroup
from duetick.testing.conformance.samples import MINUTE, NOON

ARN = "arn:aws:lambda:eu-central-1:123456789012:function:"
TRIGGER = Trigger("stack", group="bells", role="role", dispatch=f"{ARN}dispatch", tick=f"{ARN}tick")
BELL = Bell("r-1", "cron(0 9 ? * MON-FRI *)", "Europe/Berlin", None, None, '{"a": 1}')
DONE = 200, {"ScheduleArn": "arn"}
THROTTLED = 429, {"__type": "ThrottlingException", "Message": "Rate exceeded"}
ABSENT = 404, {"__type": "ResourceNotFoundException", "Message": "no schedule"}
THERE = 409, {"__type": "ConflictException", "Message": "there is one"}
FULL = 402, {"__type": "ServiceQuotaExceededException", "Message": "10000000 schedules"}


class Raw(BytesIO):
    """The body of an answer, as urllib3 gives it."""

    def stream(self, *_: object) -> Iterator[bytes]:
        """Yield it at once."""
        yield self.read()


@dataclass
class Wire:
    """The requests that were sent, and the answers: one after another, the last for ever."""

    answers: Sequence[tuple[int, dict[str, Any]]]
    sent: list[AWSPreparedRequest] = field(default_factory=list)

    def __call__(self, request: AWSPreparedRequest, **_: object) -> AWSResponse:
        """Answer a request in place of the network."""
        status, body = self.answers[min(len(self.sent), len(self.answers) - 1)]
        self.sent.append(request)
        headers = HTTPHeaders.from_dict({"x-amzn-ErrorType": str(body.get("__type", ""))})
        return AWSResponse(request.url, status, headers, Raw(json.dumps(body).encode()))

    def bodies(self) -> list[dict[str, Any]]:
        """Return the bodies of the requests."""
        return [json.loads(cast("bytes", one.body)) for one in self.sent]

    def methods(self) -> list[str]:
        """Return the methods: POST creates, PUT updates."""
        return [one.method for one in self.sent]


@pytest.fixture
def group(monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[ScheduleGroup, Wire]]:
    """A way to make a group, and the wire that answers it. No retry waits."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "none")
    monkeypatch.setattr("botocore.endpoint.time.sleep", lambda _seconds: None)

    def made(*answers: tuple[int, dict[str, Any]]) -> tuple[ScheduleGroup, Wire]:
        make = client_of.__wrapped__
        client = make("scheduler", "eu-central-1", patience=PATIENCE, tries=CALL_TRIES)
        wire = Wire(answers)
        client.meta.events.register("before-send.scheduler", wire)
        return ScheduleGroup(TRIGGER, client), wire

    return made


Made = Callable[..., tuple[ScheduleGroup, Wire]]


def test_s01_a_bell_is_told_with_its_zone_its_target_and_its_end(group: Made) -> None:
    bells, wire = group(DONE)
    bells.put(BELL._replace(starts_at=NOON, ends_at=NOON + MINUTE))
    [asked] = wire.bodies()
    assert wire.sent[0].url.endswith("/schedules/r-1")
    assert asked.pop("ClientToken")
    assert asked == {
        "GroupName": "bells",
        "ScheduleExpression": "cron(0 9 ? * MON-FRI *)",
        "ScheduleExpressionTimezone": "Europe/Berlin",
        "FlexibleTimeWindow": {"Mode": "OFF"},
        "ActionAfterCompletion": "DELETE",
        "State": "ENABLED",
        "StartDate": NOON // 1_000,
        "EndDate": (NOON + MINUTE) // 1_000,
        "Target": {
            "Arn": f"{ARN}dispatch",
            "RoleArn": "role",
            "Input": '{"a": 1}',
            "RetryPolicy": {"MaximumEventAgeInSeconds": 300},
        },
    }


def test_s01_a_call_that_is_throttled_is_repeated_with_its_token(group: Made) -> None:
    bells, wire = group(THROTTLED, THROTTLED, DONE)
    bells.put(BELL)
    tokens = {one["ClientToken"] for one in wire.bodies()}
    assert wire.methods() == ["POST"] * 3
    assert len(tokens) == 1, "so that EventBridge takes it once"


def test_s01_a_call_that_stays_throttled_ends_within_the_minute_of_a_bell(group: Made) -> None:
    bells, wire = group(THROTTLED)
    with pytest.raises(BellsUnavailable, match="Rate exceeded"):
        bells.put(BELL)
    assert len(wire.sent) == CALL_TRIES
    assert CALL_TRIES * (PATIENCE + 2) < 60


def test_s01_a_quota_that_is_used_up_is_told_at_once(group: Made) -> None:
    bells, wire = group(FULL)
    with pytest.raises(BellsUnavailable, match="10000000 schedules"):
        bells.put(BELL)
    assert len(wire.sent) == 1


def test_s01_a_bell_that_is_there_is_replaced_as_a_whole(group: Made) -> None:
    bells, wire = group(THERE, DONE)
    bells.put(BELL)
    assert wire.methods() == ["POST", "PUT"]
    created, updated = wire.bodies()
    assert {**created, "ClientToken": ""} == {**updated, "ClientToken": ""}


def test_s01_a_bell_that_goes_between_two_calls_is_created(group: Made) -> None:
    bells, wire = group(THERE, ABSENT, DONE)
    bells.put(BELL)
    assert wire.methods() == ["POST", "PUT", "POST"]


def test_s01_a_bell_that_others_write_all_the_time_stays_pending(group: Made) -> None:
    bells, _ = group(THERE, ABSENT, THERE, ABSENT)
    with pytest.raises(BellsUnavailable, match="by others"):
        bells.put(BELL)


def test_s01_to_delete_an_absent_bell_is_no_error(group: Made) -> None:
    bells, wire = group(ABSENT)
    bells.delete("r-1")
    assert wire.methods() == ["DELETE"]
    assert "groupName=bells" in wire.sent[0].url


def test_s01_names_come_from_all_pages(group: Made) -> None:
    first = {"Schedules": [{"Name": "r-1"}, {"Name": "r-2"}], "NextToken": "more"}
    bells, wire = group((200, first), (200, {"Schedules": [{"Name": "r-3"}]}))
    assert [*bells.names("r-")] == ["r-1", "r-2", "r-3"]
    assert ["NextToken=more" in one.url for one in wire.sent] == [False, True]
    assert all("NamePrefix=r-" in one.url for one in wire.sent)


def test_s01_a_group_that_is_gone_has_no_names(group: Made) -> None:
    bells, _ = group(ABSENT)
    assert [*bells.names("r-")] == []


@pytest.mark.parametrize(
    ("told", "schedule"),
    [
        (json.dumps({RING_FIELD: {"user": "ann", "key": "k"}}), ("ann", "k")),
        (json.dumps({"source": "theirs"}), None),
        ("no JSON", None),
    ],
)
def test_s01_the_schedule_of_a_bell_is_read_from_what_it_sends(
    group: Made, told: str, schedule: tuple[str, str] | None
) -> None:
    bells, _ = group((200, {"Target": {"Arn": "a", "RoleArn": "r", "Input": told}}))
    assert bells.schedule_of("r-1") == schedule


def test_s01_a_wake_is_one_schedule_for_all_that_ask(group: Made) -> None:
    bells, wire = group(DONE)
    for _ in range(3):
        bells.wake(NOON)
    [asked] = wire.bodies()
    assert wire.sent[0].url.endswith(f"/schedules/wake-{NOON // MINUTE}")
    assert asked["ScheduleExpression"].startswith("at(2027-03-01T12:00:00")
    assert asked["ActionAfterCompletion"] == "DELETE"
    assert asked["Target"]["Arn"] == f"{ARN}tick"


def test_s01_a_wake_that_another_process_asked_for_is_enough(group: Made) -> None:
    bells, wire = group(THERE)
    bells.wake(NOON)
    assert len(wire.sent) == 1


def test_s01_a_wake_that_failed_is_asked_for_again(group: Made) -> None:
    bells, wire = group(FULL, DONE)
    with pytest.raises(BellsUnavailable):
        bells.wake(NOON)
    bells.wake(NOON)
    assert len(wire.sent) == 2

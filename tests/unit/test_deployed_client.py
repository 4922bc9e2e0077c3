"""`duetick schedules --stack`: the stack is found by its name, where the shell's settings lead."""

import json
from collections.abc import Callable, Mapping
from io import BytesIO
from typing import Any
from unittest.mock import Mock

import pytest
from botocore.exceptions import (
    ClientError,
    EndpointConnectionError,
    NoCredentialsError,
    NoRegionError,
    ProfileNotFound,
)
from botocore.parsers import ResponseParserError
from botocore.session import Session
from duetick.cli.deployed import Deployed
from duetick.cli.main import main
from duetick.cli.problem import CliProblem
from duetick.core.done import Purged
from duetick.operators import Operators

from tests.lab.credentials import DUMMY
from tests.lab.process import LOCALHOST, free_port

URL = "https://abc123.execute-api.eu-central-1.amazonaws.com/v1"
COMPLETE = {
    "StackStatus": "CREATE_COMPLETE",
    "Outputs": [{"OutputKey": "ApiUrl", "OutputValue": URL}],
}


class CloudFormation:
    """The part of CloudFormation that the tests ask."""

    def __init__(self, stack: Mapping[str, object], **nested: Mapping[str, object]) -> None:
        self._stacks = {f"arn:aws:cloudformation:x:1:stack/{one}/2": nested[one] for one in nested}
        self._stack = stack

    def describe_stacks(self, **asked: str) -> dict[str, object]:
        """Return one stack."""
        return {"Stacks": [self._stacks.get(asked["StackName"], self._stack)]}

    def describe_stack_resources(self, **_: str) -> dict[str, object]:
        """Return the stacks in it, and a queue."""
        kinds = dict.fromkeys(self._stacks, "AWS::CloudFormation::Stack") | {"q": "AWS::SQS::Queue"}
        named = ("PhysicalResourceId", "ResourceType")
        return {"StackResources": [dict(zip(named, one, strict=True)) for one in kinds.items()]}


@pytest.fixture
def regions(monkeypatch: pytest.MonkeyPatch) -> Callable[[dict[str, Any]], list[str | None]]:
    """Return a function that gives the regions in which a stack is looked for."""
    for name, value in DUMMY.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("AWS_REGION", raising=False)

    def there(stack: dict[str, Any]) -> list[str | None]:
        asked: list[str | None] = []

        def create_client(session: Session, _service: str) -> CloudFormation:
            asked.append(session.get_config_variable("region"))
            return CloudFormation(stack)

        monkeypatch.setattr(Session, "create_client", create_client)
        return asked

    return there


@pytest.mark.parametrize("name", ["AWS_DEFAULT_REGION", "AWS_REGION"])
def test_the_region_is_the_shells_by_either_of_its_names(
    regions: Callable[[dict[str, Any]], list[str | None]],
    monkeypatch: pytest.MonkeyPatch,
    name: str,
) -> None:
    asked = regions(COMPLETE)
    monkeypatch.delenv("AWS_DEFAULT_REGION")
    monkeypatch.setenv(name, "eu-central-1")
    Deployed.find("duetick").operators().of("you")
    assert asked == ["eu-central-1"]


def test_a_stack_that_was_not_made_to_its_end_is_told(
    regions: Callable[[dict[str, Any]], list[str | None]],
) -> None:
    regions({"StackStatus": "ROLLBACK_COMPLETE"})
    with pytest.raises(CliProblem, match="ROLLBACK_COMPLETE"):
        Deployed.find("duetick").operators().of("you")


OURS = {
    "StackStatus": "CREATE_COMPLETE",
    "Outputs": [
        {"OutputKey": "ApiUrl", "OutputValue": URL},
        {"OutputKey": "MigrateFunction", "OutputValue": "migrate"},
    ],
}


def within(monkeypatch: pytest.MonkeyPatch, **nested: Mapping[str, object]) -> None:
    """Let there be a stack of an application that repeats an output, with other stacks in it."""
    stacks = CloudFormation(COMPLETE, **nested)
    monkeypatch.setattr(Session, "create_client", lambda *_: stacks)


def test_a_stack_in_another_one_is_found_by_the_name_of_that(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    within(monkeypatch, other={"StackStatus": "CREATE_COMPLETE"}, **{"my-app-Duetick-1A": OURS})
    found = Deployed.find("my-app")
    assert (found.name, found.outputs["MigrateFunction"]) == ("my-app-Duetick-1A", "migrate")


def test_of_several_stacks_in_another_one_the_caller_has_to_name_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    within(monkeypatch, one=OURS, two=OURS)
    with pytest.raises(CliProblem, match=r"several of Duetick's: one, two\. Name one"):
        Deployed.find("my-app")


def test_a_stack_that_cannot_be_reached_is_not_taken_for_the_local_one(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    nowhere = Operators(f"http://{LOCALHOST}:{free_port()}")
    monkeypatch.setattr(Deployed, "find", lambda _: Mock(operators=lambda _: nowhere))
    assert main(["schedules", "--stack", "duetick", "--user", "you", "list"]) == 1
    told = capsys.readouterr().err
    assert "from inside its VPC" in told
    assert "make run" not in told


def answered(code: str) -> ClientError:
    """An answer of AWS's."""
    return ClientError({"Error": {"Code": code, "Message": "No."}}, "DescribeStacks")


ELSEWHERE = "AWS_ENDPOINT_URL is http://here:1: unset it for AWS, or let it name what emulates AWS."


@pytest.mark.parametrize(
    ("problem", "endpoint", "helps"),
    [
        (NoRegionError(), "", "Set AWS_DEFAULT_REGION to a region of AWS"),
        (ProfileNotFound(profile="nope"), "", "Set AWS_PROFILE to one that"),
        (NoCredentialsError(), "", "Sign in (`aws sso login`), or set AWS_PROFILE"),
        (answered("ExpiredToken"), "", "Sign in again: the credentials of this shell have ended"),
        (answered("InvalidClientTokenId"), "", "AWS does not know the credentials of this shell"),
        (answered("ValidationError"), "http://here:1", "Are its name, the region and the account"),
        (EndpointConnectionError(endpoint_url="x"), "", "Is the region right, and does this mach"),
        (EndpointConnectionError(endpoint_url="x"), "http://here:1", ELSEWHERE),
        (ResponseParserError("invalid XML received:\nb''"), "http://here:1", ELSEWHERE),
        (ValueError("Invalid endpoint: x"), "http://here:1", ELSEWHERE),
    ],
)
def test_a_stack_that_is_not_found_is_told_with_what_helps(
    monkeypatch: pytest.MonkeyPatch, problem: Exception, endpoint: str, helps: str
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", endpoint)
    monkeypatch.setattr(Session, "create_client", Mock(side_effect=problem))
    with pytest.raises(CliProblem) as told:
        Deployed.find("duetick")
    said = str(told.value)
    assert said.startswith("The stack 'duetick' cannot be described (")
    assert f"). {helps}" in said
    assert "\n" not in said


def test_j11_a_password_in_an_endpoint_is_not_told(monkeypatch: pytest.MonkeyPatch) -> None:
    endpoint = "http://me:open-sesame@here:1"
    monkeypatch.setenv("AWS_ENDPOINT_URL", endpoint)
    away = EndpointConnectionError(endpoint_url=endpoint)
    monkeypatch.setattr(Session, "create_client", Mock(side_effect=away))
    with pytest.raises(CliProblem, match="here:1: unset it for AWS") as told:
        Deployed.find("duetick")
    assert "open-sesame" not in str(told.value)


class Functions:
    """The part of Lambda that the tests ask."""

    def __init__(self, answer: Mapping[str, object], failed: str | None = None) -> None:
        self.asked: list[dict[str, object]] = []
        self._answer: dict[str, object] = {
            "Payload": BytesIO(json.dumps(answer).encode()),
            "FunctionError": failed,
        }

    def invoke(self, **given: str) -> dict[str, object]:
        """Answer."""
        self.asked.append({"function": given["FunctionName"], **json.loads(given["Payload"])})
        return self._answer


def stack_with(functions: Functions) -> Deployed:
    """Return a stack whose function `migrate` gives these answers."""
    return Deployed({"MigrateFunction": "m"}, Mock(create_client=lambda *_, **__: functions))


def test_j07_a_step_is_taken_by_the_function_of_the_stack() -> None:
    functions = Functions({"differences": 0})
    assert stack_with(functions).step({"Step": "check"}) == {"differences": 0}
    assert functions.asked == [{"function": "m", "Step": "check"}]


def test_j07_a_step_that_fails_says_why() -> None:
    failing = Functions({"errorMessage": "the store is away"}, failed="Unhandled")
    with pytest.raises(CliProblem, match="the store is away"):
        stack_with(failing).step({"Step": "check"})


def test_j07_a_rebuild_of_a_stack_is_told_who_asks(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    counted = {"schedules": 3, "differences": 1, "unreadable": 0, "mended": 1}
    functions = Functions({**counted, "dry_run": False, "complete": True, "found": []})
    stack = Mock(who=lambda: "arn:ann", step=stack_with(functions).step)
    monkeypatch.setattr(Deployed, "find", lambda _: stack)
    assert main(["rebuild", "--stack", "duetick", "--yes", "--why", "drift"]) == 0
    asked = {"Step": "rebuild", "DryRun": False, "Who": "arn:ann", "Why": "drift"}
    assert functions.asked == [{"function": "m", **asked}]
    assert "3 schedules, 1 differences, 1 mended." in capsys.readouterr().err


@pytest.mark.parametrize(
    ("answer", "code", "told"),
    [
        (
            {"purged": Purged(2, 1_234, 3, more=True)._asdict(), "goes_on": True},
            0,
            "There is more: it goes on by itself. `duetick locks --stack duetick` shows it.",
        ),
        (
            {"purged": "another purge is at work"},
            1,
            "Another purge is at work: `duetick locks --stack duetick` says whose.",
        ),
    ],
)
def test_j10_a_stack_purges_by_itself_and_is_told_who_asks(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    answer: Mapping[str, object],
    code: int,
    told: str,
) -> None:
    functions = Functions(answer)
    stack = Mock(who=lambda: "arn:ann", step=stack_with(functions).step)
    monkeypatch.setattr(Deployed, "find", lambda _: stack)
    assert main(["purge", "--stack", "duetick", "--why", "the disk"]) == code
    asked = {"Step": "purge", "Who": "arn:ann", "Why": "the disk"}
    assert functions.asked == [{"function": "m", **asked}]
    out, err = capsys.readouterr()
    assert told in err
    assert ("1,234 occurrences left" in out) is (code == 0)


def test_j10_a_stack_keeps_to_the_days_of_its_deployment() -> None:
    assert main(["purge", "--stack", "duetick", "--days", "7"]) == 2

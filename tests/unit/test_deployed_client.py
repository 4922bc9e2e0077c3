"""`duetick schedules --stack`: the stack is found by its name, where the shell's settings lead."""

from collections.abc import Callable
from typing import Any

import pytest
from botocore.session import Session
from duetick.cli import deployed
from duetick.cli.deployed import client_of
from duetick.cli.main import main
from duetick.cli.problem import Problem
from duetick.client import Client

from tests.lab.credentials import DUMMY
from tests.lab.process import LOCALHOST, free_port

URL = "https://abc123.execute-api.eu-central-1.amazonaws.com/v1"
COMPLETE = {
    "StackStatus": "CREATE_COMPLETE",
    "Outputs": [{"OutputKey": "ApiUrl", "OutputValue": URL}],
}


class CloudFormation:
    """As much of it as is asked."""

    def __init__(self, stack: dict[str, object]) -> None:
        self._stack = stack

    def describe_stacks(self, **_: str) -> dict[str, object]:
        """One."""
        return {"Stacks": [self._stack]}


@pytest.fixture
def regions(monkeypatch: pytest.MonkeyPatch) -> Callable[[dict[str, Any]], list[str | None]]:
    """The regions that the stack is looked for in, once it is said what is there."""
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
    client_of("duetick", "you")
    assert asked == ["eu-central-1"]


def test_a_stack_that_was_not_made_to_its_end_is_told(
    regions: Callable[[dict[str, Any]], list[str | None]],
) -> None:
    regions({"StackStatus": "ROLLBACK_COMPLETE"})
    with pytest.raises(Problem, match="ROLLBACK_COMPLETE"):
        client_of("duetick", "you")


def test_a_stack_that_cannot_be_reached_is_not_taken_for_the_local_one(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    nowhere = Client(f"http://{LOCALHOST}:{free_port()}", user="you")
    monkeypatch.setattr(deployed, "client_of", lambda *_: nowhere)
    assert main(["schedules", "--stack", "duetick", "--user", "you", "list"]) == 1
    told = capsys.readouterr().err
    assert "from inside its VPC" in told
    assert "make run" not in told

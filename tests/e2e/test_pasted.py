"""The commands that `make cloud` prints, and the README's for a deployed stack, can be pasted."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.documents import blocks
from tests.e2e.conftest import TEMPLATE, Deployed
from tests.lab.cloud import welcome
from tests.lab.credentials import DUMMY
from tests.lab.emulated_aws import REGION

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def answers(deployed: Deployed) -> list[Any]:
    """Return the answers of the printed commands, one after the other."""
    printed = welcome(deployed).split("\n\n")
    commands = [one for one in printed if one.lstrip().startswith("curl")]
    return [json.loads(pasted(one)) for one in commands]


def pasted(command: str, **env: str) -> str:
    """Return the output of a shell."""
    done = subprocess.run(
        ["sh", "-c", command],
        capture_output=True,
        text=True,
        timeout=60,
        cwd=TEMPLATE.parent,
        check=False,
        env={**os.environ, **env},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_schedule_is_made_and_its_history_shown(answers: list[Any]) -> None:
    made, history, *_ = answers
    assert (made["key"], made["cron"], made["enabled"]) == ("hello", "* * * * *", True)
    assert isinstance(history["history"], list)


def test_a_tick_is_run_by_hand_and_the_log_shown(answers: list[Any]) -> None:
    _, _, tick, log = answers
    assert tick["claimed"] >= 0
    assert isinstance(log["events"], list)


def here(deployed: Deployed, block: str) -> str:
    """Return a block of the READMEs for this stack and region; it is built and deployed already."""
    assert "duetick-dev" in block
    lines = [one for one in block.splitlines() if not one.startswith(("make ", "sam "))]
    text = "\n".join(lines).replace("duetick-dev", deployed.name)
    return re.sub(r"AWS_DEFAULT_REGION=\S+", f"AWS_DEFAULT_REGION={REGION}", text)


def shown(containing: str) -> str:
    """Return the one block that has these words."""
    (block,) = [one for one in blocks("sh") if containing in one]
    return block


def test_an_operators_first_schedule_is_made_and_shown_as_the_readme_says(
    deployed: Deployed,
) -> None:
    block = shown("sam deploy --config-env dev")
    told = {"AWS_ENDPOINT_URL": deployed.aws.endpoint, "DUETICK_API_ADDRESS": deployed.aws.endpoint}
    commands = f"unset AWS_DEFAULT_REGION\n{here(deployed, block)}"
    made = [line.split() for line in pasted(commands, **DUMMY, **told).splitlines()]
    assert [one for one in made[:3] if one[0] != "principal"] == [["user", "you"], ["key", "hello"]]


def test_j07_operators_see_a_deployed_stack_and_rebuild_it(deployed: Deployed) -> None:
    at = {"AWS_ENDPOINT_URL": deployed.aws.endpoint, "AWS_DEFAULT_REGION": REGION}
    told = {**DUMMY, **at, "DUETICK_API_ADDRESS": deployed.aws.endpoint}

    def ask(command: str) -> dict[str, Any]:
        """Return the answer, or the items of a list by name or verb.

        The exit code does not count: a finding may be another test's.
        """
        asked = f".venv/bin/duetick {command} --stack {deployed.name} --json || true"
        found = json.loads(pasted(asked, **told))
        if isinstance(found, dict):
            return found
        return {one.get("name") or one["verb"]: one for one in found}

    assert ask("overview")["unreadable"] == {"count": 0, "more": False}
    healthy = ask("doctor")
    assert healthy["API"]["ok"]
    assert healthy["dispatch"]["ok"]
    assert ask("rebuild --yes --why drift")["complete"] is True
    assert ask("operations")["rebuild"]["why"] == "drift"
    assert ask("verify")["place"] is None


def as_aws(deployed: Deployed, folder: Path) -> dict[str, str]:
    """Return the variables of a shell that has the `aws` command, and calls the emulated AWS."""
    command = folder / "aws"
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m tests.lab.aws_command "$@"\n')
    command.chmod(0o755)
    path = f"{folder}{os.pathsep}{os.environ['PATH']}"
    at = {"AWS_ENDPOINT_URL": deployed.aws.endpoint, "AWS_DEFAULT_REGION": REGION}
    return {**DUMMY, **at, "PATH": path}


def test_a_first_user_signs_in_and_makes_a_schedule_as_the_readme_says(
    deployed: Deployed, tmp_path: Path
) -> None:
    block = here(deployed, shown("admin-set-user-password"))
    host = f"{deployed.outputs['UsersApiId']}.execute-api.localhost:{deployed.aws.port}"
    commands = block.replace("$(output UsersApiUrl)", f"{deployed.aws.endpoint}/v1").replace(
        "curl ", f'curl -H "Host: {host}" '
    )
    *_, made, history = pasted(
        commands.replace("\ncurl", "\necho; curl"), **as_aws(deployed, tmp_path)
    ).splitlines()
    assert (json.loads(made)["key"], json.loads(history)["history"]) == ("hello", [])


def test_somebody_subscribes_to_alarms_as_the_readme_says(
    deployed: Deployed, tmp_path: Path
) -> None:
    output = here(deployed, shown("admin-set-user-password")).split("POOL=")[0]
    pasted(output + shown("aws sns subscribe"), **as_aws(deployed, tmp_path))
    sns, topic = deployed.aws.client("sns"), deployed.outputs["AlarmTopic"]
    (told,) = sns.list_subscriptions_by_topic(TopicArn=topic)["Subscriptions"]
    assert (told["Protocol"], told["Endpoint"]) == ("email", "oncall@example.com")


def test_every_alarm_has_that_topic(deployed: Deployed) -> None:
    alarms = deployed.aws.client("cloudwatch").describe_alarms()["MetricAlarms"]
    ours = [one for one in alarms if re.match(f"{deployed.name}-[A-Za-z]+Alarm", one["AlarmName"])]
    assert ours
    topic = deployed.outputs["AlarmTopic"]
    assert all(one["AlarmActions"] == one["OKActions"] == [topic] for one in ours)

"""What `make cloud` prints, and what the README shows of a deployed stack, can be pasted."""

import json
import os
import re
import subprocess
from typing import Any

import pytest

from tests.e2e.conftest import TEMPLATE, Deployed
from tests.lab.cloud import welcome
from tests.lab.credentials import DUMMY
from tests.lab.emulated_aws import REGION

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def answers(deployed: Deployed) -> list[Any]:
    """What each of the printed commands answers, one after the other."""
    printed = welcome(deployed).split("\n\n")
    commands = [one for one in printed if one.lstrip().startswith("curl")]
    return [json.loads(pasted(one)) for one in commands]


def pasted(command: str, **env: str) -> str:
    """What a shell prints."""
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


def test_an_operators_first_schedule_is_made_and_shown_as_the_readme_says(
    deployed: Deployed,
) -> None:
    readme = TEMPLATE.with_name("README.md").read_text()
    (block,) = re.findall(r"^```sh\n([^`]*--stack duetick[^`]*)^```", readme, re.MULTILINE)
    assert deployed.name == "duetick"
    told = {"AWS_ENDPOINT_URL": deployed.aws.endpoint, "DUETICK_API_ADDRESS": deployed.aws.endpoint}
    here = re.sub(r"AWS_DEFAULT_REGION=\S+", f"AWS_DEFAULT_REGION={REGION}", block)
    assert here != block
    made, *_history = pasted(f"unset AWS_DEFAULT_REGION\n{here}", **DUMMY, **told).splitlines()
    assert json.loads(made)["key"] == "hello"

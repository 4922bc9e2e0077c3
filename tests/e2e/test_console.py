"""V-01: the console of a deployed stack, started as the README says, in a real browser's words."""

import json
import os
import re
import sys
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from duetick.cli.door import CONSOLE, PROOF

from tests.e2e.conftest import Deployed
from tests.lab.credentials import DUMMY
from tests.lab.process import Server, free_port

pytestmark = pytest.mark.slow

LINK = re.compile(r"http://127\.0\.0\.1:\d+/console#open=[\w-]+")


@pytest.fixture
def link(deployed: Deployed, tmp_path: Path) -> Iterator[str]:
    """The link that `duetick console --stack` prints."""
    port = str(free_port())
    told = {"AWS_ENDPOINT_URL": deployed.aws.endpoint, "DUETICK_API_ADDRESS": deployed.aws.endpoint}
    program = "from duetick.cli.main import main; main()"
    command = [sys.executable, "-c", program, "console", "--stack", deployed.name, "--port", port]
    server = Server(command, tmp_path / "console.log", env={**os.environ, **DUMMY, **told})
    server.wait_until(lambda: LINK.search(server.tail()) is not None)
    found = LINK.search(server.tail())
    assert found
    yield found[0]
    server.stop()


def ask(
    link: str, method: str, path: str, headers: dict[str, str], body: object = None
) -> dict[str, Any]:
    """Return the JSON of an answer that has to be a success."""
    connection = HTTPConnection(urlsplit(link).netloc, timeout=60)
    connection.request(method, path, json.dumps(body) if body else None, headers)
    answer = connection.getresponse()
    told: dict[str, Any] = json.loads(answer.read())
    connection.close()
    assert answer.status < 300, told
    return told


def test_v01_the_console_of_a_stack_signs_each_call_as_whoever_started_it(link: str) -> None:
    code = {"code": urlsplit(link).fragment.removeprefix("open=")}
    token = ask(link, "POST", f"{CONSOLE}/open", {}, code)["token"]
    proof = {PROOF: token, "content-type": "application/json"}
    overview = ask(link, "GET", f"{CONSOLE}/api/overview", proof)
    assert overview["ticks"]
    made = {"cron": "0 9 * * *", "flow": "reminders", "action": "remind", "input": {"text": "x"}}
    why = {**proof, "duetick-why": "tried%20in%20the%20console"}
    path = f"{CONSOLE}/api/users/console~40x.org/schedules/k"
    assert ask(link, "PUT", path, why, made)["user"] == "console@x.org"
    found = ask(link, "GET", f"{CONSOLE}/api/operations?user=console%40x.org&limit=5", proof)
    (done,) = found["operations"]
    assert (done["verb"], done["why"], done["outcome"]) == (
        "put_schedule",
        "tried in the console",
        "done",
    )
    assert done["who"].startswith("arn:aws:")
    listed = ask(link, "GET", f"{CONSOLE}/api/all-schedules?text=a%20b%20c", proof)
    assert listed["schedules"] == []

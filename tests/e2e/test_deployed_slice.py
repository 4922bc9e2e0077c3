"""The slice on the deployed stack: a schedule put through the REST API, fired by EventBridge."""

import time
from typing import Any

import pytest

from tests.e2e.conftest import Deployed

HELLO = {
    "cron": "* * * * *",
    "flow": "reminders",
    "action": "remind",
    "input": {"text": "good morning"},
}
PATIENCE = 150

pytestmark = pytest.mark.slow


def history(deployed: Deployed, path: str) -> list[dict[str, Any]]:
    """The occurrences that ended, once there is one."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        status, answer = deployed.call("GET", f"{path}/history")
        ended = [line for line in answer["history"] if line["reason"]] if status == 200 else []
        if ended:
            return ended
        time.sleep(1)
    return []


def test_eventbridge_fires_a_schedule_that_was_put_through_the_api(deployed: Deployed) -> None:
    path = "/api/users/ann/schedules/hello"
    status, put = deployed.call("PUT", path, HELLO)
    assert (status, put.get("enabled")) == (201, True), put
    ended = history(deployed, path)
    assert ended
    assert {(line["state"], line["reason"]) for line in ended} == {("succeeded", "fired")}


def test_an_unsigned_call_is_refused_by_the_gateway(deployed: Deployed) -> None:
    dispatch = "/api/flows/reminders/schedules/ann/hello/dispatch"
    assert deployed.call("POST", dispatch, {}, signed=False)[0] == 403
    assert deployed.call("GET", "/api/users/ann/schedules", signed=False)[0] == 403

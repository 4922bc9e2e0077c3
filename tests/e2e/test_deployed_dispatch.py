"""D-03 through the deployed REST API: what a signed caller is answered, row by row."""

import pytest

from tests.e2e.conftest import Deployed

HOURLY = {
    "cron": "0 * * * *",
    "flow": "reminders",
    "action": "remind",
    "input": {"text": "good morning"},
}
USERS = "/api/users/bea/schedules"
FLOW = "/api/flows/reminders/schedules"

pytestmark = pytest.mark.slow


@pytest.fixture
def hourly(deployed: Deployed) -> str:
    """A schedule of bea's; where it is dispatched."""
    assert deployed.call("PUT", f"{USERS}/hourly", HOURLY)[0] in (200, 201)
    return f"{FLOW}/bea~2Fhourly/dispatch"


def test_accepted_then_duplicate(deployed: Deployed, hourly: str) -> None:
    status, body = deployed.call("POST", hourly, {"idempotencyKey": "e2e"})
    assert (status, body["status"], body["outcome"]) == (202, "accepted", "succeeded")
    assert (body["scheduleId"], bool(body["requestId"])) == ("bea/hourly", True)
    again = deployed.call("POST", hourly, {"idempotencyKey": "e2e"})
    assert again == (200, {"status": "duplicate", "state": "succeeded"})


@pytest.mark.parametrize(
    ("path", "body", "expected"),
    [
        (f"{FLOW}/bea~2F~00/dispatch", {}, (400, "invalid_schedule_id")),
        (f"{FLOW}/bea~2Fhourly/dispatch", {"userId": "ann"}, (400, "invalid_schedule_id")),
        (f"{FLOW}/bea~2Fhourly/dispatch", {"nominalFireTime": "soon"}, (400, "invalid_schedule")),
        (f"{FLOW}/bea~2Fhourly/dispatch", {"fence": "x"}, (400, "invalid_schedule")),
        ("/api/flows/nowhere/schedules/x/dispatch", {}, (404, "flow_not_found")),
        (f"{FLOW}/bea~2Fnothing/dispatch", {}, (404, "schedule_not_found")),
        (f"{FLOW}/ann~2Fhourly/dispatch", {}, (404, "schedule_not_found")),
        (f"{FLOW}/bea~2Fhourly/dispatch", {"x": "y" * 300_000}, (413, "too_large")),
    ],
)
def test_errors(
    deployed: Deployed, hourly: str, path: str, body: object, expected: tuple[int, str]
) -> None:
    answer = deployed.call("POST", path, body)
    assert (answer[0], answer[1]["error"]) == expected
    assert set(answer[1]) == {"error", "message"}


def test_a_get_of_the_route_is_not_allowed(deployed: Deployed, hourly: str) -> None:
    assert deployed.call("GET", hourly)[0] == 405


def test_d01_a_flow_tells_of_itself(deployed: Deployed) -> None:
    status, body = deployed.call("GET", FLOW)
    assert (status, body["flow"], body["resolver"]) == (200, "reminders", False)


def test_an_unsigned_caller_is_refused_by_the_gateway(deployed: Deployed, hourly: str) -> None:
    assert deployed.call("POST", hourly, {}, signed=False)[0] == 403

"""D-03 through the deployed REST API: the answers to a signed caller, row by row."""

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from duetick.core.store import Store
from duetick.domain.policies import Policies
from duetick.domain.rows import row_of
from duetick.domain.schedule import Occurrence, Schedule
from duetick.stores import open_store

from tests.e2e.conftest import Deployed
from tests.lab.emulated_aws import REGION

YEARLY = {
    "cron": "0 9 1 1 *",
    "flow": "reminders",
    "action": "remind",
    "input": {"text": "good morning"},
}
USERS = "/api/users/bea/schedules"
FLOW = "/api/flows/reminders/schedules"

pytestmark = pytest.mark.slow


@pytest.fixture
def yearly(deployed: Deployed) -> str:
    """A schedule of bea's; where it is dispatched."""
    assert deployed.call("PUT", f"{USERS}/yearly", YEARLY)[0] in (200, 201)
    return f"{FLOW}/bea~2Fyearly/dispatch"


def test_accepted_then_duplicate(deployed: Deployed, yearly: str) -> None:
    status, body = deployed.call("POST", yearly, {"idempotencyKey": "e2e"})
    assert (status, body["status"], body["outcome"]) == (202, "accepted", "succeeded")
    assert (body["scheduleId"], bool(body["requestId"])) == ("bea/yearly", True)
    again = deployed.call("POST", yearly, {"idempotencyKey": "e2e"})
    assert again == (200, {"status": "duplicate", "state": "succeeded"})


@pytest.mark.parametrize(
    ("path", "body", "expected"),
    [
        (f"{FLOW}/bea~2F~00/dispatch", {}, (400, "invalid_schedule_id")),
        (f"{FLOW}/bea~2Fyearly/dispatch", {"userId": "ann"}, (400, "invalid_schedule_id")),
        (f"{FLOW}/bea~2Fyearly/dispatch", {"nominalFireTime": "soon"}, (400, "invalid_schedule")),
        (f"{FLOW}/bea~2Fyearly/dispatch", {"fence": "x"}, (400, "invalid_schedule")),
        ("/api/flows/nowhere/schedules/x/dispatch", {}, (404, "flow_not_found")),
        (f"{FLOW}/bea~2Fnothing/dispatch", {}, (404, "schedule_not_found")),
        (f"{FLOW}/ann~2Fyearly/dispatch", {}, (404, "schedule_not_found")),
        (f"{FLOW}/bea~2Fyearly/dispatch", {"x": "y" * 300_000}, (413, "too_large")),
    ],
)
def test_errors(
    deployed: Deployed, yearly: str, path: str, body: object, expected: tuple[int, str]
) -> None:
    answer = deployed.call("POST", path, body)
    assert (answer[0], answer[1]["error"]) == expected
    assert set(answer[1]) - {"problems"} == {"error", "message"}


def test_a_get_of_the_route_is_not_allowed(deployed: Deployed, yearly: str) -> None:
    answer = deployed.aws.rest_call(deployed.outputs["ApiId"], "v1", "GET", yearly)
    told = {name.lower(): value for name, value in answer.headers.items()}
    assert (answer.status, told["allow"]) == (405, "POST")


def test_d01_a_flow_tells_of_itself(deployed: Deployed) -> None:
    status, body = deployed.call("GET", FLOW)
    assert (status, body["flow"], body["resolver"]) == (200, "reminders", False)


def test_an_unsigned_caller_is_refused_by_the_gateway(deployed: Deployed, yearly: str) -> None:
    assert deployed.call("POST", yearly, {}, signed=False)[0] == 403


@pytest.fixture
def table(deployed: Deployed) -> Iterator[Store]:
    """The stack's DynamoDB table, looked at from outside."""
    name, endpoint = deployed.outputs["TableName"], deployed.aws.endpoint
    store = open_store(f"dynamodb://{name}?region={REGION}&endpoint={endpoint}")
    yield store
    store.close()


def test_a_background_action_of_a_tick_runs_in_an_asynchronous_invocation(
    deployed: Deployed, table: Store, tmp_path: Path
) -> None:
    """The action runs for longer than a third of its lease, which it renews by then. It settles in
    the end.
    """
    done = tmp_path / "done"
    yearly = Schedule("cyd", "long", "0 9 1 1 *", "trials", "holds_long", input=str(done))
    put = table.schedules.put(replace(yearly, policies=Policies(timeout=1)))
    table.index.upsert(row_of(put, table.now() - 1_000))
    deployed.invoke("TickFunction", {})
    running = wait(table, lambda held: held.state == "processing")
    renewed = wait(table, lambda held: (held.lease_until or 0) > (running.lease_until or 0))
    assert renewed.state == "processing"
    done.touch()
    assert wait(table, lambda held: held.state == "succeeded").attempts == 1
    shown = deployed.call("GET", "/api/users/cyd/schedules/long/history")[1]["history"]
    assert [(line["state"], line["attempts"]) for line in shown] == [("succeeded", 1)]


def wait(table: Store, until: Callable[[Occurrence], bool]) -> Occurrence:
    """Wait for the one occurrence of cyd's to be in that state."""
    end = time.monotonic() + 50
    while time.monotonic() < end:
        for held in table.ledger.find("cyd", "long"):
            if until(held):
                return held
        time.sleep(0.1)
    raise AssertionError(table.ledger.find("cyd", "long"))

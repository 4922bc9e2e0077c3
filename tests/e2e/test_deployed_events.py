"""T-12, J-11: a death in the deployed stack is told on its bus. Bus and logs have no secret."""

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from duetick.core.store import Store
from duetick.domain.schedule import IndexRow, Schedule
from duetick.stores import open_store

from tests.e2e.conftest import Deployed
from tests.lab.emulated_aws import REGION

pytestmark = pytest.mark.slow
CANARY = "canary-9f3c"


@pytest.fixture
def store(deployed: Deployed) -> Iterator[Store]:
    """The stack's table, looked at from outside."""
    name, endpoint = deployed.outputs["TableName"], deployed.aws.endpoint
    opened = open_store(f"dynamodb://{name}?region={REGION}&endpoint={endpoint}")
    yield opened
    opened.erase("hanna")
    opened.close()


@pytest.fixture
def told(deployed: Deployed) -> Iterator[list[dict[str, Any]]]:
    """The events of the stack's bus; they come into the list as they are looked for."""
    sqs, bus = deployed.aws.client("sqs"), deployed.aws.client("events")
    url = sqs.create_queue(QueueName="told")["QueueUrl"]
    found = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])
    bus.put_rule(Name="told", EventPattern=json.dumps({"source": ["duetick"]}))
    bus.put_targets(Rule="told", Targets=[{"Id": "q", "Arn": found["Attributes"]["QueueArn"]}])
    events: list[dict[str, Any]] = []
    yield events
    bus.remove_targets(Rule="told", Ids=["q"])
    bus.delete_rule(Name="told")
    sqs.delete_queue(QueueUrl=url)


def receive(stack: Deployed, events: list[dict[str, Any]], count: int) -> list[dict[str, Any]]:
    """Wait for a number of events."""
    sqs = stack.aws.client("sqs")
    url = sqs.get_queue_url(QueueName="told")["QueueUrl"]
    for _ in range(20):
        if len(events) >= count:
            break
        got = sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10, WaitTimeSeconds=1)
        events += [json.loads(one["Body"]) for one in got.get("Messages", ())]
    return events


def test_t12_what_dies_in_a_stack_is_told_on_its_bus(
    deployed: Deployed, store: Store, told: list[dict[str, Any]]
) -> None:
    now = store.now()
    for number in range(3):
        one = Schedule(
            "hanna", f"k{number}", "* * * * *", "trials", "raises", input={"apiKey": CANARY}
        )
        store.schedules.put(one, now=now - 120_000)
        row = store.index.get("hanna", f"k{number}")
        assert row
        store.index.upsert(replace(row, next_fire_at=now - now % 60_000))
    store.index.upsert(IndexRow("hanna", "bad", "99 * * * *", None, now - 60_000, flow="trials"))
    report = deployed.invoke("TickFunction", {})
    assert (report["failed"], report["poisoned"]) == (3, 1)
    events = receive(deployed, told, 2)
    assert sorted((one["detail-type"], one["detail"]["count"]) for one in events) == [
        ("Occurrences died", 3),
        ("Rows cannot be read", 1),
    ]
    (died,) = [one["detail"] for one in events if one["detail"]["kind"] == "dead"]
    assert (died["stack"], died["flow"], died["reasons"]) == ("duetick", "trials", {"failed": 3})
    assert sorted(one["key"] for one in died["first"]) == ["k0", "k1", "k2"]
    logged = "\n".join(deployed.lines("Tick") + deployed.lines("Dispatch"))
    assert "action failed" in logged
    for secret in (CANARY, "hunter2"):
        assert secret not in logged + json.dumps(events)

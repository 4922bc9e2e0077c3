"""The three promises through the deployed API, on each backend: D-03's rows, T-03, T-04."""

import json
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import pytest
from duetick.core.store import Store
from duetick.core.wire import delivery_json
from duetick.domain.identity import SCHEDULE_ORIGIN, to_path
from duetick.domain.policies import Delivery, Policies, Retry
from duetick.domain.rows import new_occurrence
from duetick.domain.schedule import Occurrence, Schedule
from duetick.stores import open_store

from tests.e2e.conftest import Deployed
from tests.lab.emulated_aws import REGION
from tests.lab.postgres import connect

LATER = Retry(first=3_600)
"""No tick tries again while a test looks."""

pytestmark = pytest.mark.slow


@dataclass(frozen=True, slots=True)
class Promises:
    """A stack, and its store, looked at from outside."""

    stack: Deployed
    store: Store
    effects: Callable[[str], int]
    """The number of items that an action of that schedule left behind."""

    def lease(self, key: str, delivery: Delivery, *, fails: bool) -> Occurrence:
        """Return a leased occurrence of gia's. Its action writes in the transaction that settles
        it.
        """
        policies = Policies(delivery=delivery, retry=LATER)
        put = self.store.schedules.put(
            Schedule("gia", key, "0 9 1 1 *", "trials", "writes", input=fails, policies=policies)
        )
        at = put.next_fire_at or 0
        held = self.store.ledger.bring(new_occurrence(put, at, SCHEDULE_ORIGIN, self.store.now()))
        assert isinstance(held, Occurrence)
        return held

    def deliver(self, held: Occurrence) -> tuple[int, Any]:
        """Make a tick's call."""
        path = f"/api/flows/trials/schedules/{to_path(held.schedule_id)}/dispatch"
        return self.stack.call("POST", path, delivery_json(held))

    def became(self, key: str) -> list[tuple[str, str | None, int]]:
        """Return the state, the reason and the attempts of a schedule's occurrences."""
        return [(o.state, o.reason, o.attempts) for o in self.store.ledger.find("gia", key)]


@pytest.fixture(params=["on_dynamodb", "on_postgres"])
def promises(request: pytest.FixtureRequest) -> Iterator[Promises]:
    """On each backend's stack."""
    made: Promises = request.getfixturevalue(request.param)
    yield made
    made.store.close()


@pytest.fixture(scope="module")
def on_dynamodb(deployed: Deployed) -> Promises:
    """An action's own table is beside the stack's."""
    database = deployed.aws.client("dynamodb")
    database.create_table(
        TableName="effects",
        KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "id", "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
    )

    admit(deployed)

    def effects(key: str) -> int:
        found = database.scan(TableName="effects", ConsistentRead=True)["Items"]
        return sum(item["of"]["S"] == f"gia/{key}" for item in found)

    name, endpoint = deployed.outputs["TableName"], deployed.aws.endpoint
    store = open_store(f"dynamodb://{name}?region={REGION}&endpoint={endpoint}")
    return Promises(deployed, store, effects)


def admit(stack: Deployed) -> None:
    """Let the stack's actions write to that table, as who deploys them has to."""
    found = stack.aws.client("cloudformation").describe_stack_resource(
        StackName=stack.name, LogicalResourceId="DispatchRole"
    )
    allowed = {"Effect": "Allow", "Action": "dynamodb:PutItem", "Resource": "*"}
    stack.aws.client("iam").put_role_policy(
        RoleName=found["StackResourceDetail"]["PhysicalResourceId"],
        PolicyName="effects",
        PolicyDocument=json.dumps({"Version": "2012-10-17", "Statement": [allowed]}),
    )


@pytest.fixture(scope="module")
def on_postgres(deployed_on_postgres: Deployed) -> Promises:
    """An action's own table is beside Duetick's."""
    url = str(deployed_on_postgres.parameters["PostgresAddress"])

    def effects(key: str) -> int:
        with closing(connect(url)) as connection:
            if connection.run("SELECT to_regclass('effects')") == [[None]]:
                return 0
            return len(connection.run("SELECT FROM effects WHERE id = :id", id=f"gia/{key}"))

    return Promises(deployed_on_postgres, open_store(url), effects)


@pytest.mark.parametrize("delivery", Delivery)
def test_accepted_then_duplicate_under_each_promise(promises: Promises, delivery: Delivery) -> None:
    key = f"accepted-{delivery}"
    held = promises.lease(key, delivery, fails=False)
    status, body = promises.deliver(held)
    assert (status, body["status"], body["outcome"]) == (202, "accepted", "succeeded")
    assert promises.deliver(held) == (200, {"status": "duplicate", "state": "succeeded"})
    assert (promises.became(key), promises.effects(key)) == ([("succeeded", "fired", 1)], 1)


@pytest.mark.parametrize(
    ("delivery", "became"),
    [
        (Delivery.AT_MOST_ONCE, ("dead", "failed", 1)),
        (Delivery.AT_LEAST_ONCE, ("retrying", None, 1)),
        (Delivery.EFFECTIVELY_ONCE, ("retrying", None, 1)),
    ],
)
def test_action_failed_then_duplicate_under_each_promise(
    promises: Promises, delivery: Delivery, became: tuple[str, str | None, int]
) -> None:
    key = f"fails-{delivery}"
    held = promises.lease(key, delivery, fails=True)
    status, body = promises.deliver(held)
    assert (status, set(body), body["error"]) == (500, {"error", "message"}, "action_failed")
    assert "hunter2" not in str(body)
    assert promises.deliver(held) == (200, {"status": "duplicate", "state": became[0]})
    assert (promises.became(key), promises.effects(key)) == ([became], 0)

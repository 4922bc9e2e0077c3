"""Q-01, Q-02 on the deployed stack, on each backend: a tick, the queue, its mapping, dispatch."""

import json
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError
from duetick.aws import AwsClient
from duetick.core.store import Store
from duetick.domain.packs import Packer
from duetick.domain.schedule import Occurrence, Schedule
from duetick.stores import open_store

from tests.e2e.conftest import Deployed, deploy, on_postgres
from tests.lab.emulated_aws import REGION, EmulatedAws
from tests.lab.sam import Sam
from tests.lab.waiting import wait

pytestmark = pytest.mark.slow


@dataclass(frozen=True, slots=True)
class ByQueue:
    """A stack whose ticks hand packs to a queue, and its store as seen from outside."""

    stack: Deployed
    store: Store

    @property
    def sqs(self) -> AwsClient:
        """A client of the owner of the account."""
        return self.stack.aws.client("sqs")

    def put(self, user: str, count: int, action: str = "works") -> None:
        """Put a number of schedules, due since the last full minute."""
        now = self.store.now()
        for number in range(count):
            one = Schedule(user, f"k{number:02}", "* * * * *", "trials", action)
            self.store.schedules.put(one, now=now - 61_000)

    def oldest(self, user: str) -> list[Occurrence]:
        """Return the first occurrence of each schedule of a user."""
        found = {one.key: one for one in self.store.ledger.find(user, limit=500)}
        return [*found.values()]

    def lines(self, action: str) -> list[dict[str, Any]]:
        """Return the log lines of dispatch of that kind."""
        told = (json.loads(line) for line in self.stack.lines("Dispatch") if line.startswith("{"))
        return [line for line in told if line.get("action") == action]

    def dead(self) -> int:
        """Count the messages that came back too often."""
        name = "ApproximateNumberOfMessages"
        url = self.stack.outputs["PackDeadLetters"]
        found = self.sqs.get_queue_attributes(QueueUrl=url, AttributeNames=[name])
        return int(found["Attributes"][name])

    def redrive(self, *, dry: bool = False) -> dict[str, Any]:
        """Return the answer of the function migrate to a redrive."""
        return self.stack.invoke("MigrateFunction", {"Step": "redrive", "DryRun": dry})


@pytest.fixture(scope="module")
def both(
    sam: Sam, emulated_aws: EmulatedAws, quiet: Path, parameters: dict[str, str]
) -> Iterator[dict[str, ByQueue]]:
    """A stack on each backend. A pack comes back once, so that no test waits for five times."""
    by_queue = {**parameters, "Transport": "queue"}
    with on_postgres(emulated_aws, "packs") as there:
        stacks = {
            "dynamodb": deploy(sam, emulated_aws, quiet, "packs", by_queue),
            "postgres": deploy(sam, emulated_aws, quiet, "packs-postgres", {**by_queue, **there}),
        }
        table = stacks["dynamodb"].outputs["TableName"]
        endpoint = emulated_aws.endpoint
        addresses = {
            "dynamodb": f"dynamodb://{table}?region={REGION}&endpoint={endpoint}",
            "postgres": there["PostgresAddress"],
        }
        with (
            closing(open_store(addresses["dynamodb"])) as items,
            closing(open_store(addresses["postgres"])) as rows,
        ):
            made = {
                "dynamodb": ByQueue(stacks["dynamodb"], items),
                "postgres": ByQueue(stacks["postgres"], rows),
            }
            for one in made.values():
                comes_back(one, 1)
            yield made


def comes_back(by_queue: ByQueue, times: int) -> None:
    """Let a message be given out so often."""
    outputs, sqs = by_queue.stack.outputs, by_queue.sqs
    dead = sqs.get_queue_attributes(
        QueueUrl=outputs["PackDeadLetters"], AttributeNames=["QueueArn"]
    )["Attributes"]["QueueArn"]
    policy = json.dumps({"deadLetterTargetArn": dead, "maxReceiveCount": times})
    sqs.set_queue_attributes(QueueUrl=outputs["PackQueue"], Attributes={"RedrivePolicy": policy})


@pytest.fixture(params=["dynamodb", "postgres"])
def by_queue(request: pytest.FixtureRequest, both: dict[str, ByQueue]) -> ByQueue:
    """Each of them."""
    return both[request.param]


def test_q01_what_a_tick_hands_to_the_queue_fires(by_queue: ByQueue) -> None:
    by_queue.put("ann", 12)
    report = by_queue.stack.invoke("TickFunction", {})
    assert report["handed_on"] == report["claimed"] >= 12
    assert (report["delivered"], report["left"], report["failed"]) == (0, 0, 0)
    wait(lambda: {one.state for one in by_queue.oldest("ann")} == {"succeeded"}, pause=0.5)
    packs = [one["leases"] for one in by_queue.lines("pack")]
    assert len(packs) < 12 <= sum(packs)
    assert by_queue.lines("dispatch") == []


def test_j11_nobody_but_ticks_puts_messages_into_the_queue(by_queue: ByQueue) -> None:
    url = by_queue.stack.outputs["PackQueue"]
    with pytest.raises(ClientError, match="AccessDenied"):
        by_queue.sqs.send_message(QueueUrl=url, MessageBody="{}", MessageGroupId="g")


def test_q02_a_poison_message_ends_among_the_dead_and_a_redrive_is_safe(by_queue: ByQueue) -> None:
    """The account's owner puts the message among the dead: nobody can put it into the queue."""
    dead = by_queue.stack.outputs["PackDeadLetters"]
    by_queue.sqs.send_message(QueueUrl=dead, MessageBody="{", MessageGroupId="g")
    looked = by_queue.redrive(dry=True)
    assert (looked["dry_run"], looked["unreadable"], looked["left"]) == (True, 1, 1)
    moved = by_queue.redrive()
    assert (moved["messages"], moved["unreadable"]) == (1, 1)
    wait(lambda: by_queue.dead() == 1, pause=0.5)
    assert by_queue.lines("pack_unreadable")
    assert by_queue.lines("put_back_failed") == []
    by_queue.sqs.purge_queue(QueueUrl=dead)


def test_q02_a_redriven_pack_fires_what_is_still_leased_and_nothing_twice(
    by_queue: ByQueue,
) -> None:
    by_queue.put("bea", 5)
    store, now = by_queue.store, by_queue.store.now()
    claimed = [one for one in store.index.claim_due(now, 100) if one.user_id == "bea"]
    packer = Packer("tick_1")
    (message,) = [*packer.add(claimed, now), *packer.take(now)]
    dead = by_queue.stack.outputs["PackDeadLetters"]
    for _ in range(2):
        by_queue.sqs.send_message(QueueUrl=dead, MessageBody=message.body, MessageGroupId="g")
        assert by_queue.redrive()["messages"] == 1
        wait(lambda: {one.state for one in by_queue.oldest("bea")} == {"succeeded"}, pause=0.5)
    assert {one.attempts for one in by_queue.oldest("bea")} == {1}


def test_a_stack_without_a_queue_says_so(deployed: Deployed) -> None:
    client = deployed.aws.client("lambda")
    answer = client.invoke(
        FunctionName=deployed.outputs["MigrateFunction"],
        Payload=json.dumps({"Step": "redrive"}),
    )
    assert "its Transport is api" in answer["Payload"].read().decode()

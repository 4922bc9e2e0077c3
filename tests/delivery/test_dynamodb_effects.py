"""T-04 on DynamoDB: an action's own writes are committed with its success, or not at all."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest
from duetick.core.context import Context
from duetick.domain.errors import ConfigurationError
from duetick.domain.occurrence import Lease
from duetick.domain.schedule import Json
from duetick.domain.states import Reason, State
from duetick.stores import open_store
from duetick.stores.dynamodb.shelf import DynamoShelf
from duetick.stores.dynamodb.transaction import DynamoTransaction

from tests.delivery.scene import MINUTE, NINE, Scene
from tests.lab.dynamodb import DynamoDB, table_name

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

from tests.delivery.scene import EFFECTIVELY_ONCE


@dataclass(frozen=True, slots=True)
class Table:
    """The application's."""

    client: "DynamoDBClient"
    name: str

    def write(self, item: str) -> dict[str, object]:
        """Put it, unless it is there."""
        return {
            "Put": {
                "TableName": self.name,
                "Item": {"id": {"S": item}},
                "ConditionExpression": "attribute_not_exists(id)",
            }
        }

    def items(self) -> set[str]:
        """Return its items."""
        return {item["id"]["S"] for item in self.client.scan(TableName=self.name)["Items"]}


@pytest.fixture
def table_scene(dynamodb_local: DynamoDB) -> Iterator[tuple[Scene, Table]]:
    """Dispatch on DynamoDB, and a table of the application's own beside the store's."""
    address = dynamodb_local.table_url(table_name())
    store = open_store(address, clock=lambda: NINE)
    store.migrate()
    client, own = dynamodb_local.client(), table_name()
    client.create_table(
        TableName=own,
        AttributeDefinitions=[{"AttributeName": "id", "AttributeType": "S"}],
        KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}],
        BillingMode="PAY_PER_REQUEST",
    )
    yield Scene(store), Table(client, own)
    store.close()
    client.close()


def test_t04_on_dynamodb_writes_commit_with_the_settling(
    table_scene: tuple[Scene, Table],
) -> None:
    scene, table = table_scene

    def pay(_input: Json, ctx: Context) -> None:
        with ctx.transaction() as effects:
            for number in range(3):
                effects.write(table.write(f"{ctx.occurrence_id}-{number}"))
            if ctx.attempt == 1:
                raise RuntimeError("before the commit")

    scene.act = pay
    scene.put(cron="0 9 * * *", policies=EFFECTIVELY_ONCE)
    scene.deliver(scene.claim())
    assert (table.items(), scene.history()) == (set(), [(State.RETRYING, None)])
    scene.clock.advance(10_000)
    (again,) = scene.store.ledger.claim_waiting(scene.clock.now)
    assert scene.deliver(again)[0] == 202
    assert len(table.items()) == 3
    assert scene.history() == [(State.SUCCEEDED, Reason.FIRED)]


def test_t04_on_dynamodb_a_write_of_ones_own_that_is_refused_fails_the_attempt(
    table_scene: tuple[Scene, Table],
) -> None:
    scene, table = table_scene

    def pay(_input: Json, ctx: Context) -> None:
        with ctx.transaction() as effects:
            effects.write(table.write("the same"))

    scene.act = pay
    for key in ("first", "second"):
        scene.put(key, cron="0 9 * * *", policies=EFFECTIVELY_ONCE)
    statuses = {o.key: scene.deliver(o)[0] for o in scene.store.index.claim_due(NINE)}
    assert sorted(statuses.values()) == [202, 500]
    (state,) = (scene.history(key)[0] for key, status in statuses.items() if status == 500)
    assert state == (State.RETRYING, None)


def test_t04_on_dynamodb_an_attempt_that_lost_its_lease_writes_nothing(
    table_scene: tuple[Scene, Table],
) -> None:
    scene, table = table_scene

    def pay(_input: Json, ctx: Context) -> None:
        scene.clock.advance(10 * MINUTE)
        scene.store.ledger.claim_waiting(scene.clock.now)
        with ctx.transaction() as effects:
            effects.write(table.write("late"))

    scene.act = pay
    scene.put(cron="0 9 * * *", policies=EFFECTIVELY_ONCE)
    assert scene.deliver(scene.claim())[0] == 500
    assert table.items() == set()


def test_t04_a_transaction_on_dynamodb_takes_99_writes(table_scene: tuple[Scene, Table]) -> None:
    shelf = table_scene[0].store.shelf
    assert isinstance(shelf, DynamoShelf)
    effects = DynamoTransaction(shelf._books)
    for number in range(99):
        effects.write({"Put": {"Item": number}})
    with pytest.raises(ConfigurationError, match="99"):
        effects.write({"Put": {}})
    with pytest.raises(ConfigurationError, match="write"):
        effects.run("SELECT 1")


def test_t04_the_end_of_a_job_takes_one_of_the_99_writes(table_scene: tuple[Scene, Table]) -> None:
    """It is counted by a write of its own."""
    shelf = table_scene[0].store.shelf
    assert isinstance(shelf, DynamoShelf)
    effects = DynamoTransaction(shelf._books, Lease("ada", "job:1", NINE, "job:1", "mail", 1))
    for number in range(98):
        effects.write({"Put": {"Item": number}})
    with pytest.raises(ConfigurationError, match="98"):
        effects.write({"Put": {}})

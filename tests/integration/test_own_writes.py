"""An action's own write that DynamoDB cannot do is named as that: it is no outage."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import pytest
from duetick.core.store import Store
from duetick.domain.errors import EffectsRefused
from duetick.domain.schedule import NewOccurrence, Occurrence
from duetick.domain.states import State
from duetick.stores import open_store
from duetick.testing.conformance.suite import start

from tests.lab.dynamodb import DynamoDB, table_name

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

Write: TypeAlias = dict[str, dict[str, Any]]

NOON = 1_800_014_400_000
GOOD = {"id": {"S": "good"}}
ADDS = {"UpdateExpression": "ADD id :one", "ExpressionAttributeValues": {":one": {"N": "1"}}}
WRONG: dict[str, tuple[Write, str]] = {
    "a misspelt kind": ({"Putt": {}}, "Putt"),
    "values of Python's": ({"Put": {"Item": {"id": "plain"}}}, "Put.Item.id"),
    "two in one": ({"Put": {"Item": GOOD}, "Delete": {"Key": GOOD}}, "only contain one of"),
    "no key": ({"Put": {"Item": {"other": {"S": "x"}}}}, "key|id"),
    "a key of another type": ({"Put": {"Item": {"id": {"N": "1"}}}}, "[Tt]ype mismatch"),
    "an empty key": ({"Put": {"Item": {"id": {"S": ""}}}}, "empty string"),
    "no number": ({"Put": {"Item": {"id": {"S": "x"}, "n": {"N": "?"}}}}, "convert"),
    "no expression": ({"Update": {"Key": GOOD, "UpdateExpression": "SETT x"}}, "SETT"),
    "an addition to text": ({"Update": {"Key": {"id": {"S": "held"}}, **ADDS}}, "."),
    "too large": ({"Put": {"Item": {"id": {"S": "x"}, "t": {"S": "x" * 410_000}}}}, "size"),
    "no such table": ({"Put": {"TableName": "none-of-mine", "Item": GOOD}}, "table|resource"),
    "twice": ({"Delete": {"Key": GOOD}}, "multiple operations on one item"),
}


@dataclass(frozen=True, slots=True)
class Own:
    """A store, and a table of the application's own beside it."""

    store: Store
    client: "DynamoDBClient"
    table: str

    def begin(self) -> Occurrence:
        """Return a run by hand that is under way."""
        return start(
            self.store, NewOccurrence("ada", "digest", "", None, NOON, "run:1", NOON), NOON
        )

    def settle(self, *writes: Write) -> None:
        """Settle an attempt with these writes as its effects."""
        with self.store.ledger.settling(self.begin(), lambda: NOON) as effects:
            for write in writes:
                effects.write(self._aimed(write))

    def _aimed(self, write: Write) -> Write:
        """Return the same at that table, unless it names one."""
        return {kind: {"TableName": self.table, **what} for kind, what in write.items()}


@pytest.fixture
def own(dynamodb_local: DynamoDB) -> Iterator[Own]:
    store = open_store(dynamodb_local.table_url(table_name()))
    store.migrate()
    made = Own(store, dynamodb_local.client(), table_name())
    made.client.create_table(
        TableName=made.table,
        AttributeDefinitions=[{"AttributeName": "id", "AttributeType": "S"}],
        KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}],
        BillingMode="PAY_PER_REQUEST",
    )
    made.client.put_item(TableName=made.table, Item={"id": {"S": "held"}})
    yield made
    store.close()
    made.client.close()


@pytest.mark.parametrize("wrong", list(WRONG))
def test_t04_a_write_that_cannot_be_done_is_told_as_the_actions_own(own: Own, wrong: str) -> None:
    write, fault = WRONG[wrong]
    with pytest.raises(EffectsRefused, match=f"Your own writes were refused(.|\n)*({fault})"):
        own.settle({"Put": {"Item": GOOD}}, write)
    assert own.client.scan(TableName=own.table)["Items"] == [{"id": {"S": "held"}}]
    (held,) = own.store.ledger.find("ada", "digest")
    assert held.state is State.PROCESSING

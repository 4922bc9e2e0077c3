"""DynamoDB answers our own requests as it answers botocore's."""

from collections.abc import Mapping
from typing import Any, Final

import pytest
from duetick.stores.dynamodb.botocore_service import open_client
from duetick.stores.dynamodb.place import connect
from duetick.stores.dynamodb.service import Service, ServiceRefusal

from tests.lab.dynamodb import REGION, DynamoDB, table_name

KEY: Final = {"id": {"S": "ü/#1"}}
ITEM: Final = {**KEY, "n": {"N": "1"}, "m": {"M": {"l": {"L": [{"NULL": True}, {"BOOL": False}]}}}}
LARGE: Final = {"id": {"S": "large"}, "t": {"S": "x" * 300_000}}
ABSENT: Final = "attribute_not_exists(id)"

ASKED: Final[list[tuple[str, Mapping[str, Any]]]] = [
    ("PutItem", {"Item": ITEM}),
    ("GetItem", {"Key": KEY, "ConsistentRead": True}),
    ("GetItem", {"Key": {"id": {"S": "nobody"}}}),
    ("PutItem", {"Item": ITEM, "ConditionExpression": ABSENT}),
    ("PutItem", {"Item": LARGE}),
    ("GetItem", {"Key": {"id": {"S": "large"}}}),
    (
        "UpdateItem",
        {
            "Key": KEY,
            "UpdateExpression": "SET n = n + :one",
            "ExpressionAttributeValues": {":one": {"N": "1"}},
            "ReturnValues": "ALL_NEW",
        },
    ),
    (
        "Query",
        {"KeyConditionExpression": "id = :id", "ExpressionAttributeValues": {":id": KEY["id"]}},
    ),
    ("UpdateItem", {"Key": KEY, "UpdateExpression": "SETT n"}),
    ("GetItem", {"Key": {"other": {"S": "x"}}}),
    ("DeleteItem", {"Key": KEY}),
]


def answers(service: Service, table: str) -> list[object]:
    """Return the answer to each, or its refusal."""
    made = {
        "TableName": table,
        "AttributeDefinitions": [{"AttributeName": "id", "AttributeType": "S"}],
        "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}],
        "BillingMode": "PAY_PER_REQUEST",
    }
    service.call("CreateTable", made)
    several = {table: [{"PutRequest": {"Item": ITEM}}]}
    puts = [{"Put": {"TableName": table, "Item": ITEM, "ConditionExpression": ABSENT}}]
    asked = [
        *((name, {"TableName": table, **request}) for name, request in ASKED),
        ("BatchWriteItem", {"RequestItems": several}),
        ("BatchGetItem", {"RequestItems": {table: {"Keys": [KEY]}}}),
        ("TransactWriteItems", {"TransactItems": puts}),
        ("DescribeTable", {"TableName": "none-of-these"}),
    ]
    found = [_told(service, name, request, table) for name, request in asked]
    found.append(service.date is None)
    service.close()
    return found


def _told(service: Service, name: str, request: Mapping[str, Any], table: str) -> object:
    try:
        return str(service.call(name, request)).replace(table, "the table")
    except ServiceRefusal as refusal:
        return refusal.operation, refusal.code, refusal.status, len(refusal.reasons)


@pytest.mark.slow
@pytest.mark.parametrize("server", ["dynamodb_local", "moto"])
def test_our_own_requests_are_answered_as_botocores(
    server: str, request: pytest.FixtureRequest
) -> None:
    place: DynamoDB = request.getfixturevalue(server)
    ours = answers(connect(REGION, place.endpoint), table_name())
    theirs = answers(open_client(REGION, place.endpoint), table_name())
    for own, other, (name, _) in zip(ours, theirs, [*ASKED, *[("", {})] * 5], strict=True):
        assert own == other, name

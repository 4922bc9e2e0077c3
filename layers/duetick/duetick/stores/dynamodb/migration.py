"""Creating the table, out of band; and whether this code can use what is there."""

import time
from typing import TYPE_CHECKING, Final

from botocore.exceptions import ClientError

from duetick.domain.errors import SchemaOutdated, StoreUnavailable
from duetick.stores.dynamodb.errors import Conflict, errors
from duetick.stores.dynamodb.layout import usable
from duetick.stores.dynamodb.occurrences import number
from duetick.stores.dynamodb.schema import (
    OLDEST_CODE,
    SCHEMA_KEY,
    TTL,
    VERSION,
    table_definition,
)
from duetick.stores.dynamodb.table import Table, Update

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.type_defs import TableDescriptionTypeDef

_POLLS: Final = 600
_BUSY: Final = ("ResourceInUseException", "LimitExceededException")


def migrate(table: Table, shards: int) -> None:
    """Create what is missing of the table, its indexes and its expiry; safe twice and at once.

    A table that a template made is taken as it is; then nothing but the version is written.
    """
    _create(table)
    _add_indexes(table)
    _expire(table)
    _set_version(table, shards)


def check_schema(table: Table) -> None:
    """Raise SchemaOutdated unless this code can use the table."""
    usable(table.get(SCHEMA_KEY))


def _create(table: Table) -> None:
    try:
        _wait(table)
    except SchemaOutdated:
        with errors():
            try:
                table.client.create_table(**table_definition(table.name))
            except ClientError as error:
                _pass_over(error, *_BUSY)
        _wait(table)


def _pass_over(error: ClientError, *codes: str) -> None:
    """Another migration is doing the same; anything else is raised."""
    if error.response["Error"]["Code"] not in codes:
        raise error


def _describe(table: Table) -> "TableDescriptionTypeDef":
    with errors():
        return table.client.describe_table(TableName=table.name)["Table"]


def _wait(table: Table) -> "TableDescriptionTypeDef":
    """The table's description, when the table and its indexes are ready."""
    for _ in range(_POLLS):
        found = _describe(table)
        indexes = [each.get("IndexStatus") for each in found.get("GlobalSecondaryIndexes", ())]
        if {found["TableStatus"], *indexes} <= {"ACTIVE", None}:
            return found
        time.sleep(1)
    raise StoreUnavailable(f"The table {table.name} was not ready after {_POLLS} seconds.")


def _add_indexes(table: Table) -> None:
    """One at a time: DynamoDB builds no two at once."""
    definition = table_definition(table.name)
    for index in definition["GlobalSecondaryIndexes"]:
        there = {each.get("IndexName") for each in _wait(table).get("GlobalSecondaryIndexes", ())}
        if index["IndexName"] in there:
            continue
        with errors():
            try:
                table.client.update_table(
                    TableName=table.name,
                    AttributeDefinitions=definition["AttributeDefinitions"],
                    GlobalSecondaryIndexUpdates=[
                        {
                            "Create": {
                                "IndexName": index["IndexName"],
                                "KeySchema": index["KeySchema"],
                                "Projection": index["Projection"],
                            }
                        }
                    ],
                )
            except ClientError as error:
                _pass_over(error, *_BUSY, "ValidationException")
    _wait(table)


def _expire(table: Table) -> None:
    with errors():
        found = table.client.describe_time_to_live(TableName=table.name)
    if found["TimeToLiveDescription"].get("TimeToLiveStatus") in ("ENABLED", "ENABLING"):
        return
    with errors():
        try:
            table.client.update_time_to_live(
                TableName=table.name,
                TimeToLiveSpecification={"Enabled": True, "AttributeName": TTL},
            )
        except ClientError as error:
            _pass_over(error, *_BUSY, "ValidationException")


def _set_version(table: Table, shards: int) -> None:
    """Never back: a newer schema stays what it is."""
    update = Update(
        "SET #v = :v, #o = :o ADD #n :n",
        "attribute_not_exists(#v) OR #v <= :v",
        {"#v": "version", "#o": "oldest_code", "#n": "shards"},
        {":v": number(VERSION), ":o": number(OLDEST_CODE), ":n": {"NS": [str(shards)]}},
    )
    try:
        table.update(SCHEMA_KEY, update)
    except Conflict:
        check_schema(table)

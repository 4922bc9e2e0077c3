"""The creation of the table, out of band, and the check that this code can use it."""

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, cast

from duetick.domain.errors import NotAccepted, SchemaOutdated, StoreUnavailable
from duetick.ports import Migrated
from duetick.stores.dynamodb.errors import RESTORE, Conflict, errors
from duetick.stores.dynamodb.layout import usable
from duetick.stores.dynamodb.occurrences import maybe_number, number
from duetick.stores.dynamodb.schema import (
    MARKED_SINCE,
    OLDEST_CODE,
    SCHEMA_KEY,
    TTL,
    VERSION,
    table_definition,
)
from duetick.stores.dynamodb.service import Body, ServiceRefusal
from duetick.stores.dynamodb.table import Table, Update

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.type_defs import TableDescriptionTypeDef

_POLLS: Final = 600
_BUSY: Final = ("ResourceInUseException", "LimitExceededException")


def migrate(table: Table, shards: int) -> Migrated:
    """Create the missing parts: the table, its indexes, its expiry. Safe twice and at once.

    If a template made the table, only the version is written.
    """
    _create(table)
    _add_indexes(table)
    _expire(table)
    before = maybe_number(table.get(SCHEMA_KEY) or {}, "version") or 0
    _set_version(table, shards)
    return Migrated(unmarked=0 < before < MARKED_SINCE)


def check_schema(table: Table) -> None:
    """Raise SchemaOutdated unless this code can use the table."""
    usable(table.get(SCHEMA_KEY))


def _create(table: Table) -> None:
    try:
        _wait(table)
    except SchemaOutdated:
        _make(table)
        _wait(table)


def _make(table: Table) -> None:
    """Make the table. A function of a stack has no right to: its table was deleted with its data,
    so it raises SchemaOutdated.
    """
    try:
        _ask_unless(table, "CreateTable", table_definition(table.name), _BUSY)
    except NotAccepted as refused:
        raise SchemaOutdated(
            f"There is no table {table.name}, and it may not be made from here "
            f"({refused.__cause__}). {RESTORE.format(name=table.name)}"
        ) from refused


def _ask_unless(table: Table, operation: str, request: Body, passed_over: Sequence[str]) -> None:
    """Send a request. Pass over the refusals that say that another migration does the same."""
    with errors(table.name):
        try:
            table.service.call(operation, {"TableName": table.name, **request})
        except ServiceRefusal as refusal:
            if refusal.code not in passed_over:
                raise


def _describe(table: Table) -> "TableDescriptionTypeDef":
    return cast("TableDescriptionTypeDef", table.ask("DescribeTable", {})["Table"])


def _wait(table: Table) -> "TableDescriptionTypeDef":
    """Wait until the table and its indexes are ready; return the table's description."""
    for _ in range(_POLLS):
        found = _describe(table)
        indexes = [each.get("IndexStatus") for each in found.get("GlobalSecondaryIndexes", ())]
        if {found["TableStatus"], *indexes} <= {"ACTIVE", None}:
            return found
        time.sleep(1)
    raise StoreUnavailable(f"The table {table.name} was not ready after {_POLLS} seconds.")


def _add_indexes(table: Table) -> None:
    """Add the missing indexes one by one: DynamoDB does not build two at once."""
    definition = table_definition(table.name)
    for index in definition["GlobalSecondaryIndexes"]:
        there = {each.get("IndexName") for each in _wait(table).get("GlobalSecondaryIndexes", ())}
        if index["IndexName"] in there:
            continue
        request = {
            "AttributeDefinitions": definition["AttributeDefinitions"],
            "GlobalSecondaryIndexUpdates": [{"Create": index}],
        }
        _ask_unless(table, "UpdateTable", request, (*_BUSY, "ValidationException"))
    _wait(table)


def _expire(table: Table) -> None:
    found = table.ask("DescribeTimeToLive", {})["TimeToLiveDescription"]
    if found.get("TimeToLiveStatus") in ("ENABLED", "ENABLING"):
        return
    request = {"TimeToLiveSpecification": {"Enabled": True, "AttributeName": TTL}}
    _ask_unless(table, "UpdateTimeToLive", request, (*_BUSY, "ValidationException"))


def _set_version(table: Table, shards: int) -> None:
    """Write the version, but never an older one over a newer one."""
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

"""The one table: its keys, its sparse indexes and what `migrate` creates.

| item | partition `p` | sort `s` | holds |
|---|---|---|---|
| schedule | U#user | S#key | record, index row, occurrences under way (see `items`) |
| input | I#user/key | I | an input too large for the schedule's item |
| occurrence | O#user/key | nominal#origin | one that ended, or a range; leaves by `ttl` |
| definition | V#user/key | since | how the schedule was defined from then on |
| external id | E#id | E | which schedule owns it |
| count | C#user | C | how many schedules a user has |
| runs | C#user | R#minute | how many runs by hand in that minute |
| creation | R#user | name | what a creation that may be repeated has made |
| caller's key | K#flow#key | K | whose occurrence holds it |
| journal | J | due#random | schedules to look at when a lease may have ended |
| schema | J | ! | version, and the shard counts in use: a tick reads it with the journal |

The indexes hold keys only. `due`: active rows by their next time. `attention`: poisoned rows, the
dead, by time. `directory`: every schedule and index row, for check and rebuild. The external id
needs no index of its own: only an item can be unique, and it answers the lookup too.
"""

from typing import TYPE_CHECKING, Final, Literal, TypedDict

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.type_defs import (
        AttributeDefinitionTypeDef,
        GlobalSecondaryIndexTypeDef,
        KeySchemaElementTypeDef,
    )

VERSION: Final = 1
OLDEST_CODE: Final = 1

SCHEMA_KEY: Final = ("J", "!")
"""Ahead of every note of the journal."""

DUE: Final = "due"
ATTENTION: Final = "attention"
DIRECTORY: Final = "directory"
TTL: Final = "ttl"

DIRECTORIES: Final = 8
"""Over how many partitions the directory is spread."""

_INDEXES: Final = {DUE: ("st", "run"), ATTENTION: ("att", "aat"), DIRECTORY: ("dir", "p")}
_NUMBERS: Final = frozenset({"run", "aat"})


class Definition(TypedDict):
    """What `create_table` takes, and a template declares."""

    TableName: str
    BillingMode: Literal["PAY_PER_REQUEST"]
    AttributeDefinitions: list["AttributeDefinitionTypeDef"]
    KeySchema: list["KeySchemaElementTypeDef"]
    GlobalSecondaryIndexes: list["GlobalSecondaryIndexTypeDef"]


def table_definition(name: str) -> Definition:
    """The whole table, on demand, as `create_table` and CloudFormation name its parts."""
    attributes = sorted({"p", "s"}.union(*_INDEXES.values()))
    return {
        "TableName": name,
        "BillingMode": "PAY_PER_REQUEST",
        "AttributeDefinitions": [
            {"AttributeName": each, "AttributeType": "N" if each in _NUMBERS else "S"}
            for each in attributes
        ],
        "KeySchema": _keys("p", "s"),
        "GlobalSecondaryIndexes": [
            {
                "IndexName": index,
                "KeySchema": _keys(*names),
                "Projection": {"ProjectionType": "KEYS_ONLY"},
            }
            for index, names in _INDEXES.items()
        ],
    }


def _keys(partition: str, sort: str) -> "list[KeySchemaElementTypeDef]":
    return [
        {"AttributeName": partition, "KeyType": "HASH"},
        {"AttributeName": sort, "KeyType": "RANGE"},
    ]

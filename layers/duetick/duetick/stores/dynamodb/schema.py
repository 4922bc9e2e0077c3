"""The one table: its keys, its sparse indexes, and the definition that `migrate` creates.

| item | partition `p` | sort `s` | holds |
|---|---|---|---|
| schedule | U#user | S#key | record, index row, occurrences under way (see `items`) |
| input | I#user/key | I | an input too large for the schedule's item |
| body | I#user/key | B#nominal#origin | what the caller of an occurrence sent; `ttl` removes it |
| occurrence | O#user/key | nominal#origin | a finished occurrence or a range; `ttl` removes it |
| definition | V#user/key | since | the schedule's definition from then on |
| external id | E#id | E | the schedule that owns the id |
| count | C#user | C | the number of the user's schedules |
| rates | C#user | runs#minute, writes#minute | the number of them in that minute |
| creation | R#user | name | the result of a creation that may be repeated |
| caller's key | K#flow#key | K | the occurrence that took the key |
| journal | J | due#random | notes: the schedules to read when a lease may have ended |
| operation | A#user, or A | at#id | what an operator did; `ttl` removes it |
| zone | Z#digest | Z | the rules of a zone, once for each content |
| note | N#name | N | what the hourly work keeps from one hour to the next |
| standing order | T | kind#name | an order of an operator that stands |
| ended order | T#kind | name | an order that has ended, for a while; `ttl` removes it |
| schema | J | ! | version, and the shard counts in use: a tick reads it with the journal |

The indexes have keys only. `due`: active rows by their next time. `attention`: unreadable rows and
dead occurrences, by time, and operations. `directory`: every schedule and row, for check and
rebuild; in partitions of its own, the schedules that were deleted, for verify. `leaving`: the
schedules at which a purge looks, by the time of that, in the partitions of `directory`. The
external id has an item because only an item can be unique. The item serves the lookup, too, so no
index is needed.
"""

from typing import TYPE_CHECKING, Final, Literal, TypedDict

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.type_defs import (
        AttributeDefinitionTypeDef,
        GlobalSecondaryIndexTypeDef,
        KeySchemaElementTypeDef,
    )

VERSION: Final = 2
OLDEST_CODE: Final = 1
MARKED_SINCE: Final = 2
"""The first version whose code marks that a schedule is done."""

SCHEMA_KEY: Final = ("J", "!")
"""The schema's item. It sorts before every note of the journal."""

DUE: Final = "due"
ATTENTION: Final = "attention"
DIRECTORY: Final = "directory"
LEAVING: Final = "leaving"
TTL: Final = "ttl"

DIRECTORIES: Final = 8
"""The number of partitions of the directory."""

_INDEXES: Final = {
    DUE: ("st", "run"),
    ATTENTION: ("att", "aat"),
    DIRECTORY: ("dir", "p"),
    LEAVING: ("dir", "lat"),
}
_NUMBERS: Final = frozenset({"run", "aat", "lat"})


class TableDefinition(TypedDict):
    """The parameters of `create_table`; a template declares the same."""

    TableName: str
    BillingMode: Literal["PAY_PER_REQUEST"]
    AttributeDefinitions: list["AttributeDefinitionTypeDef"]
    KeySchema: list["KeySchemaElementTypeDef"]
    GlobalSecondaryIndexes: list["GlobalSecondaryIndexTypeDef"]


def table_definition(name: str) -> TableDefinition:
    """Return the definition of the table as `create_table` and CloudFormation take it."""
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

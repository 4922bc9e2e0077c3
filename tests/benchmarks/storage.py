"""The size of schedules and of the ledger in a database: `python -m tests.benchmarks.storage`.

Ordinary schedules, each fired, begun and settled as often as `FIRES` says. On DynamoDB a byte is
what the service bills: names and values of each item, a hundred more for it, and the same for each
place in an index. On Postgres it is all that the tables and their indexes take on disk.
"""

import os
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from duetick.cli.costs import Usage
from duetick.core.store import Store
from duetick.domain.attempts import SUCCEEDED, Begun
from duetick.domain.schedule import Json, Schedule
from duetick.stores import open_store
from duetick.stores.dynamodb.schema import table_definition

from tests.lab.credentials import DUMMY
from tests.lab.dynamodb import DynamoDB, start_dynamodb_local, table_name
from tests.lab.postgres import EmbeddedPostgres, connect

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mypy_boto3_dynamodb.type_defs import AttributeValueTypeDef

    Item = dict[str, AttributeValueTypeDef]

NOON: Final = 1_800_014_400_000
HOUR: Final = 3_600_000
FIRES: Final = 6
OVERHEAD: Final = 100
"""Bytes that DynamoDB bills beyond an item's own, in the table and in each index."""
LEAST_NUMBER: Final = 3


class Stored(NamedTuple):
    """Bytes of one schedule that never fired, and of one fire."""

    schedule: float
    fire: float


def measured(store: Store, size: "Sizes", schedules: int) -> Stored:
    """Between the databases before the schedules, after them, and after their fires."""
    empty = size()
    for number in range(schedules):
        store.schedules.put(_schedule(number), now=NOON - 1)
    full = size()
    for fire in range(FIRES):
        _fire(store, NOON + fire * HOUR)
    return Stored((full - empty) / schedules, (size() - full) / schedules / FIRES)


def _schedule(number: int) -> Schedule:
    """Return a schedule with names, keys and inputs of usual length."""
    given: dict[str, Json] = {"channel": "email", "template": "followup", "thread": number}
    return Schedule(
        f"eu-central-1:0f0e4d5c-{number:023d}",
        f"followup-{number:06d}",
        "0 * * * *",
        "reminders",
        "send_digest",
        timezone="Europe/Berlin",
        input={**given, "text": "x" * 100},
    )


def _fire(store: Store, now: int) -> None:
    while claimed := store.index.claim_due(now):
        for occurrence in claimed:
            begun = store.ledger.begin(occurrence, now=now)
            assert isinstance(begun, Begun)
            store.ledger.settle(begun.occurrence, SUCCEEDED, now=now)
    store.ledger.claim_waiting(now + 120_000)


class Items:
    """The size of a table as DynamoDB bills it."""

    def __init__(self, endpoint: DynamoDB, table: str) -> None:
        self._endpoint, self._table = endpoint, table

    def __call__(self) -> float:
        pages = self._endpoint.client().get_paginator("scan").paginate(TableName=self._table)
        return sum(billed(item) for page in pages for item in page["Items"])


class Relations:
    """The size of a database's tables with their indexes."""

    def __init__(self, url: str) -> None:
        self._url = url

    def __call__(self) -> float:
        with connect(self._url) as session:
            session.run("VACUUM FULL")
            ((size,),) = session.run(
                "SELECT sum(pg_total_relation_size(c.oid)) FROM pg_class c "
                "WHERE c.relkind = 'r' AND c.relnamespace = 'public'::regnamespace"
            )
        return float(size)


Sizes = Items | Relations


def billed(item: "Item") -> int:
    """Return the bytes of an item, and of its places in the indexes, which hold keys alone."""
    keys = {"p", "s"}
    indexes = [
        keys | {part["AttributeName"] for part in index["KeySchema"]}
        for index in table_definition("any")["GlobalSecondaryIndexes"]
    ]
    places = [names for names in indexes if names <= item.keys()]
    return _bytes(item) + sum(_bytes({n: item[n] for n in names}) for names in places)


def _bytes(item: "Item") -> int:
    return OVERHEAD + sum(len(name) + _value(value) for name, value in item.items())


def _value(value: "AttributeValueTypeDef") -> int:
    ((kind, given),) = cast("Mapping[str, Any]", value).items()
    match kind:
        case "S":
            return len(given.encode())
        case "N":
            return max(LEAST_NUMBER, len(given) // 2 + 1)
        case "M":
            return LEAST_NUMBER + sum(1 + len(k) + _value(v) for k, v in given.items())
        case "L":
            return LEAST_NUMBER + sum(1 + _value(each) for each in given)
        case _:
            return sum(len(each) for each in given) if isinstance(given, list) else 1


def on_dynamodb(endpoint: DynamoDB) -> Stored:
    """Measure on a table of its own."""
    name = table_name()
    store = open_store(endpoint.table_url(name))
    store.migrate()
    try:
        return measured(store, Items(endpoint, name), 20)
    finally:
        store.close()


def on_postgres(url: str) -> Stored:
    """Measure on an empty database."""
    store = open_store(url)
    store.migrate()
    try:
        return measured(store, Relations(url), 400)
    finally:
        store.close()


def taken() -> dict[str, Stored]:
    """Return the bytes that the calculation expects."""
    usage = Usage()
    return {
        "DynamoDB": Stored(usage.schedule_item_bytes, usage.fire_item_bytes),
        "Postgres": Stored(usage.schedule_row_bytes, usage.fire_row_bytes),
    }


def main() -> int:
    """Print the bytes beside those of the calculation. Return 1 if the calculation takes fewer."""
    os.environ.update(DUMMY)
    with tempfile.TemporaryDirectory() as folder:
        local, server = start_dynamodb_local(Path(folder)), EmbeddedPostgres()
        found = {"DynamoDB": on_dynamodb(local), "Postgres": on_postgres(server.url)}
        local.stop()
        server.remove()
    missed = False
    for name, limit in taken().items():
        one = found[name]
        print(
            f"{name}: a schedule takes {one.schedule:.0f} bytes ({limit.schedule:.0f} taken), "
            f"a fire {one.fire:.0f} ({limit.fire:.0f} taken)"
        )
        missed = missed or one.schedule > limit.schedule or one.fire > limit.fire
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())

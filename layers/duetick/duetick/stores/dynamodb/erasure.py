"""Everything that the table keeps of one user, deleted: the schedules' own items last of all.

Should it be cut short, what is left still leads to the rest, and doing it again ends it. Lines of
the journal, which only name a schedule to look at, leave by themselves when they are due, and
callers' keys when their day is over.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from duetick.stores.dynamodb.alteration import count_key, external_key
from duetick.stores.dynamodb.items import input_key, item_key, name_of
from duetick.stores.dynamodb.occurrences import history_partition, maybe_text, text
from duetick.stores.dynamodb.schedules import definition_partition
from duetick.stores.dynamodb.table import Key, Table, key_of


def erase(table: Table, user_id: str) -> int:
    """How many schedules there were."""
    partition, _ = item_key(user_id, "")
    items = list(table.query("p = :p", {":p": text(partition)}))
    for item in items:
        table.delete_many(list(_around(table, item)))
    table.delete_many([count_key(user_id), *map(key_of, items)])
    return sum("v" in item for item in items)


def _around(table: Table, item: Mapping[str, Any]) -> Iterator[Key]:
    """What stands beside a schedule's item."""
    name = name_of(item)
    yield input_key(*name)
    external = maybe_text(item, "ext")
    if external:
        yield external_key(external)
    for partition in (history_partition(*name), definition_partition(*name)):
        for found in table.query("p = :p", {":p": text(partition)}):
            yield key_of(found)

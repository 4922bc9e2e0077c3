"""Everything that the table keeps of one user, deleted: the schedules' own items last of all.

Should it be cut short, what is left still leads to the rest, and doing it again ends it. Lines of
the journal, which only name a schedule to look at, leave by themselves when they are due.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from duetick.domain.schedule import Occurrence
from duetick.stores.dynamodb.alteration import count_key, creations_partition, external_key
from duetick.stores.dynamodb.caller_keys import caller_key, holder_of
from duetick.stores.dynamodb.items import input_key, item_key, name_of, read
from duetick.stores.dynamodb.occurrences import (
    history_partition,
    maybe_text,
    read_history,
    text,
)
from duetick.stores.dynamodb.schedules import definition_partition
from duetick.stores.dynamodb.table import Key, Table, key_of


def erase(table: Table, user_id: str) -> int:
    """How many schedules there were."""
    partition, _ = item_key(user_id, "")
    items = list(table.query("p = :p", {":p": text(partition)}))
    for item in items:
        table.delete_many(list(_around(table, item)))
    beside = [creations_partition(user_id), count_key(user_id)[0]]
    more = [item for place in beside for item in table.query("p = :p", {":p": text(place)})]
    table.delete_many(list(map(key_of, [*more, *items])))
    return sum("v" in item for item in items)


def _around(table: Table, item: Mapping[str, Any]) -> Iterator[Key]:
    """What stands beside a schedule's item."""
    name = name_of(item)
    yield input_key(*name)
    external = maybe_text(item, "ext")
    if external:
        yield external_key(external)
    for entry in read(item).open.values():
        yield from _callers_key(table, entry.occurrence)
    for found in table.query("p = :p", {":p": text(history_partition(*name))}):
        yield from _callers_key(table, read_history(found).occurrence)
        yield key_of(found)
    for found in table.query("p = :p", {":p": text(definition_partition(*name))}):
        yield key_of(found)


def _callers_key(table: Table, held: Occurrence) -> Iterator[Key]:
    """The key that it was begun with, unless another's holds it by now."""
    if held.idempotency_key is None:
        return
    place = caller_key(held.flow, held.idempotency_key)
    seen = table.get(place)
    if seen and holder_of(seen) == held.identity:
        yield place

"""The erasure of a user: all items of the user are deleted, those of the schedules last.

If it is interrupted, the schedules' items still lead to the rest: a second erasure completes it.
Lines of the journal only name schedules; they are dropped when they are due.
"""

from collections.abc import Iterator

from duetick.domain.identity import is_job
from duetick.domain.occurrence import Occurrence
from duetick.stores.dynamodb.beside import (
    caller_key,
    count_key,
    creations_partition,
    external_key,
    holder_of,
    operations_partition,
)
from duetick.stores.dynamodb.books import Books
from duetick.stores.dynamodb.items import input_key, item_key, name_of
from duetick.stores.dynamodb.occurrences import (
    history_partition,
    maybe_text,
    read_history,
    text,
)
from duetick.stores.dynamodb.records import definition_partition
from duetick.stores.dynamodb.standing import StandingOrders
from duetick.stores.dynamodb.table import Item, Key, Table, key_of


def erase(books: Books, user_id: str) -> int:
    """Erase a user. Return the number of the user's schedules."""
    from duetick.stores.dynamodb.bells import PendingBells  # for an erasure: no start pays for it

    table = books.table
    partition, _ = item_key(user_id, "")
    items = list(table.query("p = :p", {":p": text(partition)}))
    for item in items:
        table.delete_many(list(_items_beside(books, item)))
    beside = [
        creations_partition(user_id),
        count_key(user_id)[0],
        operations_partition(user_id),
    ]
    more = [item for place in beside for item in table.query("p = :p", {":p": text(place)})]
    orders = StandingOrders(table).of_user(user_id)
    bells = PendingBells(table).of_user(user_id)
    table.delete_many(list(map(key_of, [*more, *orders, *bells, *items])))
    return sum("v" in item and not is_job(name_of(item)[1]) for item in items)


def _items_beside(books: Books, item: Item) -> Iterator[Key]:
    """Yield the keys of the other items of a schedule."""
    name, table = name_of(item), books.table
    for found in table.query("p = :p", {":p": text(input_key(*name)[0])}):
        yield key_of(found)
    external = maybe_text(item, "ext")
    if external:
        yield external_key(external)
    for entry in books.read(item).open.values():
        yield from _caller_key(table, entry.occurrence)
    for found in table.query("p = :p", {":p": text(history_partition(*name))}):
        yield from _caller_key(table, read_history(found).occurrence)
        yield key_of(found)
    for found in table.query("p = :p", {":p": text(definition_partition(*name))}):
        yield key_of(found)


def _caller_key(table: Table, one: Occurrence) -> Iterator[Key]:
    """Yield the item of the occurrence's caller key, unless another occurrence has the key now."""
    if one.idempotency_key is None:
        return
    place = caller_key(one.flow, one.idempotency_key)
    seen = table.get(place)
    if seen and holder_of(seen) == one.identity:
        yield place

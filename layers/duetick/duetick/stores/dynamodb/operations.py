"""The record of operations: an item for each, in its user's partition and in an index of all.

An operation costs three write units: the item and its key in the index, then the outcome.
"""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Final

from duetick.domain.operations import BEGUN, KEPT_OPERATION_MS, Operation, OperationPlace
from duetick.stores.dynamodb.beside import operations_partition
from duetick.stores.dynamodb.errors import Conflict
from duetick.stores.dynamodb.occurrences import maybe_text, number, text
from duetick.stores.dynamodb.schema import ATTENTION
from duetick.stores.dynamodb.table import Item, Key, Table, Update, key_attributes, key_of

ATTENDED: Final = "operation"
"""The partition of the index."""


def _sort(at: int, name: str) -> str:
    return f"{at:019d}#{name}"


def _key(one: Operation) -> Key:
    return operations_partition(one.user_id), _sort(one.at, one.id)


def add_operation(table: Table, one: Operation) -> None:
    """Write the item of an operation. It expires by itself."""
    texts = {
        "who": one.who,
        "verb": one.verb,
        "tgt": one.target,
        "why": one.why,
        "oc": one.outcome,
    }
    table.put(
        key_attributes(_key(one))
        | {name: text(value) for name, value in texts.items() if value}
        | {
            "att": text(ATTENDED),
            "aat": number(one.at),
            "ttl": number((one.at + KEPT_OPERATION_MS) // 1_000),
        }
    )


def end_operation(table: Table, one: Operation) -> None:
    """Set the outcome, unless there is one, or the operation was erased."""
    names, values = {"#oc": "oc"}, {":oc": text(one.outcome), ":begun": text(BEGUN)}
    with suppress(Conflict):
        table.update(_key(one), Update("SET #oc = :oc", "#oc = :begun", names, values))


def operations(
    table: Table, after: OperationPlace, limit: int, user_id: str | None
) -> Sequence[Operation]:
    """Return a page of the record, the newest first."""
    if user_id is None:
        found = _of_all(table, after, limit)
    else:
        values = {":p": text(operations_partition(user_id)), ":s": text(_sort(*after))}
        found = map(_read, table.query("p = :p AND s < :s", values, forward=False, page=limit))
    taken: list[Operation] = []
    for one in found:
        if len(taken) >= limit and one.at < taken[-1].at:
            break
        if one.place < after:
            taken.append(one)
    return sorted(taken, key=_place, reverse=True)[:limit]


def _of_all(table: Table, after: OperationPlace, limit: int) -> Iterator[Operation]:
    """Yield the operations up to the time of a place; of one time, in no order."""
    values = {":a": text(ATTENDED), ":at": number(after[0])}
    keys = table.query(
        "att = :a AND aat <= :at", values, index=ATTENTION, forward=False, page=limit
    )
    chunk: list[Key] = []
    for item in keys:
        chunk.append(key_of(item))
        if len(chunk) == limit:
            yield from _load(table, chunk)
            chunk = []
    yield from _load(table, chunk)


def _load(table: Table, keys: Sequence[Key]) -> Sequence[Operation]:
    found = table.get_many(keys) if keys else {}
    return [_read(found[key]) for key in keys if key in found]


def _read(item: Item) -> Operation:
    partition, sort = key_of(item)
    at, _, name = sort.partition("#")
    _, named, user_id = partition.partition("#")
    who, verb, target, why, outcome = (
        maybe_text(item, attribute) or "" for attribute in ("who", "verb", "tgt", "why", "oc")
    )
    return Operation(name, int(at), who, verb, user_id if named else None, target, why, outcome)


def _place(one: Operation) -> OperationPlace:
    return one.place

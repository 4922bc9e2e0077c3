"""The items of standing orders. Those that stand are one partition, so one query reads them all.

An order that ends moves to the partition of its kind, where it has an expiry. Its name stays taken
as long as it is there.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, get_args

from duetick.domain.ending import KEPT_GONE_MS
from duetick.domain.standing import OrderKind, StandingOrder, prefix_of_user
from duetick.stores.dynamodb.errors import Conflict
from duetick.stores.dynamodb.occurrences import maybe_number, number, text
from duetick.stores.dynamodb.table import Item, Key, Table, key_attributes

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.type_defs import TransactWriteItemTypeDef

STANDING: Final = "T"
ABSENT: Final = "attribute_not_exists(p)"
AT_REVISION: Final = "rev = :rev"


class StandingOrders:
    """The standing orders of a table."""

    def __init__(self, table: Table) -> None:
        self._table = table

    def standing(self) -> Sequence[StandingOrder]:
        """See `ports.Shelf`."""
        found = self._table.query("p = :p", {":p": text(STANDING)})
        return [read_order(item) for item in found]

    def of_kind(self, kind: OrderKind, ended_after: int) -> Sequence[StandingOrder]:
        """See `ports.Shelf.orders`. It reads all that is kept of the kind."""
        found = {one.name: one for one in self._list_kept(kind, ended_after)}
        return [found[name] for name in sorted(found)]

    def _list_kept(self, kind: OrderKind, ended_after: int) -> Iterator[StandingOrder]:
        # Standing ones first: one that ends in between is found twice, and not missed.
        standing = {":p": text(STANDING), ":kind": text(f"{kind}#")}
        for item in self._table.query("p = :p AND begins_with(s, :kind)", standing):
            yield read_order(item)
        for item in self._table.query("p = :p", {":p": text(_ended_partition(kind))}):
            order = read_order(item)
            if order.ended_at is not None and order.ended_at > ended_after:
                yield order

    def of_user(self, user_id: str) -> Iterator[Item]:
        """Yield the items of the orders about a user."""
        prefix = prefix_of_user(user_id)
        for kind in get_args(OrderKind):
            yield from self._list_named(STANDING, f"{kind}#{prefix}")
            yield from self._list_named(_ended_partition(kind), prefix)

    def _list_named(self, partition: str, prefix: str) -> Iterator[Item]:
        # `$` follows `#`, with which a prefix ends. DynamoDB Local's begins_with takes `%` in a
        # prefix for any text.
        between = {":p": text(partition), ":first": text(prefix), ":end": text(f"{prefix[:-1]}$")}
        return self._table.query("p = :p AND s BETWEEN :first AND :end", between)

    def keep(self, order: StandingOrder) -> bool:
        """See `ports.Shelf.keep_order`."""
        try:
            self._table.transact(list(self._writes(order)))
        except Conflict:
            return False
        return True

    def _writes(self, order: StandingOrder) -> "Iterator[TransactWriteItemTypeDef]":
        """Yield a put of the order, and the write that keeps it from standing and having ended at
        once.
        """
        name, item = self._table.name, order_item(order)
        before = {":rev": number(order.rev - 1)}
        if order.rev > 1 and order.ended_at is None:
            yield {
                "Put": {
                    "TableName": name,
                    "Item": item,
                    "ConditionExpression": AT_REVISION,
                    "ExpressionAttributeValues": before,
                }
            }
            return
        yield {"Put": {"TableName": name, "Item": item, "ConditionExpression": ABSENT}}
        if order.rev > 1:
            yield {
                "Delete": {
                    "TableName": name,
                    "Key": key_attributes(_standing_key(order)),
                    "ConditionExpression": AT_REVISION,
                    "ExpressionAttributeValues": before,
                }
            }
            return
        other = _ended_key(order) if order.ended_at is None else _standing_key(order)
        yield {
            "ConditionCheck": {
                "TableName": name,
                "Key": key_attributes(other),
                "ConditionExpression": ABSENT,
            }
        }


def order_item(order: StandingOrder) -> Item:
    """Return the item of an order. The order has no fields beside it."""
    item = key_attributes(_standing_key(order) if order.ended_at is None else _ended_key(order))
    item |= {
        "k": text(order.kind),
        "n": text(order.name),
        "since": number(order.since),
        "body": text(order.body),
        "rev": number(order.rev),
    }
    if order.ended_at is not None:
        over = (order.ended_at + KEPT_GONE_MS) // 1_000
        item |= {"end": number(order.ended_at), "ttl": number(over)}
    return item


def read_order(item: Mapping[str, Any]) -> StandingOrder:
    """Return the order of an item."""
    return StandingOrder(
        item["k"]["S"],
        item["n"]["S"],
        int(item["since"]["N"]),
        item["body"]["S"],
        maybe_number(item, "end"),
        int(item["rev"]["N"]),
    )


def _standing_key(order: StandingOrder) -> Key:
    return STANDING, f"{order.kind}#{order.name}"


def _ended_key(order: StandingOrder) -> Key:
    return _ended_partition(order.kind), order.name


def _ended_partition(kind: OrderKind) -> str:
    return f"{STANDING}#{kind}"

"""Pending bells on DynamoDB: one item each, in one partition, under the digests of their names."""

from collections.abc import Iterator, Sequence
from hashlib import blake2b
from itertools import islice
from typing import TYPE_CHECKING, Final

from duetick.core.ids import new_id
from duetick.domain.bells import PendingBell, PendingToken
from duetick.domain.occurrence import ScheduleName
from duetick.stores.dynamodb.errors import Conflict
from duetick.stores.dynamodb.occurrences import number, text
from duetick.stores.dynamodb.table import Item, Key, Table, Update, key_attributes

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.type_defs import UpdateTypeDef

BELLS: Final = "B"
_MAKE_PENDING: Final = "SET tok = :tok, u = :u, k = :k, since = if_not_exists(since, :at)"

_ALWAYS: Final = "attribute_exists(#p) OR attribute_not_exists(#p)"


def bell_key(user_id: str, key: str) -> Key:
    """Return the key of a pending bell's item. All digests have one length."""
    return BELLS, f"{_digest(user_id)}#{_digest(key)}"


def _digest(part: str) -> str:
    return blake2b(part.encode(errors="surrogatepass"), digest_size=16).hexdigest()


def pending_update(table: str, name: ScheduleName, made: PendingToken) -> "UpdateTypeDef":
    """Return the update that makes a bell pending."""
    return {
        "TableName": table,
        "Key": key_attributes(bell_key(*name)),
        "UpdateExpression": _MAKE_PENDING,
        "ExpressionAttributeValues": _pending_values(name, made),
    }


def _pending_values(name: ScheduleName, made: PendingToken) -> Item:
    user_id, key = map(text, name)
    return {":tok": text(made.token), ":u": user_id, ":k": key, ":at": number(made.at)}


class PendingBells:
    """The pending bells of one table."""

    def __init__(self, table: Table) -> None:
        self._table = table

    def make_pending(self, now: int, name: ScheduleName) -> None:
        """Make one bell pending as `ports.Shelf.make_bells_pending` does."""
        values = _pending_values(name, PendingToken(new_id(), now))
        self._table.update(bell_key(*name), Update(_MAKE_PENDING, _ALWAYS, {"#p": "p"}, values))

    def pending(self, limit: int) -> Sequence[PendingBell]:
        """See `ports.Shelf.pending_bells`. They are some of them, if there are more."""
        items = islice(self._table.query("p = :p", {":p": text(BELLS)}, page=limit), limit)
        found = (PendingBell(i["u"]["S"], i["k"]["S"], int(i["since"]["N"])) for i in items)
        return sorted(found, key=lambda one: (one.since, one.name))

    def of_user(self, user_id: str) -> Iterator[Item]:
        """Yield the items of a user's bells."""
        first, end = f"{_digest(user_id)}#", f"{_digest(user_id)}$"
        values = {":p": text(BELLS), ":first": text(first), ":end": text(end)}
        return self._table.query("p = :p AND s BETWEEN :first AND :end", values)

    def take(self, name: ScheduleName, now: int, until: int) -> str | None:
        """See `ports.Shelf.take_bell`."""
        free = "attribute_exists(p) AND (attribute_not_exists(#u) OR #u <= :now)"
        values = {":until": number(until), ":now": number(now)}
        taken = self._update(name, Update("SET #u = :until", free, {"#u": "taken"}, values))
        return taken["tok"]["S"] if taken else None

    def end(self, name: ScheduleName, token: str) -> bool:
        """See `ports.Shelf.end_bell`."""
        condition = Update("", "#t = :tok", {"#t": "tok"}, {":tok": text(token)})
        try:
            self._table.delete_if(bell_key(*name), condition)
        except Conflict:
            return False
        return True

    def free(self, name: ScheduleName, until: int) -> None:
        """See `ports.Shelf.free_bell`."""
        mine, values = "#u = :until", {":until": number(until), ":zero": number(0)}
        self._update(name, Update("SET #u = :zero", mine, {"#u": "taken"}, values))

    def _update(self, name: ScheduleName, update: Update) -> Item | None:
        try:
            return self._table.update(bell_key(*name), update)
        except Conflict:
            return None

"""The few requests that the shelf sends to DynamoDB."""

import secrets
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from duetick.domain.errors import StoreUnavailable
from duetick.stores.dynamodb.errors import Conflict, Contended, Throttled, errors, refusal
from duetick.stores.dynamodb.service import Body, Service

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.type_defs import (
        AttributeValueTypeDef,
        TransactWriteItemTypeDef,
        WriteRequestOutputTypeDef,
    )

    Item: TypeAlias = dict[str, AttributeValueTypeDef]
else:
    Item = dict

Key: TypeAlias = tuple[str, str]

READ_AT_ONCE: Final = 100
WRITE_AT_ONCE: Final = 25
_ROUNDS: Final = 8


class Update(NamedTuple):
    """A conditional change of parts of an item: expressions, with their names and values."""

    change: str
    condition: str
    names: Mapping[str, str]
    values: Item


class Table:
    """One table. It reads every answer to the last page, and tries throttled requests again."""

    def __init__(self, name: str, service: Service) -> None:
        self.name = name
        self.service = service

    @property
    def date(self) -> int | None:
        """The service's clock in milliseconds, as of its last answer."""
        return self.service.date

    def ask(self, operation: str, request: Body) -> dict[str, Any]:
        """Send a request about this table; return its answer."""
        return self._ask_of_several(operation, {"TableName": self.name, **request})

    def get(self, key: Key) -> Item | None:
        """Read an item consistently; None if it does not exist."""
        return self.ask("GetItem", {"Key": key_attributes(key), "ConsistentRead": True}).get("Item")

    def get_many(self, keys: Sequence[Key], *, consistent: bool = True) -> dict[Key, Item]:
        """Read items, consistently or for half the price. The result has those that exist."""
        found: dict[Key, Item] = {}
        for start in range(0, len(keys), READ_AT_ONCE):
            for item in self._get_batch(keys[start : start + READ_AT_ONCE], consistent):
                found[key_of(item)] = item
        return found

    def _get_batch(self, keys: Sequence[Key], consistent: bool) -> Iterator[Item]:
        wanted = [key_attributes(key) for key in keys]
        for wait in _waits():
            request = {"Keys": wanted, "ConsistentRead": consistent}
            answer = self._ask_of_several("BatchGetItem", {"RequestItems": {self.name: request}})
            yield from answer["Responses"].get(self.name, ())
            unread = answer.get("UnprocessedKeys", {}).get(self.name)
            if not unread:
                return
            wanted = [{"p": key["p"], "s": key["s"]} for key in unread["Keys"]]
            time.sleep(wait)
        raise StoreUnavailable(f"The table {self.name} stayed throttled while it was read.")

    def put_many(self, items: Sequence[Item]) -> None:
        """Put items whose content follows from their key, so a second put changes nothing."""
        for start in range(0, len(items), WRITE_AT_ONCE):
            batch = items[start : start + WRITE_AT_ONCE]
            self._write_batch([{"PutRequest": {"Item": item}} for item in batch])

    def delete_many(self, keys: Sequence[Key]) -> None:
        """Delete the items; absent ones are no error."""
        for start in range(0, len(keys), WRITE_AT_ONCE):
            batch = keys[start : start + WRITE_AT_ONCE]
            self._write_batch([{"DeleteRequest": {"Key": key_attributes(key)}} for key in batch])

    def _write_batch(self, requests: "Sequence[WriteRequestOutputTypeDef]") -> None:
        for wait in _waits():
            answer = self._ask_of_several("BatchWriteItem", {"RequestItems": {self.name: requests}})
            requests = answer.get("UnprocessedItems", {}).get(self.name, [])
            if not requests:
                return
            time.sleep(wait)
        raise StoreUnavailable(f"The table {self.name} stayed throttled while it was written.")

    def _ask_of_several(self, operation: str, request: Body) -> dict[str, Any]:
        """Send a request that names its tables inside, if need be again."""
        for wait in _waits():
            try:
                with errors(self.name):
                    return self.service.call(operation, request)
            except Contended:
                time.sleep(wait)
        raise StoreUnavailable(f"An item of the table {self.name} stayed in others' transactions.")

    def put(self, item: Item, rev: int | None = None) -> None:
        """Put the item; with `rev`, raise Conflict unless that is its revision (0: no item)."""
        request: dict[str, Any] = {"Item": item}
        if rev:
            request["ConditionExpression"] = "rev = :rev"
            request["ExpressionAttributeValues"] = {":rev": {"N": str(rev)}}
        elif rev is not None:
            request["ConditionExpression"] = "attribute_not_exists(p)"
        self.ask("PutItem", request)

    def update(self, key: Key, update: Update) -> Item:
        """Change parts of the item and return all of it; raise Conflict if the condition fails."""
        request = {
            "Key": key_attributes(key),
            "UpdateExpression": update.change,
            "ConditionExpression": update.condition,
            "ExpressionAttributeNames": update.names,
            "ExpressionAttributeValues": update.values,
            "ReturnValues": "ALL_NEW",
        }
        changed: Item = self.ask("UpdateItem", request)["Attributes"]
        return changed

    def delete(self, key: Key) -> None:
        """Delete the item; an absent one is no error."""
        self.ask("DeleteItem", {"Key": key_attributes(key)})

    def delete_if(self, key: Key, condition: Update) -> None:
        """Delete the item; raise Conflict if the condition fails. The change is not made."""
        request = {
            "Key": key_attributes(key),
            "ConditionExpression": condition.condition,
            "ExpressionAttributeNames": condition.names,
            "ExpressionAttributeValues": condition.values,
        }
        self.ask("DeleteItem", request)

    def transact(self, writes: "Sequence[TransactWriteItemTypeDef]") -> None:
        """Make all of the writes; or none, and raise Conflict.

        A request that is sent again has the token of the first: it is done once.
        """
        for wait in _waits():
            request = {"TransactItems": writes, "ClientRequestToken": secrets.token_hex(16)}
            try:
                self._ask_of_several("TransactWriteItems", request)
            except Throttled:
                time.sleep(wait)
            else:
                return
        raise StoreUnavailable(f"The table {self.name} stayed throttled while it was written.")

    def transact_with(
        self,
        first: "TransactWriteItemTypeDef",
        others: "Sequence[TransactWriteItemTypeDef]",
    ) -> None:
        """Make all of the writes; or none, and raise Conflict.

        If the first write alone could be made, raise WriteRefusal instead.
        """
        try:
            self.transact([first, *others])
        except (Conflict, StoreUnavailable) as error:
            refused = refusal(error.__cause__)
            if refused:
                raise refused from error
            raise

    def query(
        self,
        condition: str,
        values: Item,
        *,
        index: str | None = None,
        forward: bool = True,
        page: int = 1_000,
        start: Item | None = None,
        consistent: bool = True,
    ) -> Iterator[Item]:
        """Yield the items of a key condition in order, after the one of the key `start`.

        The next page is read when it is needed. An index is never consistent.
        """
        request: dict[str, Any] = {
            "KeyConditionExpression": condition,
            "ExpressionAttributeValues": values,
            "ScanIndexForward": forward,
            "ConsistentRead": consistent and index is None,
            "Limit": page,
        }
        if index:
            request["IndexName"] = index
        if start:
            request["ExclusiveStartKey"] = start
        while True:
            answer = self.ask("Query", request)
            yield from answer["Items"]
            following = answer.get("LastEvaluatedKey")
            if not following:
                return
            request["ExclusiveStartKey"] = following


def key_attributes(key: Key) -> Item:
    """Return a key as attributes."""
    return {"p": {"S": key[0]}, "s": {"S": key[1]}}


def key_of(item: Mapping[str, Any]) -> Key:
    """Return the key of an item."""
    return item["p"]["S"], item["s"]["S"]


def _waits() -> Iterator[float]:
    return (0.05 * 2**attempt for attempt in range(_ROUNDS))

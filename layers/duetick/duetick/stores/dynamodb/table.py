"""The few requests that the store makes of DynamoDB."""

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from functools import cache
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

from botocore.config import Config
from botocore.loaders import Loader, create_loader
from botocore.session import get_session

from duetick.domain.errors import StoreUnavailable
from duetick.stores.dynamodb.errors import Conflict, Throttled, errors, refusal

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_dynamodb.type_defs import (
        AttributeValueTypeDef,
        QueryInputTypeDef,
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


@dataclass(frozen=True, slots=True)
class Update:
    """One conditional change of parts of an item, as an expression with its names and values."""

    change: str
    condition: str
    names: Mapping[str, str]
    values: Item


def connect(region: str | None, endpoint: str | None) -> "DynamoDBClient":
    """A client: credentials from the environment, few and short waits, connections kept.

    botocore alone, because importing boto3 as well would slow every cold start.
    """
    config = Config(
        retries={"mode": "standard", "total_max_attempts": 6},
        connect_timeout=2,
        read_timeout=5,
        max_pool_connections=32,
        tcp_keepalive=True,
    )
    session = get_session()
    session.register_component("data_loader", _descriptions())
    made = session.create_client(
        "dynamodb", region_name=region, endpoint_url=endpoint, config=config
    )
    return cast("DynamoDBClient", made)


@cache
def _descriptions() -> Loader:
    """The service's description, read once: it is nine tenths of making a client."""
    return create_loader()


class Table:
    """One table. Every answer is read to its last page; what is throttled is tried again."""

    def __init__(self, name: str, client: "DynamoDBClient") -> None:
        self.name = name
        self.client = client
        self._said: Mapping[str, Any] = {}

    @property
    def date(self) -> int | None:
        """The service's clock in milliseconds, where its last answer to a get or a query told."""
        text = self._said.get("HTTPHeaders", {}).get("date")
        return int(parsedate_to_datetime(text).timestamp() * 1_000) if text else None

    def get(self, key: Key) -> Item | None:
        """The item as it is now."""
        with errors():
            answer = self.client.get_item(TableName=self.name, Key=keyed(key), ConsistentRead=True)
        self._said = answer["ResponseMetadata"]
        return answer.get("Item")

    def get_many(self, keys: Sequence[Key]) -> dict[Key, Item]:
        """Those of the items that exist."""
        found: dict[Key, Item] = {}
        for start in range(0, len(keys), READ_AT_ONCE):
            for item in self._get_batch(keys[start : start + READ_AT_ONCE]):
                found[key_of(item)] = item
        return found

    def _get_batch(self, keys: Sequence[Key]) -> Iterator[Item]:
        wanted = [keyed(key) for key in keys]
        for wait in _waits():
            with errors():
                answer = self.client.batch_get_item(
                    RequestItems={self.name: {"Keys": wanted, "ConsistentRead": True}}
                )
            yield from answer["Responses"].get(self.name, ())
            left = answer.get("UnprocessedKeys", {}).get(self.name)
            if not left:
                return
            wanted = [{"p": key["p"], "s": key["s"]} for key in left["Keys"]]
            time.sleep(wait)
        raise StoreUnavailable(f"The table {self.name} stayed throttled while it was read.")

    def put_many(self, items: Sequence[Item]) -> None:
        """Put items whose content follows from their key, so that twice is as good as once."""
        for start in range(0, len(items), WRITE_AT_ONCE):
            batch = items[start : start + WRITE_AT_ONCE]
            self._write_batch([{"PutRequest": {"Item": item}} for item in batch])

    def delete_many(self, keys: Sequence[Key]) -> None:
        """Delete the items; absent ones are no error."""
        for start in range(0, len(keys), WRITE_AT_ONCE):
            batch = keys[start : start + WRITE_AT_ONCE]
            self._write_batch([{"DeleteRequest": {"Key": keyed(key)}} for key in batch])

    def _write_batch(self, requests: "Sequence[WriteRequestOutputTypeDef]") -> None:
        for wait in _waits():
            with errors():
                answer = self.client.batch_write_item(RequestItems={self.name: requests})
            requests = answer.get("UnprocessedItems", {}).get(self.name, [])
            if not requests:
                return
            time.sleep(wait)
        raise StoreUnavailable(f"The table {self.name} stayed throttled while it was written.")

    def put(self, item: Item, rev: int | None = None) -> None:
        """Put the item; with `rev`, raise Conflict unless it is there in that revision."""
        with errors():
            if rev is None:
                self.client.put_item(TableName=self.name, Item=item)
            elif rev:
                self.client.put_item(
                    TableName=self.name,
                    Item=item,
                    ConditionExpression="rev = :rev",
                    ExpressionAttributeValues={":rev": {"N": str(rev)}},
                )
            else:
                self.client.put_item(
                    TableName=self.name, Item=item, ConditionExpression="attribute_not_exists(p)"
                )

    def update(self, key: Key, update: Update) -> Item:
        """Change parts of the item, and return all of it; raise Conflict where it may not be."""
        with errors():
            answer = self.client.update_item(
                TableName=self.name,
                Key=keyed(key),
                UpdateExpression=update.change,
                ConditionExpression=update.condition,
                ExpressionAttributeNames=update.names,
                ExpressionAttributeValues=update.values,
                ReturnValues="ALL_NEW",
            )
        return answer["Attributes"]

    def delete(self, key: Key) -> None:
        """Delete the item; an absent one is no error."""
        with errors():
            self.client.delete_item(TableName=self.name, Key=keyed(key))

    def transact(self, writes: "Sequence[TransactWriteItemTypeDef]") -> None:
        """All of the writes, or none and Conflict."""
        for wait in _waits():
            try:
                with errors():
                    self.client.transact_write_items(TransactItems=writes)
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
        """All of the writes, or none: Conflict, or Refusal where the first alone could be done."""
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
    ) -> Iterator[Item]:
        """Everything that a key condition names, in order, page after page as it is asked for."""
        request: QueryInputTypeDef = {
            "TableName": self.name,
            "KeyConditionExpression": condition,
            "ExpressionAttributeValues": values,
            "ScanIndexForward": forward,
            "ConsistentRead": index is None,
            "Limit": page,
        }
        if index:
            request["IndexName"] = index
        while True:
            with errors():
                answer = self.client.query(**request)
            self._said = answer["ResponseMetadata"]
            yield from answer["Items"]
            start = answer.get("LastEvaluatedKey")
            if not start:
                return
            request["ExclusiveStartKey"] = start


def keyed(key: Key) -> Item:
    """A key as DynamoDB writes it."""
    return {"p": {"S": key[0]}, "s": {"S": key[1]}}


def key_of(item: Mapping[str, Any]) -> Key:
    """The key of an item."""
    return item["p"]["S"], item["s"]["S"]


def _waits() -> Iterator[float]:
    return (0.05 * 2**attempt for attempt in range(_ROUNDS))

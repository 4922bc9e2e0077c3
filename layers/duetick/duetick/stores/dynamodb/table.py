"""The few requests that the shelf sends to DynamoDB."""

import time
from collections.abc import Iterator, Mapping, Sequence
from email.utils import parsedate_to_datetime
from functools import cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias, cast
from urllib.parse import urlsplit

from botocore.config import Config
from botocore.exceptions import NoRegionError
from botocore.loaders import Loader, create_loader
from botocore.session import get_session

from duetick.domain.errors import InvalidStoreUrl, StoreUnavailable
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


class Update(NamedTuple):
    """A conditional change of parts of an item: expressions, with their names and values."""

    change: str
    condition: str
    names: Mapping[str, str]
    values: Item


def connect(region: str | None, endpoint: str | None) -> "DynamoDBClient":
    """Make a client that waits rarely and briefly, and keeps its connections.

    The credentials are those of the environment. botocore alone is used, because an import of boto3
    would slow every cold start.
    """
    config = Config(
        retries={"mode": "standard", "total_max_attempts": 6},
        connect_timeout=2,
        read_timeout=5,
        max_pool_connections=32,
        tcp_keepalive=True,
    )
    session = get_session()
    session.register_component("data_loader", _loader())
    if _is_local(endpoint) and session.get_credentials() is None:
        session.set_credentials("local", "local")
    try:
        made = session.create_client(
            "dynamodb", region_name=region, endpoint_url=endpoint, config=config
        )
    except NoRegionError:
        raise InvalidStoreUrl(
            "No region is set: write dynamodb://table?region=eu-west-1, or set AWS_DEFAULT_REGION."
        ) from None
    return cast("DynamoDBClient", made)


def _is_local(endpoint: str | None) -> bool:
    """Return True for DynamoDB Local or its like on this machine: it accepts any credentials."""
    return urlsplit(endpoint or "").hostname in ("localhost", "127.0.0.1", "::1")


@cache
def _loader() -> Loader:
    """Load the service's description once: it takes nine tenths of the time to make a client."""
    return create_loader()


class Table:
    """One table. It reads every answer to the last page, and tries throttled requests again."""

    def __init__(self, name: str, client: "DynamoDBClient") -> None:
        self.name = name
        self.client = client
        self._metadata: Mapping[str, Any] = {}

    @property
    def date(self) -> int | None:
        """The service's clock in milliseconds, as of its last answer to a get or a query."""
        text = self._metadata.get("HTTPHeaders", {}).get("date")
        return int(parsedate_to_datetime(text).timestamp() * 1_000) if text else None

    def get(self, key: Key) -> Item | None:
        """Read an item consistently; None if it does not exist."""
        with errors(self.name):
            answer = self.client.get_item(TableName=self.name, Key=keyed(key), ConsistentRead=True)
        self._metadata = answer["ResponseMetadata"]
        return answer.get("Item")

    def get_many(self, keys: Sequence[Key], *, consistent: bool = True) -> dict[Key, Item]:
        """Read items, consistently or for half the price. The result has those that exist."""
        found: dict[Key, Item] = {}
        for start in range(0, len(keys), READ_AT_ONCE):
            for item in self._get_batch(keys[start : start + READ_AT_ONCE], consistent):
                found[key_of(item)] = item
        return found

    def _get_batch(self, keys: Sequence[Key], consistent: bool) -> Iterator[Item]:
        wanted = [keyed(key) for key in keys]
        for wait in _waits():
            with errors(self.name):
                answer = self.client.batch_get_item(
                    RequestItems={self.name: {"Keys": wanted, "ConsistentRead": consistent}}
                )
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
            self._write_batch([{"DeleteRequest": {"Key": keyed(key)}} for key in batch])

    def _write_batch(self, requests: "Sequence[WriteRequestOutputTypeDef]") -> None:
        for wait in _waits():
            with errors(self.name):
                answer = self.client.batch_write_item(RequestItems={self.name: requests})
            requests = answer.get("UnprocessedItems", {}).get(self.name, [])
            if not requests:
                return
            time.sleep(wait)
        raise StoreUnavailable(f"The table {self.name} stayed throttled while it was written.")

    def put(self, item: Item, rev: int | None = None) -> None:
        """Put the item; with `rev`, raise Conflict unless that is its revision (0: no item)."""
        with errors(self.name):
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
        """Change parts of the item and return all of it; raise Conflict if the condition fails."""
        with errors(self.name):
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
        with errors(self.name):
            self.client.delete_item(TableName=self.name, Key=keyed(key))

    def delete_if(self, key: Key, condition: Update) -> None:
        """Delete the item; raise Conflict if the condition fails. The change is not made."""
        with errors(self.name):
            self.client.delete_item(
                TableName=self.name,
                Key=keyed(key),
                ConditionExpression=condition.condition,
                ExpressionAttributeNames=condition.names,
                ExpressionAttributeValues=condition.values,
            )

    def transact(self, writes: "Sequence[TransactWriteItemTypeDef]") -> None:
        """Make all of the writes; or none, and raise Conflict."""
        for wait in _waits():
            try:
                with errors(self.name):
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
        request: QueryInputTypeDef = {
            "TableName": self.name,
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
            with errors(self.name):
                answer = self.client.query(**request)
            self._metadata = answer["ResponseMetadata"]
            yield from answer["Items"]
            following = answer.get("LastEvaluatedKey")
            if not following:
                return
            request["ExclusiveStartKey"] = following


def keyed(key: Key) -> Item:
    """Return a key as attributes."""
    return {"p": {"S": key[0]}, "s": {"S": key[1]}}


def key_of(item: Mapping[str, Any]) -> Key:
    """Return the key of an item."""
    return item["p"]["S"], item["s"]["S"]


def _waits() -> Iterator[float]:
    return (0.05 * 2**attempt for attempt in range(_ROUNDS))

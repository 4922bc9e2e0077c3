"""Callers' idempotency keys: an item for each, taken in one transaction with the begin."""

import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar

from duetick.domain.lifecycle import held_key
from duetick.domain.policies import DAY
from duetick.domain.schedule import Identity, Occurrence
from duetick.ports import CallerKey, Refused
from duetick.stores.dynamodb.errors import Refusal
from duetick.stores.dynamodb.occurrences import number, text
from duetick.stores.dynamodb.table import Item, Key, Table, keyed

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.type_defs import TransactWriteItemTypeDef

T = TypeVar("T")
Find: TypeAlias = Callable[[str, str, int, str], Occurrence | None]

TRIES: Final = 5


class CallerKeys:
    """The keys of one table; `find` reads the occurrence that holds one."""

    def __init__(self, table: Table, find: Find) -> None:
        self._table = table
        self._find = find

    def holds(self, key: CallerKey, now: int) -> Refused | None:
        """What stands against another run with the key."""
        return self._held(self._table.get(caller_key(key.flow, key.key)), now)

    def take(
        self,
        key: CallerKey,
        taker: Occurrence,
        now: int,
        together: "Callable[[TransactWriteItemTypeDef], T | Refused]",
    ) -> T | Refused:
        """Take the key together with what it is for, or say what holds it."""
        for _ in range(TRIES):
            seen = self._table.get(caller_key(key.flow, key.key))
            refused = self._held(seen, now)
            if refused:
                return refused
            try:
                return together(self._taking(key, taker, now, seen))
            except Refusal:
                continue
        return Refused("in_progress")

    def _held(self, seen: Item | None, now: int) -> Refused | None:
        if seen is None:
            return None
        holder = self._find(*holder_of(seen))
        verdict = holder and held_key(holder, int(seen["u"]["N"]), now)
        return Refused(verdict, holder.state, holder.reason) if holder and verdict else None

    def _taking(
        self, key: CallerKey, taker: Occurrence, now: int, seen: Item | None
    ) -> "TransactWriteItemTypeDef":
        """Put the key, if it is as it was seen."""
        until = now + key.window_ms
        item = keyed(caller_key(key.flow, key.key)) | {
            "h": text(json.dumps(taker.identity, ensure_ascii=False)),
            "u": number(until),
            "ttl": number(until // 1_000 + DAY),
        }
        unchanged = "attribute_not_exists(p)" if seen is None else "h = :h AND u = :u"
        put: TransactWriteItemTypeDef = {
            "Put": {"TableName": self._table.name, "Item": item, "ConditionExpression": unchanged}
        }
        if seen is not None:
            put["Put"]["ExpressionAttributeValues"] = {":h": seen["h"], ":u": seen["u"]}
        return put


def caller_key(flow: str, key: str) -> Key:
    """A flow's name has no `#` in it: the first one ends it."""
    return f"K#{flow}#{key}", "K"


def holder_of(item: Mapping[str, Any]) -> Identity:
    """Whose occurrence took the key."""
    user_id, key, nominal_at, origin = json.loads(item["h"]["S"])
    return user_id, key, nominal_at, origin

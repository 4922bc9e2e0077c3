"""Items read, changed and written back, on the condition that nobody wrote in between."""

import json
import logging
import secrets
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final, TypeAlias, TypeVar

from duetick.domain.errors import StoreUnavailable
from duetick.domain.identity import SCHEDULE_ORIGIN
from duetick.domain.schedule import Occurrence, Schedule
from duetick.stores.dynamodb.errors import Conflict, ItemTooLarge
from duetick.stores.dynamodb.items import (
    Entity,
    input_key,
    item_key,
    name_of,
    read,
    status_of,
    write,
)
from duetick.stores.dynamodb.layout import Layout
from duetick.stores.dynamodb.occurrences import (
    history_partition,
    history_sort,
    number,
    read_history,
    slot_of,
    text,
    write_history,
)
from duetick.stores.dynamodb.table import Item, Table

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.type_defs import TransactWriteItemTypeDef

T = TypeVar("T")
Name: TypeAlias = tuple[str, str]

TRIES: Final = 24
FLUSH_FROM: Final = 4

logger = logging.getLogger("duetick.store")


class Entities:
    """The schedules' items of one table."""

    def __init__(self, table: Table, shards: int) -> None:
        self.table = table
        self.shards = shards
        self.layout = Layout(table, shards)

    def load(self, user_id: str, key: str) -> Entity:
        """The item as it is now; an empty one where there is none."""
        item = self.table.get(item_key(user_id, key))
        return read(item) if item else Entity(user_id, key)

    def load_many(self, names: Iterable[Name]) -> dict[Name, Entity]:
        """Those of them that exist."""
        items = self.table.get_many([item_key(*name) for name in dict.fromkeys(names)])
        return {name_of(item): read(item) for item in items.values()}

    def save(self, entity: Entity, now: int) -> None:
        """Write it back; raise Conflict unless it is as it was read."""
        if entity.row:
            self.layout.announce()
        self.table.put(write(entity, self.shards, now), entity.rev)

    def move(self, entity: Entity, now: int) -> bool:
        """Bring the row to its shard of the present layout; False where it stands there."""
        if entity.status in (None, status_of(entity.user_id, entity.key, self.shards)):
            return False
        self.save(entity, now)
        return True

    def change(
        self,
        user_id: str,
        key: str,
        now: int,
        alter: Callable[[Entity], tuple[T, bool]],
        together: "Sequence[TransactWriteItemTypeDef]" = (),
    ) -> T:
        """Read, alter, write back; again when somebody else wrote first.

        `alter` answers what to return and whether it altered anything. What is given as
        `together` is written in one transaction with the item.
        """
        for attempt in range(TRIES):
            entity = self.load(user_id, key)
            if len(entity.finished(now)) >= FLUSH_FROM:
                self.flush([entity], now)
            answer, altered = alter(entity)
            if not altered:
                return answer
            try:
                self._write(entity, now, together)
            except Conflict:
                pause(attempt)
            else:
                return answer
        raise contended(user_id, key)

    def _write(
        self, entity: Entity, now: int, together: "Sequence[TransactWriteItemTypeDef]"
    ) -> None:
        if together:
            item = write(entity, self.shards, now)
            self.table.transact_with(put_revised(self.table.name, item, entity.rev), together)
        else:
            self.save(entity, now)

    def flush(self, entities: Iterable[Entity], now: int) -> None:
        """Write what ended to the history and let go of it.

        The history comes first: if the item is then not written, it still holds them, and the
        next one to come writes the same again.
        """
        leaving = [(entity, entry) for entity in entities for entry in entity.finished(now)]
        self.table.put_many([write_history(entry) for _, entry in leaving])
        for entity, entry in leaving:
            del entity.open[slot_of(entry.occurrence)]

    def left_within(self, held: Occurrence) -> list[int]:
        """The times of a range that have an occurrence of their own in the history."""
        first, last = held.nominal_at, held.range_end or held.nominal_at
        items = self.table.query(
            "p = :p AND s BETWEEN :first AND :last",
            {
                ":p": text(history_partition(held.user_id, held.key)),
                ":first": text(history_sort(first)),
                ":last": text(history_sort(last + 1)),
            },
        )
        left = (read_history(item).occurrence for item in items)
        return [one.nominal_at for one in left if one.origin == SCHEDULE_ORIGIN]

    def left_through(self, entity: Entity, after: int, until: int) -> list[int]:
        """Up to where the history tells what lies in (after, until]; a range may begin before."""
        items = self.table.query(
            "p = :p AND s < :end",
            {
                ":p": text(history_partition(entity.user_id, entity.key)),
                ":end": text(history_sort(until + 1)),
            },
            forward=False,
            page=5,
        )
        ends = []
        for one in (read_history(item).occurrence for item in items):
            if one.origin == SCHEDULE_ORIGIN:
                ends.append(one.range_end or one.nominal_at)
                if one.nominal_at <= after:
                    break
        return ends

    def with_input(self, schedule: Schedule | None, *, apart: bool) -> Schedule | None:
        """The record with its input, fetched where it is apart."""
        if schedule is None or not apart:
            return schedule
        item = self.table.get(input_key(schedule.user_id, schedule.key))
        return replace(schedule, input=json.loads(item["in"]["S"])) if item else schedule


def put_revised(table: str, item: Item, rev: int) -> "TransactWriteItemTypeDef":
    """Put the item as part of a transaction, if it is there in that revision."""
    if not rev:
        absent = "attribute_not_exists(p)"
        return {"Put": {"TableName": table, "Item": item, "ConditionExpression": absent}}
    return {
        "Put": {
            "TableName": table,
            "Item": item,
            "ConditionExpression": "rev = :rev",
            "ExpressionAttributeValues": {":rev": number(rev)},
        }
    }


def pause(attempt: int) -> None:
    """Step back, a little longer each time, and not in step with the others."""
    longest = min(2_000 << attempt, 200_000)
    time.sleep(secrets.randbelow(longest) / 1_000_000)


def tell_too_large(entity: Entity, error: Exception) -> None:
    """One schedule that cannot be written must not stop the others, and not go unseen."""
    if isinstance(error, ItemTooLarge):
        details = {"action": "item_too_large", "schedule": f"{entity.user_id}/{entity.key}"}
        logger.error("a schedule cannot be written: %s", error, extra=details)


def contended(user_id: str, key: str) -> StoreUnavailable:
    """The error after the last try."""
    return StoreUnavailable(
        f"{user_id}/{key} was written by others {TRIES} times in a row. Try again."
    )

"""The writes of an action in the transaction that settles it."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from duetick.domain.errors import (
    ConfigurationError,
    CreationStands,
    EffectsRefused,
    SchemaOutdated,
    StoreUnavailable,
)
from duetick.ports import NO_TERMS, Alter, Dialect, Terms
from duetick.stores.dynamodb.beside import COUNT, Beside
from duetick.stores.dynamodb.books import put_revised
from duetick.stores.dynamodb.errors import WriteRefusal, as_of_caller
from duetick.stores.dynamodb.occurrences import number

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.type_defs import TransactWriteItemTypeDef

    from duetick.domain.occurrence import ScheduleName
    from duetick.stores.dynamodb.books import Books
    from duetick.stores.dynamodb.items import BookItem
    from duetick.stores.dynamodb.table import Item

T = TypeVar("T")

MOST_WRITES: Final = 99
"""A transaction takes 100 writes; one of them settles."""


@contextmanager
def blame_action() -> Iterator[None]:
    """Raise a fault of the action's writes as EffectsRefused, when the block commits them."""
    try:
        yield
    except WriteRefusal as refusal:
        raise EffectsRefused(f"Your own writes were refused: {refusal}.") from refusal
    except (SchemaOutdated, StoreUnavailable) as error:
        raise as_of_caller(error) from error.__cause__


class DynamoTransaction:
    """`ports.Effects`. It collects the writes; they are made at once when the block ends."""

    dialect: Dialect = "dynamodb"

    def __init__(self, books: "Books") -> None:
        self._books = books
        self._changed: dict[ScheduleName, BookItem] = {}
        self._made: dict[str, str] = {}
        self.writes: list[TransactWriteItemTypeDef] = []

    def change(
        self, user_id: str, key: str, now: int, alter: Alter[T], terms: Terms | None = None
    ) -> T:
        """See `ports.Effects`. A book may be changed once, and then be read."""
        name, terms = (user_id, key), terms or NO_TERMS
        known = self._changed.get(name)
        found = known or self._books.load(*name)
        answer = alter(found.book)
        if not found.is_altered:
            return answer
        if known:
            raise ConfigurationError(f"{user_id}/{key} was changed in this transaction before.")
        creation = terms.creation
        if creation and creation.name in self._made:
            raise CreationStands(self._made[creation.name])
        beside = Beside(self._books.table, terms, None, now)
        beside.check(found)
        beside.collect(found)
        self._books.note_made(found, now)
        found.apply()
        item = self._books.prepare(found, now)
        before = [*self.writes]
        try:
            for one in (put_revised(self._books.table.name, item, found.rev), *beside.writes):
                self._add(one)
        except ConfigurationError:  # all of the change has room, or none
            self.writes[:] = before
            raise
        self._changed[name] = self._books.read(item)
        if creation:
            self._made[creation.name] = creation.digest
        return answer

    def run(self, sql: str, /, **params: object) -> Sequence[Sequence[object]]:
        """See `ports.Transaction`."""
        del sql, params
        raise ConfigurationError("This store is DynamoDB: use write({'Put': {...}}).")

    def write(self, item: Mapping[str, Any], /) -> None:
        """See `ports.Transaction`."""
        self._add(cast("TransactWriteItemTypeDef", dict(item)))

    def check(self) -> None:
        """Raise EffectsRefused if the form of a write is wrong. An action without writes loads
        nothing for that.
        """
        if self.writes:
            from duetick.stores.dynamodb.own_writes import faults_of

            faults = [fault for one in self.writes for fault in faults_of(one)]
            if faults:
                raise EffectsRefused(f"Your own writes were refused: {'; '.join(faults)}.")

    def _add(self, one: "TransactWriteItemTypeDef") -> None:
        """Add a write. DynamoDB takes one of each item, so counts of one item become one."""
        place = one.get("Update", {}).get("Key")
        for at, other in enumerate(self.writes):
            if place is not None and _is_count(other) and other["Update"]["Key"] == place:
                self.writes[at] = _count_both(other)
                return
        if len(self.writes) == MOST_WRITES:
            raise ConfigurationError(f"A transaction takes {MOST_WRITES} writes; split the work.")
        self.writes.append(one)


def _is_count(write: "TransactWriteItemTypeDef") -> bool:
    return write.get("Update", {}).get("UpdateExpression") == COUNT


def _count_both(earlier: "TransactWriteItemTypeDef") -> "TransactWriteItemTypeDef":
    """Return the write that counts one more than an earlier one, under the same limit."""
    update = earlier["Update"]
    values = cast("Item", {**update["ExpressionAttributeValues"]})
    values[":by"] = number(int(values[":by"]["N"]) + 1)
    if ":most" in values:
        most = int(values[":most"]["N"]) - 1
        if most < 1:
            raise EffectsRefused("There is no room for so many jobs of the user.")
        values[":most"] = number(most)
    return {"Update": {**update, "ExpressionAttributeValues": values}}

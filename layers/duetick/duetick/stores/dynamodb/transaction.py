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
from duetick.domain.identity import is_job
from duetick.ports import NO_TERMS, Alter, Dialect, Terms
from duetick.stores.dynamodb.beside import Beside, add_write, counted, place_of_count
from duetick.stores.dynamodb.books import put_revised
from duetick.stores.dynamodb.errors import WriteRefusal, as_of_caller

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.type_defs import TransactWriteItemTypeDef

    from duetick.domain.occurrence import Leased, ScheduleName
    from duetick.stores.dynamodb.books import Books
    from duetick.stores.dynamodb.items import BookItem

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

    def __init__(self, books: "Books", held: "Leased | None" = None) -> None:
        self._books = books
        ends_job = held is not None and is_job(held.origin)  # which is counted by a write
        self._most = MOST_WRITES - ends_job
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
        beside.check(found, counted(self.writes, place_of_count(found)))
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
        """Add a write, if there is room."""
        before = [*self.writes]
        add_write(self.writes, one)
        if len(self.writes) > self._most:
            self.writes[:] = before
            raise ConfigurationError(f"A transaction takes {self._most} writes; split the work.")

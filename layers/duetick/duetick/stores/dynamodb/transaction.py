"""The writes of an action in the transaction that settles it."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, cast

from duetick.domain.errors import (
    ConfigurationError,
    EffectsRefused,
    SchemaOutdated,
    StoreUnavailable,
)
from duetick.ports import Dialect
from duetick.stores.dynamodb.errors import WriteRefusal, as_of_caller

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.type_defs import TransactWriteItemTypeDef

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
    """`ports.Transaction`. It collects the writes; they are made at once when the block ends."""

    dialect: Dialect = "dynamodb"

    def __init__(self) -> None:
        self.writes: list[TransactWriteItemTypeDef] = []

    def run(self, sql: str, /, **params: object) -> Sequence[Sequence[object]]:
        """See `ports.Transaction`."""
        del sql, params
        raise ConfigurationError("This store is DynamoDB: use write({'Put': {...}}).")

    def write(self, item: Mapping[str, Any], /) -> None:
        """See `ports.Transaction`."""
        if len(self.writes) == MOST_WRITES:
            raise ConfigurationError(f"A transaction takes {MOST_WRITES} writes; split the work.")
        self.writes.append(cast("TransactWriteItemTypeDef", dict(item)))

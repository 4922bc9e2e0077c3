"""What an action may write in the transaction that settles it."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, cast

from duetick.domain.errors import (
    ConfigurationError,
    EffectsRefused,
    SchemaOutdated,
    StoreUnavailable,
)
from duetick.stores.dynamodb.errors import Refusal, as_of_caller

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.type_defs import TransactWriteItemTypeDef

MOST_WRITES: Final = 99
"""A transaction holds 100, and one of them settles."""


@contextmanager
def told_as_own() -> Iterator[None]:
    """Around the commit: what is wrong with an action's own writes is told as the action's."""
    try:
        yield
    except Refusal as refusal:
        raise EffectsRefused(f"Your own writes were refused: {refusal}.") from refusal
    except (SchemaOutdated, StoreUnavailable) as error:
        raise as_of_caller(error) from error.__cause__


class DynamoTransaction:
    """`ports.Transaction`: collected, and written all at once when the block ends."""

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

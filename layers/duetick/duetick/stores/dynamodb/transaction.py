"""What an action may write in the transaction that settles it."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, cast

from duetick.domain.errors import ConfigurationError

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.type_defs import TransactWriteItemTypeDef

MOST_WRITES: Final = 99
"""A transaction holds 100, and one of them settles."""


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

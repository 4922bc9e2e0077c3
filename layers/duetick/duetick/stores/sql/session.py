"""The one thing that a SQL backend brings: transactions in which queries run by name."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Protocol, TypeAlias

Value: TypeAlias = str | int | None
Row: TypeAlias = Sequence[object]
Params: TypeAlias = Mapping[str, Value]


class Session(Protocol):
    """An open transaction."""

    def rows(self, name: str, params: Params) -> Sequence[Row]:
        """Run the query of that name; its rows, none where it returns nothing."""

    def each(self, name: str, params: Sequence[Params]) -> Sequence[int]:
        """Run the query once for each set of parameters; how many rows each one changed."""

    def script(self, sql: str) -> None:
        """Run statements that return nothing, inside this transaction."""


class Database(Protocol):
    """Connections to one database."""

    def transaction(self) -> AbstractContextManager[Session]:
        """One that commits at its end, and rolls back where the block raises."""

    def now(self) -> int:
        """The database's clock in milliseconds."""

    def close(self) -> None:
        """Let go of every connection."""

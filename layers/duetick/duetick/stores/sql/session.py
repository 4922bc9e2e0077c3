"""The one thing that a SQL backend brings: transactions in which queries run by name."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import wraps
from typing import ClassVar, Concatenate, ParamSpec, Protocol, TypeAlias, TypeVar

from duetick.domain.errors import StoreUnavailable

Value: TypeAlias = str | int | None
Row: TypeAlias = Sequence[object]
Params: TypeAlias = Mapping[str, Value]


class Session(Protocol):
    """An open transaction."""

    def rows(self, name: str, params: Params) -> Sequence[Row]:
        """Run the query of that name; its rows, none where it returns nothing."""

    def each(self, name: str, params: Sequence[Params]) -> Sequence[int]:
        """Run the query once for each set of parameters; how many rows each one changed."""

    def last(self, name: str, params: Params) -> Callable[[], Sequence[Row]]:
        """Run the query of that name as the last of this transaction, and let it commit.

        The answer is asked for later, so that the database works meanwhile; it must be asked for.
        """

    def script(self, sql: str) -> None:
        """Run statements that return nothing, inside this transaction."""

    def run(self, sql: str, params: Mapping[str, object]) -> Sequence[Row]:
        """Run a statement of a caller's own; its rows. Raises EffectsRefused where it fails."""


class Database(Protocol):
    """Connections to one database."""

    def transaction(self) -> AbstractContextManager[Session]:
        """One that commits at its end, and rolls back where the block raises."""

    def claiming(self) -> AbstractContextManager[Session]:
        """One to claim in: due rows are read in the order of their index."""

    def migration(self) -> AbstractContextManager[Session]:
        """One for DDL, which keeps other migrations out and may take its time."""

    def check_transactions(self) -> None:
        """Raise NoTransactions where each statement commits by itself."""

    def now(self) -> int:
        """The database's clock in milliseconds."""

    def close(self) -> None:
        """Let go of every connection."""


class Undone(StoreUnavailable):
    """A transaction that was undone through no fault of its own: the same work may be done again.

    `tries` says how often in all.
    """

    tries: ClassVar[int] = 3


Method = ParamSpec("Method")
Owner = TypeVar("Owner")
Result = TypeVar("Result")


def retried(
    method: Callable[Concatenate[Owner, Method], Result],
) -> Callable[Concatenate[Owner, Method], Result]:
    """A method that is one transaction: done again, a few times, where it was undone."""

    @wraps(method)
    def again(self: Owner, /, *args: Method.args, **kwargs: Method.kwargs) -> Result:
        tried = 0
        while True:
            try:
                return method(self, *args, **kwargs)
            except Undone as undone:
                tried += 1
                if tried >= undone.tries:
                    raise

    return again

"""The seam between the SQL shelf and a database: transactions in which queries run by name."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import wraps
from typing import Any, ClassVar, Concatenate, ParamSpec, Protocol, TypeAlias, TypeVar

from duetick.domain.errors import StoreUnavailable

Value: TypeAlias = str | int | None
Row: TypeAlias = Sequence[Any]
"""A row as the driver returns it: the types depend on the columns."""

Params: TypeAlias = Mapping[str, Value]

QueryCall: TypeAlias = tuple[str, Params]
"""A query by its name, with its parameters."""


class Session(Protocol):
    """An open transaction."""

    def rows(self, name: str, params: Params) -> Sequence[Row]:
        """Run the query of that name; return its rows, none for a statement without rows."""

    def several(self, calls: Sequence[QueryCall]) -> Sequence[Sequence[Row]]:
        """Run queries one after another, in one round trip; return the rows of each."""

    def start(self, calls: Sequence[QueryCall]) -> Callable[[], Sequence[Sequence[Row]]]:
        """Run queries as `several` does. The result is a function that returns the rows.

        The database works until it is called; it must be called.
        """

    def each(self, name: str, params: Sequence[Params]) -> Sequence[int]:
        """Run the query for each set of parameters. Return the number of rows that each run
        changed.
        """

    def every(self, name: str, names: Sequence[str], given: Iterable[Sequence[Value]]) -> int:
        """Run the query for each tuple of values. `names` has its parameters in their order. Return
        the number of rows that all runs changed.
        """

    def last(self, calls: Sequence[QueryCall]) -> Callable[[], Sequence[Sequence[Row]]]:
        """Start the last queries of this transaction and its commit, in one round trip."""

    def script(self, sql: str) -> None:
        """Run statements that return nothing, inside this transaction."""

    def script_of(self, name: str) -> None:
        """Run the statements of that name, which return nothing, inside this transaction."""

    def run(self, sql: str, params: Mapping[str, object]) -> Sequence[Row]:
        """Run a caller's statement; return its rows. If it fails, raise EffectsRefused."""


class Database(Protocol):
    """Connections to one database."""

    def transaction(self) -> AbstractContextManager[Session]:
        """Open a transaction. It commits at the end of the block; if the block raises, it rolls
        back.
        """

    def reading(self) -> AbstractContextManager[Session]:
        """Open a transaction that only reads, and waits for no writer."""

    def claiming(self, *, waits: bool = True) -> AbstractContextManager[Session]:
        """Open a transaction of a tick, which claims or leases: due rows are read in the order of
        their index.

        Unless it `waits`, it gives up where somebody has the lock of a row.
        The end of the block need not wait for the disk. A begin of the claimed rows commits
        after it, and waits: a claim that a crash of the database undoes was never begun.
        """

    def volatile(self) -> AbstractContextManager[Session]:
        """Open a transaction that need not outlive a crash of the database.

        It writes the report of a worker, or a batch of a purge, which another purge repeats.
        """

    def looking(self) -> AbstractContextManager[Session]:
        """Open a transaction of a tick that only reads: it reads in the order of an index."""

    def migration(self) -> AbstractContextManager[Session]:
        """Open a transaction for DDL. It keeps other migrations out and has no short time limit."""

    def check_transactions(self) -> None:
        """Raise NoTransactions if each statement commits by itself."""

    def now(self) -> int:
        """Return the time of the database's clock, in milliseconds."""

    def close(self) -> None:
        """Close every connection."""


class Undone(StoreUnavailable):
    """The database rolled back a transaction because of another one.

    The same work may be tried again, up to `tries` times in all.
    """

    tries: ClassVar[int] = 3


Method = ParamSpec("Method")
Owner = TypeVar("Owner")
Result = TypeVar("Result")


def retried(
    method: Callable[Concatenate[Owner, Method], Result],
) -> Callable[Concatenate[Owner, Method], Result]:
    """Decorate a method that is one transaction: if the database undoes it, it runs again."""

    @wraps(method)
    def run_again(self: Owner, /, *args: Method.args, **kwargs: Method.kwargs) -> Result:
        tried = 0
        while True:
            try:
                return method(self, *args, **kwargs)
            except Undone as undone:
                tried += 1
                if tried >= undone.tries:
                    raise

    return run_again


def number(rows: Sequence[Row]) -> int:
    """Return the number that a counting query selects."""
    return int(rows[0][0])

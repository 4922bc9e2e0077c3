"""The connection to SQLite: the threads of a process share one, under a lock."""

import re
import sqlite3
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import cache
from itertools import chain
from operator import itemgetter
from types import TracebackType
from typing import Final, NamedTuple, TypeAlias

from duetick.core.retrying import retry
from duetick.domain.errors import (
    DuetickError,
    EffectsRefused,
    NoTransactions,
    SchemaBlocked,
    StoreUnavailable,
)
from duetick.stores.sql.queries import load
from duetick.stores.sql.session import Params, QueryCall, Row, Value
from duetick.stores.versions import unusable

ConnectSqlite: TypeAlias = Callable[[], sqlite3.Connection]

BUSY_SECONDS: Final = 30
TRIES: Final = 10
WAL: Final = "PRAGMA journal_mode = WAL"
WRITING: Final = "BEGIN IMMEDIATE"
MEMORY: Final = ":memory:"

FULL: Final = "FULL"
NORMAL: Final = "NORMAL"
"""The end of a transaction does not wait for the disk. The log is written in order, so the next one
that waits carries it there.
"""

TOGETHER: Final = 100
"""The rows that one INSERT takes: for each statement SQLite opens the table and its indexes."""

_NAME: Final = re.compile(r":([a-z_]+)")
_ROW: Final = re.compile(r"(?<=VALUES )\([^)]*\)")


class FileConnection(sqlite3.Connection):
    """A connection by the path of its file, so that it may be opened again."""


def connect_file(path: str) -> ConnectSqlite:
    """Return a factory of connections to a file, or to a database in memory."""

    kind = sqlite3.Connection if path == MEMORY else FileConnection

    def connect() -> sqlite3.Connection:
        connection = sqlite3.connect(
            path, timeout=BUSY_SECONDS, check_same_thread=False, factory=kind
        )
        try:
            # SQLite does not wait for another connection that changes the mode at the same moment.
            retry(lambda: connection.execute(WAL), sqlite3.OperationalError, TRIES, _wait)
            connection.execute("PRAGMA synchronous = FULL")
        except BaseException:
            connection.close()
            raise
        return connection

    return connect


def _wait(tried: int) -> None:
    time.sleep(tried * 0.01)


class Unnamed(NamedTuple):
    """A statement whose parameters have no names, and the function that orders their values.

    At each bind, SQLite looks up every parameter that has a name or a number.
    """

    sql: str
    pick: Callable[[Params], tuple[Value, ...]]


@cache
def leave_out_names(sql: str) -> Unnamed:
    """Leave the names of its parameters out of a statement."""
    return Unnamed(_NAME.sub("?", sql), _picker(_NAME.findall(sql)))


@cache
def check_order(sql: str, names: Sequence[str]) -> str:
    """Leave these names, in this order, out of a statement. If it has others, raise ValueError."""
    if _NAME.findall(sql) != [*names]:
        raise ValueError(f"Give the values in the order of the statement, not as {names}: {sql}")
    return leave_out_names(sql).sql


@cache
def repeat_row(sql: str) -> str:
    """Return an INSERT of one row as one of `TOGETHER` rows. Another statement stays as it is."""
    return _ROW.sub(lambda found: ", ".join([found[0]] * TOGETHER), sql)


def _picker(names: Sequence[str]) -> Callable[[Params], tuple[Value, ...]]:
    if len(names) > 1:
        return itemgetter(*names)
    return lambda params: tuple(params[name] for name in names)


class SqliteSession:
    """`Session` on an open transaction."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._queries = load("sqlite")

    def rows(self, name: str, params: Params) -> Sequence[Row]:
        """See `Session`. A caller's INSERT OR ROLLBACK or RAISE may have ended the transaction."""
        if not self._connection.in_transaction:
            raise EffectsRefused("A statement of your own ended the transaction, and undid it.")
        sql, pick = leave_out_names(self._queries[name])
        return self._connection.execute(sql, pick(params)).fetchall() if sql else ()

    def each(self, name: str, params: Sequence[Params]) -> Sequence[int]:
        """See `Session`."""
        sql, pick = leave_out_names(self._queries[name])
        cursor = self._connection.cursor()
        return [cursor.execute(sql, one).rowcount for one in map(pick, params)]

    def every(self, name: str, names: Sequence[str], given: Iterable[Sequence[Value]]) -> int:
        """See `Session`."""
        one, rows, changed = check_order(self._queries[name], names), [*given], 0
        many, cursor = repeat_row(one), self._connection.cursor()
        together = 0 if many == one else len(rows) // TOGETHER * TOGETHER
        for start in range(0, together, TOGETHER):
            values = [*chain.from_iterable(rows[start : start + TOGETHER])]
            changed += cursor.execute(many, values).rowcount
        return changed + cursor.executemany(one, rows[together:]).rowcount

    def run(self, sql: str, params: Mapping[str, object]) -> Sequence[Row]:
        """See `Session`."""
        try:
            return self._connection.execute(sql, dict(params)).fetchall()
        except sqlite3.Error as error:
            raise EffectsRefused(f"Your own statement failed: {error}.") from error

    def several(self, calls: Sequence[QueryCall]) -> Sequence[Sequence[Row]]:
        """See `Session`."""
        return [self.rows(name, params) for name, params in calls]

    def start(self, calls: Sequence[QueryCall]) -> Callable[[], Sequence[Sequence[Row]]]:
        """See `Session`. SQLite runs the queries at once."""
        answers = self.several(calls)
        return lambda: answers

    def last(self, calls: Sequence[QueryCall]) -> Callable[[], Sequence[Sequence[Row]]]:
        """See `Session`. The commit follows."""
        return self.start(calls)

    def script(self, sql: str) -> None:
        """See `Session`. `executescript` would commit the transaction."""
        for statement in sql.split(";"):
            if statement.strip():
                self._connection.execute(statement)

    def script_of(self, name: str) -> None:
        """See `Session`."""
        self.script(self._queries[name])


class SqliteTransaction:
    """A transaction that keeps out the other threads of the process."""

    __slots__ = ("_connection", "_database", "_opening", "_synchronous")

    _connection: sqlite3.Connection

    def __init__(self, database: "SqliteDatabase", opening: str, synchronous: str) -> None:
        self._database = database
        self._opening = opening
        self._synchronous = synchronous

    def __enter__(self) -> SqliteSession:
        database = self._database
        database.lock.acquire()
        try:
            self._connection = database.begin(self._opening, self._synchronous)
        except BaseException as error:
            database.lock.release()
            database.refuse(error)
            raise
        return SqliteSession(self._connection)

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        try:
            if error is None:
                self._commit()
            else:
                self._connection.rollback()
                self._database.refuse(error)
        finally:
            self._database.lock.release()

    def _commit(self) -> None:
        try:
            self._connection.commit()
        except BaseException as error:
            self._connection.rollback()
            self._database.refuse(error)
            raise


class SqliteDatabase:
    """`Database` on SQLite."""

    def __init__(self, connect: ConnectSqlite) -> None:
        self._connect = connect
        self._connection: sqlite3.Connection | None = None
        self._synchronous = FULL
        self.lock = threading.RLock()

    def transaction(self) -> AbstractContextManager[SqliteSession]:
        """See `Database`. BEGIN IMMEDIATE allows one writer at a time, of all processes."""
        return SqliteTransaction(self, WRITING, FULL)

    def claiming(self, *, waits: bool = True) -> AbstractContextManager[SqliteSession]:
        """See `Database`. There is one writer at a time, so a claim waits in every case."""
        del waits
        return SqliteTransaction(self, WRITING, NORMAL)

    def volatile(self) -> AbstractContextManager[SqliteSession]:
        """See `Database`."""
        return SqliteTransaction(self, WRITING, NORMAL)

    def reading(self) -> AbstractContextManager[SqliteSession]:
        """See `Database`. It waits for no writer of another process."""
        return SqliteTransaction(self, "BEGIN", self._synchronous)

    def looking(self) -> AbstractContextManager[SqliteSession]:
        """See `Database`."""
        return self.reading()

    def begin(self, opening: str, synchronous: str) -> sqlite3.Connection:
        """Open a transaction. The lock keeps the other threads out."""
        connection = self._open()
        if synchronous != self._synchronous and isinstance(connection, FileConnection):
            connection.execute(f"PRAGMA synchronous = {synchronous}")
            self._synchronous = synchronous
        connection.execute(opening)
        if not connection.in_transaction:
            raise NoTransactions(
                "The connection did not begin a transaction. Give a factory of plain "
                "sqlite3 connections, or the address of the file."
            )
        return connection

    @contextmanager
    def migration(self) -> Iterator[SqliteSession]:
        """See `Database`. If DDL violates a constraint, it is not ours: raise SchemaBlocked."""
        try:
            with self.transaction() as session:
                yield session
        except sqlite3.IntegrityError as error:
            raise SchemaBlocked(
                f"The schema cannot be made, and everything stays as it was: {error}. Drop the "
                "constraint, or connect without PRAGMA foreign_keys, then migrate again."
            ) from error

    def check_transactions(self) -> None:
        """See `Database`."""
        with self.transaction():
            pass

    def refuse(self, error: BaseException) -> None:
        """Raise the driver's error as ours, and close a connection that turns out to be read-only.
        Another error is left as it is.

        SQLite opens a file for reading if it fails to open it for writing, and stays with that. A
        volume that is mounted between the two would never be written to again.
        """
        if not isinstance(error, sqlite3.DatabaseError):
            return
        of_file = isinstance(self._connection, FileConnection)
        if of_file and error.sqlite_errorname.startswith("SQLITE_READONLY"):
            self.close()
        translated = _translate(error)
        if translated is not None:
            raise translated from error

    def _open(self) -> sqlite3.Connection:
        if self._connection is None:
            self._connection = self._connect()
            self._connection.isolation_level = None
            # Overwrite deleted data: by default it stays in the file's free pages.
            self._connection.execute("PRAGMA secure_delete = ON")
        return self._connection

    def forget_deleted(self) -> None:
        """Write the file anew and empty its log, because both may still contain deleted data.

        A page that SQLite merged into another keeps a copy of its rows.
        """
        try:
            with self.lock:
                self._open().execute("VACUUM")
                ((busy, *_),) = self._open().execute("PRAGMA wal_checkpoint(TRUNCATE)")
        except sqlite3.DatabaseError as error:
            self.refuse(error)
            raise
        if busy:
            raise StoreUnavailable(
                "It is erased, but a reader kept the log from being emptied, which still holds it. "
                "Erase again when that has ended."
            )

    def now(self) -> int:
        """See `Database`. An embedded database uses the host's clock."""
        return time.time_ns() // 1_000_000

    def close(self) -> None:
        """See `Database`."""
        with self.lock:
            if self._connection is not None:
                self._connection.close()
                self._connection, self._synchronous = None, FULL


def _translate(error: sqlite3.DatabaseError) -> DuetickError | None:
    """Return our error for one of the driver's; None for a violated constraint."""
    if isinstance(error, sqlite3.OperationalError):
        if "no such table" in str(error) or "no such column" in str(error):
            return unusable(str(error))
        return StoreUnavailable(f"SQLite did not do it: {error}.")
    if isinstance(error, sqlite3.IntegrityError):
        return None
    return StoreUnavailable(
        f"The file is no SQLite database, or it is damaged ({error}). Move it away, or name "
        "another."
    )

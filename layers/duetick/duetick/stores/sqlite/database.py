"""Connections to SQLite: one, shared by the threads of a process, serialized by a lock."""

import re
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from operator import itemgetter
from typing import Final, TypeAlias

from duetick.domain.errors import (
    MIGRATE,
    EffectsRefused,
    NoTransactions,
    SchemaOutdated,
    StoreUnavailable,
)
from duetick.stores.sql.queries import load
from duetick.stores.sql.session import Params, Row, Value

Connect: TypeAlias = Callable[[], sqlite3.Connection]

BUSY_SECONDS: Final = 30

_NAME: Final = re.compile(r":([a-z_]+)")


def connect_file(path: str) -> Connect:
    """A factory of connections to the file, or to a database in memory."""

    def connect() -> sqlite3.Connection:
        connection = sqlite3.connect(path, timeout=BUSY_SECONDS, check_same_thread=False)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        return connection

    return connect


@cache
def _positional(sql: str) -> tuple[str, Callable[[Params], tuple[Value, ...]]]:
    """The same with question marks, and what picks their values: names are bound half as fast."""
    names = _NAME.findall(sql)
    return _NAME.sub("?", sql), itemgetter(*names)


class SqliteSession:
    """`Session` on an open transaction."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._queries = load("sqlite")

    def rows(self, name: str, params: Params) -> Sequence[Row]:
        """See `Session`. SQLite may end a transaction by itself: INSERT OR ROLLBACK, RAISE."""
        if not self._connection.in_transaction:
            raise EffectsRefused("A statement of your own ended the transaction, and undid it.")
        return self._connection.execute(self._queries[name], params).fetchall()

    def each(self, name: str, params: Sequence[Params]) -> Sequence[int]:
        """See `Session`."""
        sql, pick = _positional(self._queries[name])
        cursor = self._connection.cursor()
        return [cursor.execute(sql, one).rowcount for one in map(pick, params)]

    def run(self, sql: str, params: Mapping[str, object]) -> Sequence[Row]:
        """See `Session`."""
        try:
            return self._connection.execute(sql, dict(params)).fetchall()
        except sqlite3.Error as error:
            raise EffectsRefused(f"Your own statement failed: {error}.") from error

    def last(self, name: str, params: Params) -> Callable[[], Sequence[Row]]:
        """See `Session`; nobody works for us meanwhile."""
        rows = self.rows(name, params)
        return lambda: rows

    def script(self, sql: str) -> None:
        """Run statements inside this transaction (`executescript` would commit it)."""
        for statement in sql.split(";"):
            if statement.strip():
                self._connection.execute(statement)


class SqliteDatabase:
    """`Database` on SQLite."""

    def __init__(self, connect: Connect) -> None:
        self._connect = connect
        self._lock = threading.RLock()
        self._connection: sqlite3.Connection | None = None

    @contextmanager
    def transaction(self) -> Iterator[SqliteSession]:
        """One writer at a time, in this process and beyond it (BEGIN IMMEDIATE)."""
        with self._lock, _errors():
            connection = self._open()
            connection.execute("BEGIN IMMEDIATE")
            if not connection.in_transaction:
                raise NoTransactions(
                    "The connection did not begin a transaction. Give a factory of plain "
                    "sqlite3 connections, or the address of the file."
                )
            try:
                yield SqliteSession(connection)
            except BaseException:
                connection.rollback()
                raise
            connection.commit()

    claiming = transaction
    migration = transaction

    def check_transactions(self) -> None:
        """See `Database`."""
        with self.transaction():
            pass

    def _open(self) -> sqlite3.Connection:
        if self._connection is None:
            self._connection = self._connect()
            self._connection.isolation_level = None
        return self._connection

    def now(self) -> int:
        """See `Database`: an embedded database has the host's clock."""
        return time.time_ns() // 1_000_000

    def close(self) -> None:
        """See `Database`."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None


@contextmanager
def _errors() -> Iterator[None]:
    """The driver's errors in our words, with the driver's own as the cause."""
    try:
        yield
    except sqlite3.OperationalError as error:
        if "no such table" in str(error) or "no such column" in str(error):
            raise SchemaOutdated(f"No usable schema is there ({error}). {MIGRATE}") from error
        raise StoreUnavailable(f"SQLite did not do it: {error}.") from error
    except sqlite3.IntegrityError:
        raise
    except sqlite3.DatabaseError as error:
        raise StoreUnavailable(
            f"The file is no SQLite database, or it is damaged ({error}). Move it away, or name "
            "another."
        ) from error

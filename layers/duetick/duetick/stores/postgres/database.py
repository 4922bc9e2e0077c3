"""`Database` on Postgres: a few connections that the threads of a process share."""

import json
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import Final, cast

from duetick.domain.errors import DuetickError, NoTransactions, StoreUnavailable
from duetick.stores.postgres.connecting import ConnectPostgres
from duetick.stores.postgres.errors import ConnectionLost, as_of_caller
from duetick.stores.postgres.kept import load_kept_queries
from duetick.stores.postgres.wire import Statement, Wire
from duetick.stores.sql.queries import load
from duetick.stores.sql.session import Params, QueryCall, Row, Value
from duetick.stores.versions import check_version

POOL_SECONDS: Final = 30
CLOCK_KEPT_MS: Final = 60_000

# SET LOCAL ends with its transaction, so a proxy need not pin the connection. It travels in the
# message of BEGIN, so it costs no round trip.
BEGIN: Final = """BEGIN;
SET LOCAL statement_timeout = '20s';
SET LOCAL lock_timeout = '10s';
SET LOCAL idle_in_transaction_session_timeout = '30s'"""

# With statistics from right after a tick, the planner would sort all due rows for each chunk, or
# read the whole table. These settings make a claim read in the order of its index, and by ctid. The
# end of the transaction does not wait for the disk: the log of the database is written in order, so
# the begin of an occurrence, which waits, carries its claim there.
VOLATILE: Final = f"""{BEGIN};
SET LOCAL synchronous_commit = off;
SET LOCAL enable_sort = off;
SET LOCAL enable_bitmapscan = off;
SET LOCAL enable_seqscan = off;
SET LOCAL enable_hashjoin = off;
SET LOCAL enable_mergejoin = off"""

CLAIMING: Final = VOLATILE
CLAIMING_AT_ONCE: Final = f"""{VOLATILE};
SET LOCAL lock_timeout = '200ms'"""

MIGRATION: Final = """BEGIN;
SET LOCAL statement_timeout = 0;
SET LOCAL lock_timeout = 0;
SET LOCAL idle_in_transaction_session_timeout = '5min'"""


class PostgresSession:
    """`Session` on an open transaction."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self._queries, self._kept = load("postgres"), load_kept_queries()

    def rows(self, name: str, params: Params) -> Sequence[Row]:
        """See `Session`."""
        return self._wire.run(self._queries[name], params)

    def each(self, name: str, params: Sequence[Params]) -> Sequence[int]:
        """See `Session`."""
        return self._wire.run_each(self._queries[name], params)

    def every(self, name: str, names: Sequence[str], given: Iterable[Sequence[Value]]) -> int:
        """See `Session`. The query takes all of them in one statement."""
        many = [dict(zip(names, values, strict=True)) for values in given]
        return self.each(name, [{"many": json.dumps(many)}])[0] if many else 0

    def run(self, sql: str, params: Mapping[str, object]) -> Sequence[Row]:
        """See `Session`."""
        try:
            return self._wire.run(sql, cast("Params", params))
        except DuetickError as error:
            raise as_of_caller(error) from error.__cause__

    def several(self, calls: Sequence[QueryCall]) -> Sequence[Sequence[Row]]:
        """See `Session`."""
        return self._wire.run_several(self._statements(calls))

    def start(self, calls: Sequence[QueryCall]) -> Callable[[], Sequence[Sequence[Row]]]:
        """See `Session`."""
        return self._wire.start(self._statements(calls))

    def last(self, calls: Sequence[QueryCall]) -> Callable[[], Sequence[Sequence[Row]]]:
        """See `Session`. The COMMIT travels with the queries."""
        if not calls:
            return tuple
        return self._wire.run_last(self._statements(calls))

    def _statements(self, calls: Sequence[QueryCall]) -> list[Statement]:
        return [(self._kept.get(name) or self._queries[name], params) for name, params in calls]

    def script(self, sql: str) -> None:
        """See `Session`."""
        self._wire.script(sql)

    def script_of(self, name: str) -> None:
        """See `Session`."""
        self._wire.script(self._queries[name])


class Pool:
    """A pool of at most `size` connections. If none is free, `lend` waits for one."""

    def __init__(self, connect: ConnectPostgres, size: int) -> None:
        self._connect = connect
        self._slots = threading.BoundedSemaphore(size)
        self._idle: list[Wire] = []
        self._process = os.getpid()

    @contextmanager
    def lend(self) -> Iterator[Wire]:
        """Lend a connection to the block. If it got out of step, it is closed afterwards."""
        if not self._slots.acquire(timeout=POOL_SECONDS):
            raise StoreUnavailable(
                f"No connection was free for {POOL_SECONDS} s. Raise `pool` in the address, or "
                "look for what holds transactions open."
            )
        try:
            wire = self._take()
            try:
                yield wire
            except ConnectionLost:
                self.forget()
                raise
            finally:
                self._give_back(wire)
        finally:
            self._slots.release()

    def _take(self) -> Wire:
        if self._process != os.getpid():
            # After a fork the parent uses these connections: the child may not even close them.
            self._process, self._idle = os.getpid(), []
        while self._idle:
            with suppress(IndexError):  # another thread was quicker
                wire = self._idle.pop()
                if wire.silent():
                    return wire
                wire.close()
        return Wire(self._connect())

    def _give_back(self, wire: Wire) -> None:
        if wire.sound:
            self._idle.append(wire)
        else:
            wire.close()

    def forget(self) -> None:
        """Close the idle connections: if one connection broke, the others probably did, too."""
        with suppress(IndexError):  # no more, or another thread was quicker
            while True:
                self._idle.pop().close()


class PostgresDatabase:
    """`Database` on Postgres."""

    def __init__(self, connect: ConnectPostgres, size: int, code: int) -> None:
        self._pool, self._code = Pool(connect, size), code
        self._ahead, self._asked_at = 0, -CLOCK_KEPT_MS

    @contextmanager
    def transaction(self) -> Iterator[PostgresSession]:
        """See `Database`. READ COMMITTED is enough: queries lock the rows that a change needs."""
        with self._transaction(BEGIN) as session:
            yield session

    def reading(self) -> AbstractContextManager[PostgresSession]:
        """See `Database`. A query that locks no row waits for nobody."""
        return self.transaction()

    @contextmanager
    def claiming(self, *, waits: bool = True) -> Iterator[PostgresSession]:
        """See `Database`. The plan is pinned."""
        opening = CLAIMING if waits else CLAIMING_AT_ONCE
        with self._transaction(opening, keeps=True) as session:
            yield session

    def looking(self) -> AbstractContextManager[PostgresSession]:
        """See `Database`."""
        return self.claiming(waits=False)

    @contextmanager
    def volatile(self) -> Iterator[PostgresSession]:
        """See `Database`. The plan of a purge is pinned, as the plan of a claim is."""
        with self._transaction(VOLATILE) as session:
            yield session

    @contextmanager
    def migration(self) -> Iterator[PostgresSession]:
        """See `Database`. The lock ends with the transaction, even if this process dies."""
        with self._transaction(MIGRATION) as session:
            session.rows("migrate_lock", {})
            yield session

    @contextmanager
    def _transaction(self, opening: str, *, keeps: bool = False) -> Iterator[PostgresSession]:
        with self._pool.lend() as wire:
            wire.begin(opening, keeps=keeps)
            try:
                yield PostgresSession(wire)
            except BaseException:
                _roll_back(wire)
                raise
            wire.end("COMMIT")

    def check_transactions(self) -> None:
        """See `Database`."""
        with self.transaction() as session:
            first, second = session.rows("transaction_id", {}), session.rows("transaction_id", {})
        if first != second:
            raise NoTransactions(
                "Two statements of one transaction ran in two. Give a factory of connections "
                "that keep transactions, without autocommit and without statement pooling."
            )

    def now(self) -> int:
        """See `Database`. Raises SchemaOutdated if this code cannot use the schema.

        The database's clock is read once a minute, so that a begin or a settle stays one round
        trip. In between, the host's clock adds the time since then.
        """
        host = _host_now()
        if not 0 <= host - self._asked_at < CLOCK_KEPT_MS:
            self._ahead, self._asked_at = self._ask() - host, host
        return host + self._ahead

    def _ask(self) -> int:
        with self._pool.lend() as wire:
            ((now, *version),) = PostgresSession(wire).rows("clock", {})
        found, oldest = version
        check_version(self._code, found, oldest)
        return int(now)

    def close(self) -> None:
        """See `Database`."""
        self._pool.forget()


def _host_now() -> int:
    return time.time_ns() // 1_000_000


def _roll_back(wire: Wire) -> None:
    """Roll back without raising: the error that broke the transaction must surface."""
    if wire.sound:
        try:
            wire.end("ROLLBACK")
        except StoreUnavailable:
            wire.sound = False

"""`Database` on Postgres: a few connections, shared by the threads of a process."""

import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Final, cast

from duetick.domain.errors import DuetickError, NoTransactions, StoreUnavailable
from duetick.stores.postgres.connecting import Connect
from duetick.stores.postgres.errors import ConnectionLost, as_of_caller
from duetick.stores.postgres.wire import Wire
from duetick.stores.sql.queries import load
from duetick.stores.sql.rows import read_number, read_version
from duetick.stores.sql.session import Params, Row
from duetick.stores.versions import check_version

POOL_SECONDS: Final = 30
CLOCK_KEPT_MS: Final = 60_000

# SET LOCAL ends with its transaction, so that a proxy need not keep the connection for us, and it
# travels in the message of BEGIN, so that it costs no round trip.
BEGIN: Final = """BEGIN;
SET LOCAL statement_timeout = '20s';
SET LOCAL lock_timeout = '10s';
SET LOCAL idle_in_transaction_session_timeout = '30s'"""

# Statistics that were gathered right after a tick make the planner sort all that is due for each
# chunk, or read the whole index table: a claim reads in the order of its index, and by place.
CLAIMING: Final = f"""{BEGIN};
SET LOCAL enable_sort = off;
SET LOCAL enable_bitmapscan = off;
SET LOCAL enable_seqscan = off;
SET LOCAL enable_hashjoin = off;
SET LOCAL enable_mergejoin = off"""

MIGRATION: Final = """BEGIN;
SET LOCAL statement_timeout = 0;
SET LOCAL lock_timeout = 0;
SET LOCAL idle_in_transaction_session_timeout = '5min'"""


class PostgresSession:
    """`Session` on an open transaction."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self._queries = load("postgres")

    def rows(self, name: str, params: Params) -> Sequence[Row]:
        """See `Session`."""
        return self._wire.run(self._queries[name], params).rows or ()

    def each(self, name: str, params: Sequence[Params]) -> Sequence[int]:
        """See `Session`."""
        return self._wire.run_each(self._queries[name], params).counts

    def run(self, sql: str, params: Mapping[str, object]) -> Sequence[Row]:
        """See `Session`."""
        try:
            return self._wire.run(sql, cast("Params", params)).rows or ()
        except DuetickError as error:
            raise as_of_caller(error) from error.__cause__

    def last(self, name: str, params: Params) -> Callable[[], Sequence[Row]]:
        """See `Session`: the COMMIT travels with it, in one round trip."""
        answer = self._wire.run_last(self._queries[name], params)
        return lambda: answer().rows or ()

    def script(self, sql: str) -> None:
        """See `Session`."""
        self._wire.script(sql)


class Pool:
    """At most `size` connections; who finds none free waits for one."""

    def __init__(self, connect: Connect, size: int) -> None:
        self._connect = connect
        self._slots = threading.BoundedSemaphore(size)
        self._idle: list[Wire] = []
        self._process = os.getpid()

    @contextmanager
    def lend(self) -> Iterator[Wire]:
        """A connection for the block; one that got out of step does not come back."""
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
            # Those of the parent of a fork are its own: not even a goodbye may be said on them.
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
        """Close what is idle: where one connection broke, the others probably did."""
        with suppress(IndexError):  # no more, or another thread was quicker
            while True:
                self._idle.pop().close()


class PostgresDatabase:
    """`Database` on Postgres."""

    def __init__(self, connect: Connect, size: int, code: int) -> None:
        self._pool, self._code = Pool(connect, size), code
        self._ahead, self._asked_at = 0, -CLOCK_KEPT_MS

    @contextmanager
    def transaction(self) -> Iterator[PostgresSession]:
        """See `Database`; READ COMMITTED, the rows that are decided about are locked."""
        with self._transaction(BEGIN) as session:
            yield session

    @contextmanager
    def claiming(self) -> Iterator[PostgresSession]:
        """See `Database`; with the plan pinned."""
        with self._transaction(CLAIMING) as session:
            yield session

    @contextmanager
    def migration(self) -> Iterator[PostgresSession]:
        """See `Database`; a lock that ends with the transaction, whatever becomes of us."""
        with self._transaction(MIGRATION) as session:
            session.rows("migrate_lock", {})
            yield session

    @contextmanager
    def _transaction(self, opening: str) -> Iterator[PostgresSession]:
        with self._pool.lend() as wire:
            wire.begin(opening)
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
        """See `Database`. Asked once a minute: in between, the host's clock says how far it went,
        so that a begin or a settle stays one round trip. Raises SchemaOutdated where the schema is
        not one for the code of that version.
        """
        host = _host_now()
        if not 0 <= host - self._asked_at < CLOCK_KEPT_MS:
            self._ahead, self._asked_at = self._ask() - host, host
        return host + self._ahead

    def _ask(self) -> int:
        with self._pool.lend() as wire:
            ((now, *version),) = PostgresSession(wire).rows("clock", {})
        check_version(self._code, *read_version(version))
        return read_number(now)

    def close(self) -> None:
        """See `Database`."""
        self._pool.forget()


def _host_now() -> int:
    return time.time_ns() // 1_000_000


def _roll_back(wire: Wire) -> None:
    """What broke the transaction is what surfaces, not that its end cannot be told."""
    if wire.sound:
        try:
            wire.end("ROLLBACK")
        except StoreUnavailable:
            wire.sound = False

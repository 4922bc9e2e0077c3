"""The shelf on Postgres: begin and settle are one statement and one round trip each.

The statement's condition decides the everyday case (see `sql.quick`). If it changes no row, the
general way loads the book and decides.
"""

from collections.abc import Callable, Sequence
from typing import Final

from pg8000.core import CoreConnection

from duetick.core.retrying import retry
from duetick.domain.attempts import Begun, Settled
from duetick.domain.occurrence import Leased, Occurrence
from duetick.domain.standing import StandingOrder
from duetick.stores.postgres.address import read_address
from duetick.stores.postgres.claim import PostgresClaim
from duetick.stores.postgres.connecting import ConnectPostgres, Password, connect_to
from duetick.stores.postgres.database import PostgresDatabase
from duetick.stores.postgres.errors import FACTORYS_PLACE, InDoubt, connecting
from duetick.stores.sql.queries import migrations
from duetick.stores.sql.quick import begin_call, settle_call
from duetick.stores.sql.rows import read_begun, read_occurrence
from duetick.stores.sql.session import QueryCall, Row, Undone, retried
from duetick.stores.sql.shelf import SqlShelf

POOL: Final = 8


class PostgresShelf(SqlShelf):
    """`ports.Shelf` on Postgres."""

    def begin(self, leases: Sequence[Leased], now: int) -> Sequence[Begun | None]:
        """See `ports.Shelf`. If the answer is lost, the general way reads the result."""
        calls = [begin_call(lease, now) for lease in leases]
        return [read_begun(row) if row else None for row in self._write(calls)]

    def settle(self, settled: Sequence[Settled], now: int) -> Sequence[Occurrence | None]:
        """See `ports.Shelf`. If the answer is lost, the general way repeats it, without effect."""
        calls = [settle_call(one, now) for one in settled]
        return [read_occurrence(row) if row else None for row in self._write(calls)]

    def standing(self) -> Sequence[StandingOrder]:
        """See `ports.Shelf`. If the answer is lost, it is read again: each begin waits for it."""
        return retry(super().standing, InDoubt, 2)

    def _write(self, calls: Sequence[QueryCall]) -> Sequence[Row | None]:
        """Run the statements in one transaction and round trip; return the row that each changed.

        If one of several statements conflicts with another, all of them go the general way.
        """
        try:
            return self._write_at_once(calls)
        except InDoubt:
            return [None for _ in calls]
        except Undone:
            if len(calls) == 1:
                raise
            return [None for _ in calls]

    @retried
    def _write_at_once(self, calls: Sequence[QueryCall]) -> Sequence[Row | None]:
        with self._database.transaction() as session:
            answers = session.last(calls)()
        return [rows[0] if rows else None for rows in answers]

    @retried
    def admit(self, user: str, password: Password) -> None:
        """Let a user read and write; see `roles`. Only the schema's owner may do this."""
        from duetick.stores.postgres.roles import admit

        admit(self._database, user, password)


def open_postgres(
    address: str | ConnectPostgres, *, password: Password | None = None
) -> PostgresShelf:
    """Open a shelf at a libpq URL, or on connections of a factory. It connects at its first use.

    Each new connection calls `password`, in place of the password in the address.
    """
    code = migrations("postgres")[-1].version
    if isinstance(address, str):
        read = read_address(address)
        return open_database(PostgresDatabase(connect_to(read, password), read.pool, code))
    return open_database(PostgresDatabase(_connect_by(address), POOL, code))


def _connect_by(factory: ConnectPostgres) -> Callable[[], CoreConnection]:
    """Return the caller's factory. It raises the same errors as the factory of an address."""

    def connect() -> CoreConnection:
        with connecting(FACTORYS_PLACE):
            return factory()

    return connect


def open_database(database: PostgresDatabase) -> PostgresShelf:
    """Make a shelf on a database."""
    return PostgresShelf(database, PostgresClaim(), migrations("postgres"))

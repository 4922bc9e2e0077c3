"""Postgres is a store as the contract wants it, by socket and on a caller's own connections."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from duetick.domain.errors import StoreUnavailable
from duetick.domain.schedule import Schedule
from duetick.ports import Store
from duetick.stores import open_store
from duetick.stores.postgres.store import open_postgres
from duetick.testing import Capability, StoreConformance
from duetick.testing.conformance.concurrency import race
from pg8000.native import Connection

from tests.lab.postgres import (
    OUTSIDE,
    Postgres,
    connect,
    drop_database,
    emptied,
    fresh_database,
    machines_own,
)

FULL_DISK = """
CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql
    AS 'BEGIN RAISE disk_full; END';
CREATE TRIGGER full_disk BEFORE INSERT ON occurrences EXECUTE FUNCTION full_disk()
"""

USER = "duetick_functions"

Address = str | Callable[[], object]


pytestmark = pytest.mark.slow


@pytest.fixture(scope="class")
def database(request: pytest.FixtureRequest) -> Iterator[str]:
    """One for all tests of a class, which empty it."""
    server: Postgres = request.getfixturevalue(request.cls.server)
    url = fresh_database(server)
    yield url
    drop_database(server, url)


class PostgresConformance(StoreConformance):
    """Each store of a test has connections of its own to one database."""

    capabilities = frozenset(Capability)
    server = "postgres"
    """The fixture: Postgres 18 out of a wheel, or the server that the environment names."""

    def address(self, url: str) -> Address:
        """What the store is opened with."""
        return url

    @pytest.fixture(autouse=True)
    def _empty(self, database: str) -> Iterator[None]:
        self._url = emptied(database)
        self._open: list[Store] = []
        yield
        for store in self._open:
            store.close()

    @pytest.fixture
    def store(self) -> Store:
        store = self._opened()
        store.migrate()
        return store

    def _opened(self) -> Store:
        self._open.append(open_store(self.address(self._url)))
        return self._open[-1]

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


class TestPostgres(PostgresConformance):
    """At an address."""


if machines_own():

    class TestTheMachinesOwnPostgres(PostgresConformance):
        """Whatever version that is. Where there is none, the head of the report says so."""

        server = "machines_own_postgres"


if OUTSIDE in os.environ:

    class TestEmbeddedPostgres(PostgresConformance):
        """The environment names a server: Postgres 18 is tested beside it all the same."""

        server = "embedded_postgres"


class TestPostgresAsTheFunctionsUser(PostgresConformance):
    """As the user that a schema's owner admits, who owns nothing; on the caller's connections."""

    def address(self, url: str) -> Address:
        def connection() -> Connection:
            made = connect(url)
            made.run(f"SET SESSION AUTHORIZATION {USER}")
            return made

        return connection

    @pytest.fixture
    def store(self) -> Store:
        owner = open_postgres(self._url)
        owner.migrate()
        owner.admit(USER, lambda: "any")
        owner.close()
        return self._opened()

    def test_j01_migrating_again_changes_nothing(self, store: Store) -> None:
        with pytest.raises(StoreUnavailable, match="permission denied"):
            store.migrate()

    def test_j01_migrating_at_the_same_time_as_another_is_safe(self, store: Store) -> None:
        owners = [open_postgres(self._url) for _ in range(2)]
        self._open += owners
        race([owner.migrate for owner in owners])
        store.check_schema()

"""Postgres is a store as the contract wants it, by socket and on a caller's own connections."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from duetick.domain.errors import StoreUnavailable
from duetick.domain.schedule import Schedule
from duetick.ports import Store
from duetick.stores import open_store
from duetick.testing import Capability, StoreConformance

from tests.lab.postgres import connect

FULL_DISK = """
CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql
    AS 'BEGIN RAISE disk_full; END';
CREATE TRIGGER full_disk BEFORE INSERT ON occurrences EXECUTE FUNCTION full_disk()
"""

Address = str | Callable[[], object]


pytestmark = pytest.mark.slow


class PostgresConformance(StoreConformance):
    """Each store of a test has connections of its own to one database."""

    capabilities = frozenset(Capability)

    def address(self, url: str) -> Address:
        """What the store is opened with."""
        return url

    @pytest.fixture(autouse=True)
    def _database(self, postgres_url: str) -> Iterator[None]:
        self._url = postgres_url
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


class TestPostgresOnConnectionsOfTheCaller(PostgresConformance):
    """On pg8000's own connections."""

    def address(self, url: str) -> Address:
        return lambda: connect(url)

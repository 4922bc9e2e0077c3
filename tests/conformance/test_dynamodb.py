"""DynamoDB is a store as the contract wants it: on Amazon's DynamoDB Local, and on moto."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import pytest
from duetick.core.store import Store
from duetick.domain.schedule import Schedule
from duetick.stores import open_store
from duetick.testing import Capability, StoreConformance
from duetick.testing.conformance.suite import StoreSuite

from tests.conformance.parts import EveryPath, EveryStatement
from tests.lab.dynamodb import DynamoDB, table_name
from tests.lab.dynamodb_service import watched
from tests.lab.process import LOCALHOST
from tests.lab.ready import ReadyTable

pytestmark = pytest.mark.slow

NOBODY = f"{LOCALHOST}:1"


class OutOfReach(Exception):
    """No item can be written."""


def _fail(operation: str, _request: object) -> None:
    if operation in ("PutItem", "TransactWriteItems"):
        raise OutOfReach


class Table(NamedTuple):
    """One for all tests of a class."""

    endpoint: DynamoDB
    place: ReadyTable


@pytest.fixture(scope="class")
def table(request: pytest.FixtureRequest) -> Table:
    """One for all tests of a class."""
    endpoint: DynamoDB = request.getfixturevalue(request.cls.server)
    return Table(endpoint, ReadyTable(endpoint, request.cls.options))


class DynamoSuite(StoreSuite):
    """The stores of all tests share a client and a table."""

    capabilities = frozenset(Capability) - {Capability.FORGETS}
    options = ""
    server = "dynamodb_local"

    @pytest.fixture(autouse=True)
    def _empty(self, table: Table, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
        monkeypatch.setattr("duetick.stores.dynamodb.service.FIRST_WAIT", 0.001)
        self._endpoint, self._url = table.endpoint, table.place.ready()
        self._open: list[Store] = []
        yield
        for store in self._open:
            store.close()

    @pytest.fixture
    def store(self) -> Store:
        return self._opened()

    def _opened(self) -> Store:
        self._open.append(open_store(self._url))
        return self._open[-1]

    def test_c05_where_ticks_look_ahead_a_rate_below_a_minute_is_put(self, store: Store) -> None:
        self._open.append(open_store(self._url, look_ahead=True))
        often = Schedule("ada", "often", "rate(10 seconds)", "reminders", "send")
        assert self._open[-1].schedules.put(often, now=60_000).next_fire_at == 70_000

    @contextmanager
    def failing_writes(self, store: Store) -> Iterator[type[Exception]]:
        with watched(store.shelf, _fail):
            yield OutOfReach

    def unmigrated(self, store: Store) -> Store:
        return open_store(self._endpoint.table_url(table_name()) + self.options)

    def unreachable(self, store: Store) -> Store:
        return open_store(f"dynamodb://any?region=eu-west-1&endpoint=http://{NOBODY}")

    def another(self, store: Store) -> Store:
        return self._opened()

    def reopened(self, store: Store) -> Store:
        return self._opened()


class TestDynamoDBLocal(DynamoSuite, StoreConformance):
    """The whole suite."""


class TestDynamoDBLocalInFourShards(DynamoSuite, EveryStatement):
    """The same service, its index spread over four partitions."""

    options = "&shards=4"


class TestMoto(DynamoSuite, EveryPath):
    """moto's server. It looks at a condition and then writes, with nothing to keep others out."""

    capabilities = DynamoSuite.capabilities - {Capability.THREADS}
    server = "moto"

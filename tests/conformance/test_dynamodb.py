"""DynamoDB is a store as the contract wants it: on Amazon's DynamoDB Local, and on moto."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from duetick.domain.schedule import Schedule
from duetick.ports import Store
from duetick.stores import open_store
from duetick.stores.dynamodb.store import DynamoStore
from duetick.testing import Capability, StoreConformance

from tests.lab.dynamodb import DynamoDB, table_name
from tests.lab.process import LOCALHOST

pytestmark = pytest.mark.slow

NOBODY = f"{LOCALHOST}:1"
TRIES_AGAIN = "retry-config-dynamodb"
"""botocore's name for what repeats a request that failed."""


class OutOfReach(Exception):
    """No item can be written."""


def _fail(**_: object) -> None:
    raise OutOfReach


class DynamoConformance(StoreConformance):
    """Each test has a table of its own; each store of a test a client of its own."""

    capabilities = frozenset(Capability)
    options = ""

    @pytest.fixture(autouse=True)
    def _table(self, endpoint: DynamoDB) -> Iterator[None]:
        self._endpoint = endpoint
        self._url = endpoint.table_url(table_name()) + self.options
        self._open: list[Store] = []
        yield
        for store in self._open:
            store.close()

    @pytest.fixture
    def store(self, _table: None) -> Store:
        store = self._opened()
        store.migrate()
        return store

    def _opened(self) -> Store:
        self._open.append(open_store(self._url))
        return self._open[-1]

    def test_c05_where_ticks_look_ahead_a_rate_below_a_minute_is_put(self, store: Store) -> None:
        self._open.append(open_store(self._url, look_ahead=True))
        often = Schedule("ada", "often", "rate(10 seconds)", "reminders", "send")
        assert self._open[-1].schedules.put(often, now=60_000).next_fire_at == 70_000

    @contextmanager
    def failing_writes(self, store: Store) -> Iterator[type[Exception]]:
        assert isinstance(store, DynamoStore)
        events = store.client.meta.events
        for operation in ("PutItem", "TransactWriteItems"):
            events.register(f"before-call.dynamodb.{operation}", _fail)
        yield OutOfReach
        for operation in ("PutItem", "TransactWriteItems"):
            events.unregister(f"before-call.dynamodb.{operation}", _fail)

    def unmigrated(self, store: Store) -> Store:
        return open_store(self._endpoint.table_url(table_name()) + self.options)

    def unreachable(self, store: Store) -> Store:
        """It is tried once: botocore waits for seconds between its tries."""
        made = open_store(f"dynamodb://any?region=eu-west-1&endpoint=http://{NOBODY}")
        assert isinstance(made, DynamoStore)
        made.client.meta.events.unregister("needs-retry.dynamodb", unique_id=TRIES_AGAIN)
        return made

    def another(self, store: Store) -> Store:
        return self._opened()

    def reopened(self, store: Store) -> Store:
        return self._opened()


class TestDynamoDBLocal(DynamoConformance):
    """Amazon's own."""

    @pytest.fixture
    def endpoint(self, dynamodb_local: DynamoDB) -> DynamoDB:
        return dynamodb_local


class TestDynamoDBLocalInFourShards(TestDynamoDBLocal):
    """The same, its index spread over four partitions."""

    options = "&shards=4"


class TestMoto(DynamoConformance):
    """moto's server. It looks at a condition and then writes, with nothing to keep others out."""

    capabilities = frozenset(Capability) - {Capability.THREADS}

    @pytest.fixture
    def endpoint(self, moto: DynamoDB) -> DynamoDB:
        return moto

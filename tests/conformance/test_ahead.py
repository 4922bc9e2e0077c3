"""A forecast of a month has the number of fires in each minute of it, on every store."""

from contextlib import closing
from functools import cache

import pytest
from duetick.core.store import Store
from duetick.stores import open_store
from duetick.testing.clock import FakeClock

from tests.conformance.ahead import BEGIN, OF_STORES, live_as_forecast
from tests.conformance.memory_shelf import MemoryShelf
from tests.lab.dynamodb import DynamoDB, table_name
from tests.lab.postgres import emptied


@cache
def minutes(of: frozenset[str] | None = None) -> tuple[int, ...]:
    """Return the minutes in which a tick finds something, as a store in memory has them."""
    clock = FakeClock(BEGIN)
    month = live_as_forecast(Store(MemoryShelf(), clock), clock, of=of)
    return tuple(month.looked_at)


def lives_on(address: str, of: frozenset[str] | None = None) -> None:
    clock = FakeClock(BEGIN)
    with closing(open_store(address, clock=clock)) as store:
        store.migrate()
        live_as_forecast(store, clock, minutes(of), of=of)


@pytest.mark.slow
def test_a_month_in_memory_is_as_it_was_forecast() -> None:
    assert len(minutes()) > 200


@pytest.mark.slow
def test_a_month_on_sqlite_is_as_it_was_forecast() -> None:
    lives_on("sqlite://")


@pytest.mark.slow
def test_a_month_on_postgres_is_as_it_was_forecast(postgres_url: str) -> None:
    lives_on(emptied(postgres_url))


@pytest.mark.slow
def test_a_month_on_dynamodb_is_as_it_was_forecast(dynamodb_local: DynamoDB) -> None:
    lives_on(dynamodb_local.table_url(table_name()), OF_STORES)

"""A-01 over random lives, on every store: no nominal time is missed, none is doubled."""

from collections.abc import Callable
from contextlib import closing

import pytest
from duetick.ports import Store
from duetick.stores import open_store

from tests.conformance.lives import live
from tests.conformance.memory_store import MemoryStore
from tests.lab.dynamodb import DynamoDB, table_name
from tests.lab.postgres import emptied


def opened(address: str) -> Store:
    store = open_store(address)
    store.migrate()
    return store


def each_life(opens: Callable[[], Store], lives: range) -> None:
    """Each in an empty store of its own; the same lives every time."""
    for seed in lives:
        with closing(opens()) as store:
            live(store, seed)


def test_a01_random_lives_lose_and_double_no_time_in_memory() -> None:
    each_life(MemoryStore, range(200))


def test_a01_random_lives_lose_and_double_no_time_on_sqlite() -> None:
    each_life(lambda: opened("sqlite://"), range(200))


@pytest.mark.slow
def test_a01_random_lives_lose_and_double_no_time_on_postgres(postgres_url: str) -> None:
    each_life(lambda: opened(emptied(postgres_url)), range(30))


@pytest.mark.slow
def test_a01_random_lives_lose_and_double_no_time_on_dynamodb(dynamodb_local: DynamoDB) -> None:
    each_life(lambda: opened(dynamodb_local.table_url(table_name())), range(30))

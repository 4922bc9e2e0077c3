"""A-01 over random lives, on every store: no nominal time is missed, none is doubled."""

from collections.abc import Callable
from contextlib import closing

import pytest
from duetick.core.store import Store
from duetick.stores import open_store

from tests.conformance.lives import APART, SAME, Clocks, live
from tests.conformance.memory_shelf import MemoryShelf
from tests.lab.dynamodb import DynamoDB, table_name
from tests.lab.postgres import emptied


def opened(address: str) -> Store:
    store = open_store(address)
    store.migrate()
    return store


clocks = pytest.mark.parametrize("clocks", [SAME, APART], ids=["one clock", "clocks apart"])


def each_life(opens: Callable[[], Store], lives: range, clocks: Clocks) -> None:
    """Live each life in an empty store of its own. The lives are the same every time."""
    for seed in lives:
        with closing(opens()) as store:
            live(store, seed, clocks=clocks)


@clocks
def test_a01_random_lives_lose_and_double_no_time_in_memory(clocks: Clocks) -> None:
    each_life(lambda: Store(MemoryShelf()), range(200), clocks)


@pytest.mark.slow
@clocks
def test_a01_random_lives_lose_and_double_no_time_on_sqlite(clocks: Clocks) -> None:
    each_life(lambda: opened("sqlite://"), range(200), clocks)


@pytest.mark.slow
@clocks
def test_a01_random_lives_lose_and_double_no_time_on_postgres(
    postgres_url: str, clocks: Clocks
) -> None:
    each_life(lambda: opened(emptied(postgres_url)), range(30), clocks)


@pytest.mark.slow
@clocks
def test_a01_random_lives_lose_and_double_no_time_on_dynamodb(
    dynamodb_local: DynamoDB, clocks: Clocks
) -> None:
    each_life(lambda: opened(dynamodb_local.table_url(table_name())), range(18), clocks)

"""L-01 over forty days, on every store: active, paused, done and counted schedules add up."""

from contextlib import closing

import pytest
from duetick.core.store import Store
from duetick.stores import open_store

from tests.conformance.memory_shelf import MemoryShelf
from tests.conformance.month import live_together
from tests.lab.dynamodb import DynamoDB, table_name
from tests.lab.postgres import emptied

DAYS = 40
"""Longer than what is done is kept."""


def lives_on(store: Store, users: int) -> None:
    with closing(store):
        store.migrate()
        town = live_together(store, users, DAYS, seed=7)
        left = {plan.state(town.day) for plan in town.plans.values()}
        assert left == {"active", "paused", "done"}


@pytest.mark.slow
def test_l01_users_add_up_in_memory() -> None:
    lives_on(Store(MemoryShelf()), 20)


@pytest.mark.slow
def test_l01_a_hundred_users_add_up_on_sqlite() -> None:
    lives_on(open_store("sqlite://"), 100)


@pytest.mark.slow
def test_l01_users_add_up_on_postgres(postgres_url: str) -> None:
    lives_on(open_store(emptied(postgres_url)), 20)


@pytest.mark.slow
def test_l01_users_add_up_on_dynamodb(dynamodb_local: DynamoDB) -> None:
    lives_on(open_store(dynamodb_local.table_url(table_name())), 3)

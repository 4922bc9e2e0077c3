"""Every store, driven at random beside the model."""

from collections.abc import Callable

import pytest
from duetick.core.store import Store
from duetick.stores import open_store
from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

from tests.conformance.stateful import StoreMachine
from tests.lab.dynamodb import DynamoDB, table_name
from tests.lab.postgres import emptied


def drive(address: Callable[[], str], *, runs: int, steps: int) -> None:
    """Drive each run in an empty store of its own. The runs are the same every time."""

    class Machine(StoreMachine):
        def open_store(self) -> Store:
            store = open_store(address())
            store.migrate()
            return store

    run_state_machine_as_test(
        Machine,
        settings=settings(max_examples=runs, stateful_step_count=steps),
    )


def test_sqlite_and_the_model_agree() -> None:
    drive(lambda: "sqlite://", runs=40, steps=40)


@pytest.mark.slow
def test_sqlite_and_the_model_agree_for_long() -> None:
    drive(lambda: "sqlite://", runs=100, steps=50)


@pytest.mark.slow
def test_postgres_and_the_model_agree(postgres_url: str) -> None:
    drive(lambda: emptied(postgres_url), runs=20, steps=40)


@pytest.mark.slow
def test_dynamodb_and_the_model_agree(dynamodb_local: DynamoDB) -> None:
    drive(lambda: dynamodb_local.table_url(table_name()), runs=6, steps=30)

"""All stores side by side: they always answer the same and hold the same."""

import pytest
from duetick.core.store import Store

from tests.conformance.broken import AlteredStore
from tests.conformance.broken_stores import Breaks, ForgetsWhatWasDue, OnePageOnly, schedules
from tests.conformance.memory_shelf import MemoryShelf
from tests.conformance.side_by_side import compare, opened
from tests.conformance.sides import Differs
from tests.lab.dynamodb import DynamoDB, table_name
from tests.lab.postgres import emptied


def in_memory() -> Store:
    return Store(MemoryShelf())


def test_memory_agrees_with_sqlite() -> None:
    compare({"SQLite": lambda: opened("sqlite://"), "memory": in_memory}, range(20), steps=60)


@pytest.mark.slow
def test_all_stores_agree(postgres_url: str, dynamodb_local: DynamoDB) -> None:
    opens = {
        "SQLite": lambda: opened("sqlite://"),
        "Postgres": lambda: opened(emptied(postgres_url)),
        "DynamoDB": lambda: opened(dynamodb_local.table_url(table_name())),
    }
    # In the world of seed 137 a clock that is behind begins what a minute later is lost.
    compare(opens, [*range(6), 137], steps=60)


BREAKS: dict[str, Breaks] = {
    "list": schedules(OnePageOnly),
    "the ledger": schedules(ForgetsWhatWasDue),
}
"""Broken stores, by the question that shows the defect."""


@pytest.mark.parametrize("question", BREAKS)
def test_a_broken_store_beside_a_right_one_is_told(question: str) -> None:
    """The message names the world, its last event, and the difference."""

    def broken() -> Store:
        store = AlteredStore()
        store.migrate()
        BREAKS[question](store)
        return store

    with pytest.raises(Differs, match=f"right and broken answer '{question}") as differs:
        compare({"right": lambda: opened("sqlite://"), "broken": broken}, range(40), steps=60)
    [world] = differs.value.__notes__
    assert world.startswith("in the world of seed ")
    assert len(world.splitlines()) > 1
    assert [line[0] for line in str(differs.value).splitlines()[1:4]] == ["-", "+", "@"]

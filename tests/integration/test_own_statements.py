"""A statement of an action's own that fails is said to be its own: nobody is sent to migrate."""

from collections.abc import Iterator

import pytest
from duetick.domain.errors import EffectsRefused
from duetick.domain.schedule import Occurrence
from duetick.ports import Begun, Store
from duetick.stores import open_store

NOON = 1_800_014_400_000
WRONG = {
    "no such table": "INSERT INTO no_table_of_mine VALUES (1)",
    "no SQL": "SELEKT 1",
    "twice": "INSERT INTO mine VALUES (1), (1)",
}


@pytest.fixture(params=["sqlite", "postgres"])
def store(request: pytest.FixtureRequest) -> Iterator[Store]:
    sqlite = request.param == "sqlite"
    store = open_store("sqlite://" if sqlite else request.getfixturevalue("postgres_url"))
    store.migrate()
    yield store
    store.close()


def run(store: Store, name: str, *statements: str) -> Occurrence:
    """Run them in the transaction that settles a run by hand; the run."""
    asked = Occurrence("ada", name, "", None, NOON, origin="run:1", due_at=NOON)
    begun = store.ledger.begin(asked, now=NOON)
    assert isinstance(begun, Begun)
    with store.ledger.settling(begun.occurrence, lambda: NOON) as effects:
        for statement in statements:
            effects.run(statement)
    return begun.occurrence


@pytest.mark.parametrize("wrong", list(WRONG))
def test_t04_a_statement_that_fails_is_told_as_the_actions_own(store: Store, wrong: str) -> None:
    run(store, "table", "CREATE TABLE mine (id integer PRIMARY KEY)")
    with pytest.raises(EffectsRefused, match="Your own statement failed"):
        run(store, "wrong", "INSERT INTO mine VALUES (7)", WRONG[wrong])
    run(store, "empty", "INSERT INTO mine VALUES (7)")

"""The failure of an action's own statement is named as that: nobody is sent to migrate."""

from collections.abc import Iterator
from contextlib import suppress

import pytest
from duetick.core.store import Store
from duetick.domain.attempts import Begun
from duetick.domain.errors import DuetickError, EffectsRefused
from duetick.domain.schedule import NewOccurrence, Occurrence
from duetick.domain.states import State
from duetick.stores import open_store
from duetick.stores.postgres.shelf import PostgresShelf
from duetick.testing.conformance.suite import run as run_at_once

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
    begun = begin(store, name)
    with store.ledger.settling(begun, lambda: NOON) as effects:
        for statement in statements:
            effects.run(statement)
    return begun


def run_on(store: Store, name: str, *statements: str) -> None:
    """Run each of the statements, even if one fails."""
    with store.ledger.settling(begin(store, name), lambda: NOON) as effects:
        for statement in statements:
            with suppress(EffectsRefused):
                effects.run(statement)


def begin(store: Store, name: str) -> Occurrence:
    """Return a run by hand that is under way."""
    asked = NewOccurrence("ada", name, "", None, NOON, origin="run:1", due_at=NOON)
    begun = run_at_once(store, asked, NOON)
    assert isinstance(begun, Begun)
    return begun.occurrence


@pytest.mark.parametrize("wrong", list(WRONG))
def test_t04_a_statement_that_fails_is_told_as_the_actions_own(store: Store, wrong: str) -> None:
    run(store, "table", "CREATE TABLE mine (id integer PRIMARY KEY)")
    with pytest.raises(EffectsRefused, match="Your own statement failed"):
        run(store, "wrong", "INSERT INTO mine VALUES (7)", WRONG[wrong])
    run(store, "empty", "INSERT INTO mine VALUES (7)")


@pytest.mark.parametrize(
    "own",
    [
        "WITH one AS (SELECT 1 AS id) INSERT INTO mine SELECT id FROM one",
        "/* which */ SELECT CASE WHEN 1 = 1 THEN 1 /* done */ END",
        "/* mine */ UPDATE mine /* all */ SET id = 2",
        "-- COMMIT\n/* ROLLBACK */ SELECT 1",
        "/* a line of a long heading */\n" * 40 + "SELECT 1",
    ],
)
def test_t04_what_only_looks_like_an_end_runs(store: Store, own: str) -> None:
    run(store, "table", "CREATE TABLE mine (id integer PRIMARY KEY)", own)


def test_t04_a_body_that_has_its_own_begin_runs(store: Store) -> None:
    body = "CREATE TRIGGER noted AFTER INSERT ON mine /* each */ BEGIN SELECT 1; END"
    if isinstance(store.shelf, PostgresShelf):
        body = "DO /* once */ $$ /* body */ BEGIN PERFORM 1; END $$"
    run(store, "table", "CREATE TABLE mine (id integer)", f"/* own */ {body}")


def test_t04_a_transaction_that_its_own_statement_undid_is_not_settled(store: Store) -> None:
    """SQLite undoes the whole transaction if it is told to, and goes on as if none were open."""
    run(store, "table", "CREATE TABLE mine (id integer PRIMARY KEY)")
    insert = "INSERT" if isinstance(store.shelf, PostgresShelf) else "INSERT OR ROLLBACK"
    with pytest.raises(DuetickError):
        run_on(store, "undone", "INSERT INTO mine VALUES (7)", f"{insert} INTO mine VALUES (7)")
    (held,) = store.ledger.find("ada", "undone")
    assert held.state is State.PROCESSING

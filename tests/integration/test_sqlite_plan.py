"""The reads of SQLite: by its indexes, however long the history is (I-11)."""

import sqlite3
from collections.abc import Iterator

import pytest
from duetick.stores.sql.queries import load
from duetick.stores.sqlite.database import leave_out_names
from duetick.stores.sqlite.shelf import open_sqlite


@pytest.fixture
def connection() -> Iterator[sqlite3.Connection]:
    made = sqlite3.connect(":memory:")
    shelf = open_sqlite(lambda: made)
    shelf.migrate()
    yield made
    shelf.close()


def plan(connection: sqlite3.Connection, name: str) -> str:
    sql = leave_out_names(load("sqlite")[name]).sql
    rows = connection.execute(f"EXPLAIN QUERY PLAN {sql}", ["[]"] * sql.count("?"))
    return "\n".join(str(row[3]) for row in rows)


@pytest.mark.parametrize(
    "name", ["occurrence_begin", "occurrences_in_place", "occurrences_due", "retries_reserve"]
)
def test_i11_who_is_in_place_is_found_by_the_index_of_places(
    connection: sqlite3.Connection, name: str
) -> None:
    assert "USING INDEX idx_occurrences_place (user_id=? AND key=?" in plan(connection, name)


@pytest.mark.parametrize("name", ["occurrences_due", "occurrences_due_unheld", "retries_reserve"])
def test_i11_retries_that_are_due_are_found_by_the_index_of_those_that_wait(
    connection: sqlite3.Connection, name: str
) -> None:
    read = plan(connection, name)
    assert "USING INDEX idx_occurrences_waiting (due_at<?)" in read
    assert "SCAN o\n" not in read


@pytest.mark.parametrize("name", ["occurrences_lease_over", "occurrences_lease_over_within"])
def test_i11_leases_that_are_over_are_found_by_their_index(
    connection: sqlite3.Connection, name: str
) -> None:
    read = plan(connection, name)
    assert "USING INDEX idx_occurrences_leased (lease_until<?)" in read
    assert "SCAN o\n" not in read


@pytest.mark.parametrize(
    ("name", "index"),
    [
        ("occurrence_named", "idx_occurrences_id (id=?)"),
        ("occurrences_dead", "idx_occurrences_dead"),
        ("occurrences_waiting", "idx_occurrences_waiting"),
        ("occurrences_leased", "idx_occurrences_leased"),
    ],
)
def test_o05_what_operators_ask_of_all_users_is_read_by_an_index(
    connection: sqlite3.Connection, name: str, index: str
) -> None:
    assert f"USING INDEX {index}" in plan(connection, name)

"""The claim of a large chunk on SQLite: one INSERT takes many of its rows."""

import sqlite3
from collections.abc import Iterator

import pytest
from duetick.core.store import Store
from duetick.domain.occurrence import IndexRow
from duetick.stores.sqlite.database import TOGETHER, SqliteSession, check_order
from duetick.stores.sqlite.shelf import open_sqlite

NOON = 1_800_014_400_000
DUE = 2 * TOGETHER + TOGETHER // 2
"""Rows for two whole INSERTs, and some that go one by one."""


@pytest.fixture
def connection() -> Iterator[sqlite3.Connection]:
    made = sqlite3.connect(":memory:")
    yield made
    made.close()


@pytest.fixture
def store(connection: sqlite3.Connection) -> Store:
    made = Store(open_sqlite(lambda: connection), lambda: NOON)
    made.migrate()
    for number in range(DUE):
        made.index.upsert(IndexRow(f"user{number}", "digest", "0 12 * * *", None, NOON))
    return made


def test_i04_a_chunk_of_hundreds_records_each_row_once(
    store: Store, connection: sqlite3.Connection
) -> None:
    claimed = store.index.claim_due(NOON, DUE)
    recorded = connection.execute("SELECT user_id, id FROM occurrences").fetchall()
    assert len(claimed) == DUE
    assert {(one.user_id, one.id) for one in claimed} == {*recorded}


def test_j13_a_chunk_of_hundreds_hands_out_none_that_was_recorded_before(
    store: Store, connection: sqlite3.Connection
) -> None:
    first = store.index.claim_due(NOON, 3)
    connection.execute("UPDATE schedule_index SET next_fire_at = ?, mark = NULL", [NOON])
    connection.commit()
    again = store.index.claim_due(NOON, DUE)
    assert len(again) == DUE - len(first)
    assert {one.user_id for one in first}.isdisjoint(one.user_id for one in again)


def test_values_in_another_order_than_the_statements_are_refused(
    connection: sqlite3.Connection,
) -> None:
    session = SqliteSession(connection)
    with pytest.raises(ValueError, match="in the order of the statement"):
        session.every("claim_advance", ("user_id", "key", "next_at", "mark"), [])
    assert check_order("SELECT :a, :b", ("a", "b")) == "SELECT ?, ?"

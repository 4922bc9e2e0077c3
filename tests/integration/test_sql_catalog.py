"""I-09 to I-11 on SQL: the catalog has what they say, and a claim reads a range of its index."""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from duetick.core.deployment import deploy
from duetick.core.flows import Flows
from duetick.domain.errors import SchemaOutdated
from duetick.domain.schedule import IndexRow
from duetick.stores import open_store
from duetick.stores.sql.queries import load
from duetick.testing.conformance.samples import MINUTE, NOON

from tests.lab.postgres import connect

COLUMNS = {
    "user_id": ("text", False),
    "key": ("text", False),
    "cron": ("text", False),
    "timezone": ("text", True),
    "next_fire_at": ("bigint", False),
}
"""Of each its type, and whether it may be NULL."""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "duetick.db"


@pytest.fixture
def catalog(file: Path) -> Iterator[sqlite3.Connection]:
    store = open_store(f"sqlite:///{file}")
    store.migrate()
    store.close()
    with closing(sqlite3.connect(file)) as connection:
        yield connection


def test_i09_on_sqlite_the_index_is_a_flat_table_of_its_own(catalog: sqlite3.Connection) -> None:
    found = {
        name: (kind.lower().replace("integer", "bigint"), not required)
        for _, name, kind, required, *_ in catalog.execute("PRAGMA table_info(schedule_index)")
    }
    assert found.items() >= COLUMNS.items()


def test_i09_on_sqlite_the_index_is_keyed_by_user_and_key_without_a_rowid(
    catalog: sqlite3.Connection,
) -> None:
    columns = catalog.execute("PRAGMA table_info(schedule_index)").fetchall()
    keyed = sorted((place, name) for _, name, _, _, _, place in columns if place)
    assert keyed == [(1, "user_id"), (2, "key")]
    with pytest.raises(sqlite3.OperationalError, match="rowid"):
        catalog.execute("SELECT rowid FROM schedule_index")


def test_i09_on_sqlite_next_times_have_the_index_that_is_named(
    catalog: sqlite3.Connection,
) -> None:
    found = catalog.execute("PRAGMA index_info(idx_schedule_index_next_fire_at)").fetchall()
    assert [name for _, _, name in found] == ["next_fire_at"]


@pytest.mark.slow
def test_i09_on_postgres_the_index_is_a_flat_table_of_its_own(postgres_url: str) -> None:
    store = open_store(postgres_url)
    store.migrate()
    store.close()
    with connect(postgres_url) as connection:
        rows = connection.run(
            "SELECT column_name, data_type, is_nullable = 'YES' FROM information_schema.columns "
            "WHERE table_name = 'schedule_index'"
        )
        indexes = dict(
            connection.run(
                "SELECT indexname, indexdef FROM pg_indexes WHERE tablename = 'schedule_index'"
            )
        )
    assert {name: (kind, null) for name, kind, null in rows}.items() >= COLUMNS.items()
    assert "(user_id, key)" in indexes["schedule_index_pkey"]
    assert "(next_fire_at)" in indexes["idx_schedule_index_next_fire_at"]


def test_i10_opening_a_file_makes_no_table(file: Path) -> None:
    store = open_store(f"sqlite:///{file}")
    with pytest.raises(SchemaOutdated, match="duetick migrate"):
        store.index.claim_due(NOON)
    store.close()
    with closing(sqlite3.connect(file)) as connection:
        assert connection.execute("SELECT name FROM sqlite_master").fetchall() == []


def gone(url: str, drop: Callable[[], object]) -> str:
    """Return a deployment's error for a database whose tables were dropped since the last one."""
    store, waited = open_store(url), list[float]()
    store.migrate()
    store.check_schema()
    drop()
    with pytest.raises(SchemaOutdated) as problem:
        deploy(store, lambda: Flows({}), patience=280.0, elapsed=lambda: 0.0, sleep=waited.append)
    store.close()
    assert waited == []
    return str(problem.value)


GONE = "Tables of the schema are gone: occurrences, events. Restore the database from a backup."


def test_i10_on_sqlite_tables_that_are_gone_are_told_as_that_at_once(file: Path) -> None:
    def drop() -> None:
        with closing(sqlite3.connect(file)) as connection:
            connection.executescript("DROP TABLE occurrences; DROP TABLE events")

    assert gone(f"sqlite:///{file}", drop).startswith(GONE)


def test_i10_on_postgres_tables_that_are_gone_are_told_as_that_at_once(postgres_url: str) -> None:
    def drop() -> None:
        with connect(postgres_url) as connection:
            connection.run("DROP TABLE occurrences, events CASCADE")

    assert gone(postgres_url, drop).startswith(GONE)


def test_i11_on_sqlite_a_claim_reads_a_range_of_the_index(catalog: sqlite3.Connection) -> None:
    query = f"EXPLAIN QUERY PLAN {load('sqlite')['claim_select']}"
    plan = catalog.execute(query, {"until": NOON, "limit": 100, "leave_out": "[]"}).fetchall()
    first, *others = (step[-1] for step in plan)
    assert "idx_schedule_index_next_fire_at (next_fire_at<?)" in first
    assert [step.split()[:2] for step in others] == [["LIST", "SUBQUERY"], ["SCAN", "json_each"]]


def test_i11_of_ten_thousand_schedules_about_forty_are_due_in_two_minutes() -> None:
    """1,000 hourly, 5,000 daily, 4,000 weekly, spread evenly: 33.3 + 6.9 + 0.8."""
    store = open_store("sqlite://")
    store.migrate()
    spread = [("hourly", 1_000, 60), ("daily", 5_000, 1_440), ("weekly", 4_000, 10_080)]
    for name, count, minutes in spread:
        for number in range(count):
            at = NOON + (number * minutes // count) * MINUTE
            cron = f"{number * minutes // count % 60} * * * *"
            store.index.upsert(IndexRow("ada", f"{name}-{number}", cron, None, at))
    found = store.index.claim_due(NOON + MINUTE, 1_000)
    store.close()
    assert len(found) == pytest.approx(41, abs=4)

"""The reads of a long history: ranges of indexes, however much stays (J-10)."""

import json
import re
import sqlite3
from collections.abc import Iterator

import pytest
from duetick.stores import open_store
from duetick.stores.postgres.database import BEGIN, CLAIMING
from duetick.stores.postgres.wire import Wire
from duetick.stores.sql.queries import load
from duetick.stores.sqlite.shelf import open_sqlite

from tests.benchmarks.retention import DAY, NOON, fill
from tests.lab.postgres import connect

ROWS = 20_000
NAME = ("eu-central-1:0f0e4d5c-7", "followup", 1, "schedule", 2)
PURGING = ("retire_ended", "retire_kept", "retire_newest", "retire_held")
WRITING = ("retire_occurrences", "retire_events", "retire_later", "held_of_schedule")
EVERYDAY = (
    *("occurrence_begin", "occurrence_move_leased", "occurrences_in_place"),
    *("occurrences_of_schedule", "occurrences_of_user", "schedule_get"),
)
FORECASTING = ("alike_rows", "alike_rows_of_user")


def params_of(query: str) -> dict[str, str | int | None]:
    """Return a value for each parameter, of the kind that it has."""
    known: dict[str, str | int | None] = {
        "user_id": NAME[0],
        "key": NAME[1],
        "origin": "schedule",
        "leave_out": "[]",
        **dict.fromkeys(("names", "identities", "later"), json.dumps([NAME])),
        **dict.fromkeys(("flow", "state", "reason", "error", "told", "policies", "note"), "failed"),
        **dict.fromkeys(("after_user", "after_key", "after_origin"), ""),
        "ended_before": NOON - 30 * DAY,
        "held": 10**15,
    }
    names = set(re.findall(r"(?<!:):([a-z_]+)", query))
    return {name: known.get(name, 1) for name in names}


@pytest.fixture(scope="module")
def sqlite() -> Iterator[sqlite3.Connection]:
    made = sqlite3.connect(":memory:")
    shelf = open_sqlite(lambda: made)
    shelf.migrate()
    fill(made.execute, ROWS)
    made.execute("ANALYZE")
    yield made
    shelf.close()


@pytest.mark.parametrize("name", [*PURGING, *WRITING, *EVERYDAY, *FORECASTING])
def test_j10_no_query_of_sqlite_reads_the_whole_history(
    sqlite: sqlite3.Connection, name: str
) -> None:
    query = load("sqlite")[name]
    rows = sqlite.execute(f"EXPLAIN QUERY PLAN {query}", params_of(query))
    read = "\n".join(str(row[3]) for row in rows)
    assert not re.search(r"SCAN (o|occurrences|events|schedules|s|i|u)\b", read), read


def test_j10_what_ended_is_found_by_its_end_on_sqlite(sqlite: sqlite3.Connection) -> None:
    query = load("sqlite")["retire_ended"]
    rows = sqlite.execute(f"EXPLAIN QUERY PLAN {query}", params_of(query))
    assert "USING INDEX idx_occurrences_ended (updated_at<?)" in " ".join(r[3] for r in rows)


def test_j10_what_waits_is_counted_by_the_indexes_of_what_has_not_ended_on_sqlite(
    sqlite: sqlite3.Connection,
) -> None:
    query = load("sqlite")["waiting_alike"]
    rows = [row[3] for row in sqlite.execute(f"EXPLAIN QUERY PLAN {query}", params_of(query))]
    assert "SEARCH o USING INDEX idx_occurrences_waiting (due_at<?)" in rows
    assert "SCAN o USING INDEX idx_occurrences_leased" in rows
    assert [one for one in rows if one.startswith("SCAN occurrences")] == []


def test_j10_no_query_of_postgres_reads_the_whole_history(postgres_url: str) -> None:
    """One database for all of them, for it takes a while to fill."""
    store_on(postgres_url)
    for opening, names in (
        (BEGIN, (*EVERYDAY, *FORECASTING, "waiting_alike")),
        (CLAIMING, (*PURGING, *WRITING)),
    ):
        wire = Wire(connect(postgres_url))
        wire.begin(opening)
        for name in names:
            read = plan(wire, name)
            assert "Seq Scan on occurrences" not in read, f"{name}: {read}"
            if name == "retire_ended":
                assert "Index Scan using idx_occurrences_ended" in read
                assert "Sort" not in read
            if name == "retire_newest":
                assert read.count("Scan Backward using occurrences_pkey") == 2
        wire.close()


def store_on(url: str) -> None:
    """Fill a database, and gather its statistics."""
    store = open_store(url)
    store.migrate()
    store.close()
    with connect(url) as connection:
        fill(connection.run, ROWS)
        connection.run("ANALYZE")


def plan(wire: Wire, name: str) -> str:
    query = load("postgres")[name]
    rows = wire.run(f"EXPLAIN {query}", params_of(query))
    return "\n".join(str(row[0]) for row in rows)

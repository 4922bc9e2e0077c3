"""The reads of a claim: a range of its index under any statistics (I-11)."""

from collections.abc import Iterator

import pytest
from duetick.stores.postgres import claim
from duetick.stores.postgres.database import CLAIMING
from duetick.stores.postgres.wire import Wire
from duetick.stores.sql.queries import load

from tests.benchmarks.postgres_data import FAR, START, Table
from tests.lab.postgres import connect

ROWS = 20_000
SENT = (*claim.SENT, "stem", "next_at", "marks", "done", "done_marks")
PLACES = claim.tids(f"({page},1)" for page in range(100))


@pytest.fixture
def table(postgres_url: str) -> Table:
    return Table(postgres_url, ROWS).filled()


@pytest.fixture
def wire(postgres_url: str) -> Iterator[Wire]:
    wire = Wire(connect(postgres_url))
    wire.begin(CLAIMING)
    yield wire
    wire.close()


def plan(wire: Wire, name: str, params: dict[str, str | int | None]) -> str:
    rows = wire.run(f"EXPLAIN {load('postgres')[name]}", params)
    return "\n".join(str(row[0]) for row in rows)


def misled(table: Table, told: int, now: int) -> None:
    """Gather statistics while every row is due at `told`, then move the rows to `now`."""
    with connect(table.url) as connection:
        connection.run("UPDATE schedule_index SET next_fire_at = :told", told=told)
        connection.run("ANALYZE schedule_index")
        connection.run("UPDATE schedule_index SET next_fire_at = :now", now=now)


@pytest.mark.parametrize(("told", "now"), [(START, FAR), (FAR, START), (START, START)])
@pytest.mark.parametrize("limit", [1, 100, 1_000, 5_000])
def test_i11_statistics_that_mislead_do_not_change_how_due_rows_are_read(
    table: Table, wire: Wire, told: int, now: int, limit: int
) -> None:
    misled(table, told, now)
    for query in ("claim_select", "claim_read"):
        until = {"from": claim.LOWEST, "until": START}
        read = plan(wire, query, {**until, "limit": limit, "leave_out": "[]"})
        assert "Index Scan using idx_schedule_index_next_fire_at" in read
        assert "Sort" not in read
        assert "Seq Scan" not in read


def test_i11_rows_are_written_by_their_place(table: Table, wire: Wire) -> None:
    misled(table, FAR, START)
    params: dict[str, str | int | None] = {
        **dict.fromkeys(SENT, claim.EMPTY),
        **{f"{name}_of_all": None for name in claim.SENT},
        "places": PLACES,
        "advanced": PLACES,
        "now": START,
    }
    read = plan(wire, "claim_write", params)
    assert read.count("Tid Scan on schedule_index") == 4
    assert "Seq Scan" not in read
    assert "Index Scan" not in read


def test_i11_a_chunk_without_locks_is_written_by_place_and_version(
    table: Table, wire: Wire
) -> None:
    misled(table, FAR, START)
    params: dict[str, str | int | None] = {
        **dict.fromkeys(
            (*SENT, "words", "versions", "lists", "serials", "first", "last"), claim.EMPTY
        ),
        **{f"{name}_of_all": None for name in claim.SENT},
        "places": PLACES,
        "now": START,
    }
    read = plan(wire, "claim_advance", params)
    assert read.count("Tid Scan on schedule_index") == 1
    assert "xmin = r.version" in read
    for wrong in ("Seq Scan", "Index Scan", "Hash Join", "Sort"):
        assert wrong not in read


def test_i11_rows_that_are_locked_after_they_were_read_are_found_by_place(
    table: Table, wire: Wire
) -> None:
    misled(table, FAR, START)
    read = plan(wire, "claim_lock", {"places": PLACES, "versions": claim.EMPTY})
    assert "Tid Scan on schedule_index" in read
    assert "Seq Scan" not in read


def test_i11_ranges_are_verified_by_name_and_time(table: Table, wire: Wire) -> None:
    misled(table, FAR, START)
    names = '["user-1", "user-2"]'
    times = {"first": claim.array([0, 0]), "last": claim.array([1, 1])}
    read = plan(wire, "claim_verify", {"users": names, "keys": names, **times})
    assert "occurrences_pkey" in read
    assert "AND (nominal_at > r.first) AND (nominal_at <= r.last)" in read.split("Index Cond")[1]
    assert "Seq Scan" not in read


def test_i11_a_look_reads_the_ends_of_indexes(table: Table, wire: Wire) -> None:
    misled(table, FAR, START)
    read = plan(wire, "look", {"now": START, "ahead": 0, "note": "witness"})
    assert "using idx_schedule_index_next_fire_at" in read
    assert "using idx_occurrences_leased" in read
    assert "using idx_occurrences_waiting" in read


def test_i11_what_is_known_of_ranges_is_looked_up_by_name_and_time(
    table: Table, wire: Wire
) -> None:
    misled(table, FAR, START)
    times = claim.array([0] * 100)
    read = plan(wire, "claim_known", {"places": PLACES, "first": times, "last": times})
    assert "Tid Scan on schedule_index" in read
    assert "occurrences_pkey" in read
    assert "AND (nominal_at >= r.first) AND (nominal_at <= r.last)" in read.split("Index Cond")[1]
    assert "Seq Scan" not in read


@pytest.mark.usefixtures("table")
def test_j07_an_occurrence_is_found_by_the_index_of_ids(wire: Wire) -> None:
    assert "Scan using idx_occurrences_id" in plan(wire, "occurrence_named", {"id": "occ_1"})

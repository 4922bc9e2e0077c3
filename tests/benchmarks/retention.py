"""What a purge costs, and what stays: `python -m tests.benchmarks.retention`.

    python -m tests.benchmarks.retention            # all three
    python -m tests.benchmarks.retention --only size

- *size*: days of fires, scaled to a thousandth of 100 a second for a month: each day's fires are
  claimed, begun and settled in a few chunks, then purged at its end, with a retention of `KEPT`
  days. It prints the size of the database after each day. A size is steady if it no longer grows
  once the retention is reached.
- *beside*: ticks that claim, begin and settle a hundred each, alone and while a million rows are
  purged, in turns in one run, on Postgres and SQLite.
- *plans*: with a million in the history, the plans of claim, begin, settle, purge and pages.
"""

import argparse
import sqlite3
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from itertools import count, islice
from pathlib import Path
from statistics import median
from typing import Final

from duetick.core.purge import purge, purge_within
from duetick.core.store import Store
from duetick.domain.attempts import SUCCEEDED, Begun
from duetick.domain.retention import Days, Retention
from duetick.domain.schedule import Schedule
from duetick.stores import open_store
from duetick.stores.postgres.database import BEGIN, CLAIMING
from duetick.stores.postgres.wire import Wire
from duetick.stores.sql.queries import load

from tests.benchmarks.postgres_claim import DURABLE
from tests.lab.postgres import EmbeddedPostgres, connect

DAY: Final = 86_400_000
MINUTE: Final = 60_000
NOON: Final = 1_800_014_400_000
MILLION: Final = 1_000_000
KEPT: Final = 5
DAYS: Final = 15
OF_A_DAY: Final = 8_640
"""A thousandth of the fires of a day at 100 a second."""

SCHEDULES: Final = 360
TICKED: Final = 100
ROUNDS: Final = 30
SHORT: Final = Retention(Days(KEPT, KEPT))

HISTORY: Final = """
INSERT INTO occurrences (user_id, key, nominal_at, origin, id, cron, flow, state, reason, due_at,
    attempts, priority, fence, exclusive, redefined_at, count, created_at, begun_at, updated_at)
WITH RECURSIVE numbers AS (SELECT 0 AS n UNION ALL SELECT n + 1 FROM numbers WHERE n + 1 < {rows})
SELECT 'eu-central-1:0f0e4d5c-' || (n % 2000), 'followup', {first} + (n / 2000) * {step},
    'schedule', 'occ_' || n, '*/10 * * * *', 'reminders', 'succeeded', 'fired', {first}, 1, 0, 1,
    1, 0, 1,
    {first} + (n / 2000) * {step}, {first} + (n / 2000) * {step},
    {first} + (n / 2000) * {step} + 900
FROM numbers
"""


ROWS: Final = """
INSERT INTO schedule_index (user_id, key, cron, next_fire_at)
SELECT DISTINCT user_id, key, cron, {far} FROM occurrences
"""


def fill(run: Callable[[str], object], rows: int) -> None:
    """Write a history of so many, which ended long before noon, of schedules that fire on."""
    run(HISTORY.format(rows=rows, first=NOON - 400 * DAY, step=MINUTE))
    run(ROWS.format(far=NOON + 400 * DAY))


def put(store: Store, schedules: int, cron: str) -> None:
    """Put so many schedules."""
    for number in range(schedules):
        made = Schedule(f"user{number}", "digest", cron, "reminders", "send")
        store.schedules.put(made, now=NOON - 1)


def fire(store: Store, now: int) -> int:
    """Claim all that is due, begin and settle it. Return how many."""
    fired = 0
    while claimed := store.index.claim_due(now, limit=1_000):
        begun = [store.ledger.begin(one, now=now) for one in claimed]
        for one in begun:
            if isinstance(one, Begun):
                store.ledger.settle(one.occurrence, SUCCEEDED, now=now)
        fired += len(claimed)
    return fired


def grow(store: Store, size: Callable[[], int], tidy: Callable[[], object]) -> list[int]:
    """Fire for days, and purge at the end of each. Return the size after each day."""
    put(store, SCHEDULES, "0 * * * *")
    sizes = []
    for day in range(DAYS):
        for hour in range(24):
            fire(store, NOON + day * DAY + hour * 3_600_000)
        purge_all(store, NOON + (day + 1) * DAY)
        tidy()
        sizes.append(size())
    return sizes


def purge_all(store: Store, now: int) -> int:
    """Purge a story's day until nothing is left. Return how many occurrences left."""
    left = 0
    while True:
        done = purge(store, now, 1_000, retention=SHORT)
        left += done.retired
        if not done.more:
            return left


def purge_resting(store: Store) -> int:
    """Purge as the hourly work does. Return how many occurrences left."""
    done = purge_within(3_600, store, retention=SHORT, now=lambda: NOON, rest=time.sleep)
    return done.retired if done else 0


def show_sizes(name: str, sizes: Sequence[int]) -> None:
    """Print them, and how much the last day is above the first one that could be steady."""
    megabytes = " ".join(f"{size / 2**20:.1f}" for size in sizes)
    print(f"{name}: MB after each day: {megabytes}")
    print(f"{name}: last day / day {KEPT + 2}: {sizes[-1] / sizes[KEPT + 1]:.2f}", flush=True)


def tick_seconds(store: Store, minute: int) -> float:
    """Return the time of one tick's work: a hundred are claimed, begun and settled."""
    began = time.perf_counter()
    assert fire(store, NOON + minute * MINUTE) == TICKED
    return time.perf_counter() - began


def beside(name: str, store: Store, other: Store, rows: int) -> None:
    """Compare ticks alone with ticks while another connection purges."""
    put(store, TICKED, "* * * * *")
    minutes = count()
    for minute in islice(minutes, 3):
        tick_seconds(store, minute)
    alone = [tick_seconds(store, minute) for minute in islice(minutes, ROUNDS)]
    done: list[int] = []
    began = time.perf_counter()
    purging = threading.Thread(target=lambda: done.append(purge_resting(other)))
    purging.start()
    busy = []
    while purging.is_alive():
        busy.append(tick_seconds(store, next(minutes)))
    purging.join()
    took = time.perf_counter() - began
    after = [tick_seconds(store, minute) for minute in islice(minutes, ROUNDS)]
    slower = median(busy) / median([*alone, *after])
    print(
        f"{name}: a tick of {TICKED} {median([*alone, *after]) * 1e3:.0f} ms alone, "
        f"{median(busy) * 1e3:.0f} ms beside the purge of {done[0]:,} of {rows:,} "
        f"({took:.0f} s, {done[0] / took:,.0f} a second): {slower:.2f} times, "
        f"{len(busy)} ticks, the slowest {max(busy) * 1e3:.0f} ms",
        flush=True,
    )


def postgres_plans(url: str) -> None:
    """Print how each query of the everyday and of the purge reads a history of a million."""
    with connect(url) as connection:
        connection.run("ANALYZE")
    name = {"user_id": "eu-central-1:0f0e4d5c-7", "key": "followup", "origin": "schedule"}
    values = {
        **name, "nominal_at": NOON, "fence": 1, "now": NOON, "flow": "", "usual_lease_ms": 60_000,
        "state": "", "reason": "fired", "error": None, "told": None, "limit": 1_000, "until": NOON,
        "ended_before": NOON - 30 * DAY, "before": NOON, "after_user": "", "after_key": "",
        "after_origin": "", "leave_out": "[]", "from": 0, "beyond": 19, "held": 10**15,
        "names": '[["eu-central-1:0f0e4d5c-7", "followup", 1]]',
        "identities": '[["eu-central-1:0f0e4d5c-7", "followup", 1, "schedule"]]',
        "later": '[["eu-central-1:0f0e4d5c-7", "followup", 1, "schedule", 2]]',
    }  # fmt: skip
    everyday = (
        *("occurrence_begin", "occurrence_move_leased"),
        *("occurrences_of_schedule", "occurrences_of_user"),
    )
    purging = (
        *("claim_select", "retire_ended", "retire_kept", "retire_newest", "retire_held"),
        *("retire_events", "retire_occurrences", "retire_later"),
    )
    asked = {BEGIN: everyday, CLAIMING: purging}
    for opening, names in asked.items():
        with closing(Wire(connect(url))) as wire:
            wire.begin(opening)
            for query in names:
                rows = wire.run(f"EXPLAIN {load('postgres')[query]}", values)
                plan = "\n".join(str(row[0]) for row in rows)
                scans = [line.strip() for line in plan.splitlines() if " on occurrences" in line]
                kind = "a scan of the table!" if "Seq Scan on occurrences" in plan else "indexes"
                print(f"Postgres, {query}: {kind}; {'; '.join(scans)[:160]}", flush=True)


def on_postgres(wanted: Callable[[str], bool], rows: int) -> None:
    """On a server of its own, with durable commits."""
    server = EmbeddedPostgres(DURABLE)
    try:
        with closing(open_store(server.url)) as store:
            store.migrate()
            if wanted("size"):
                show_sizes("Postgres", grow(store, lambda: _size(server.url), lambda: None))
                _empty(server.url)
            if wanted("beside") or wanted("plans"):
                with connect(server.url) as connection:
                    fill(connection.run, rows)
                    connection.run("VACUUM ANALYZE")
            if wanted("plans"):
                postgres_plans(server.url)
            if wanted("beside"):
                with closing(open_store(server.url)) as other:
                    beside("Postgres", store, other, rows)
    finally:
        server.remove()


def _empty(url: str) -> None:
    with connect(url) as connection:
        connection.run("TRUNCATE occurrences, schedules, schedule_index, definitions, marks")


def _size(url: str) -> int:
    with connect(url) as connection:
        connection.run("VACUUM")  # autovacuum comes by the clock: days here are seconds
        ((size,),) = connection.run(
            "SELECT sum(pg_total_relation_size(c.oid)) FROM pg_class c "
            "WHERE c.relkind = 'r' AND c.relnamespace = 'public'::regnamespace"
        )
    return int(size)


def on_sqlite(wanted: Callable[[str], bool], rows: int) -> None:
    """In files, with full sync."""
    with tempfile.TemporaryDirectory() as folder:
        if wanted("size"):
            path = Path(folder) / "size.db"
            with closing(open_store(f"sqlite:///{path}")) as store:
                store.migrate()
                show_sizes("SQLite", grow(store, lambda: path.stat().st_size, lambda: None))
        if wanted("beside"):
            path = Path(folder) / "beside.db"
            with closing(open_store(f"sqlite:///{path}")) as store:
                store.migrate()
                with closing(sqlite3.connect(path)) as connection, connection:
                    fill(connection.execute, rows)
                with closing(open_store(f"sqlite:///{path}")) as other:
                    beside("SQLite", store, other, rows)


def main() -> None:
    """See the module's own words."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=("size", "beside", "plans"))
    parser.add_argument("--on", choices=("sqlite", "postgres"))
    parser.add_argument("--rows", type=int, default=MILLION)
    given = parser.parse_args()

    def wanted(part: str) -> bool:
        return given.only in (None, part)

    if given.on != "postgres":
        on_sqlite(wanted, given.rows)
    if given.on != "sqlite":
        on_postgres(wanted, given.rows)


if __name__ == "__main__":
    main()

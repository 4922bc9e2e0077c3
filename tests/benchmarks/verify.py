"""Verify of a million occurrences on Postgres and SQLite: `python -m tests.benchmarks.verify`.

    python -m tests.benchmarks.verify --schedules 10000 --times 100

Each schedule fires each hour, and each of its times has an outcome. All of it is verified, then its
last hour, as the hourly work does. Prints the seconds of each, and the most memory that the process
held beyond its start.
"""

import argparse
import resource
import sqlite3
import tempfile
import time
from pathlib import Path
from typing import Final

from duetick.core.store import Store
from duetick.core.verify import Verified, verify
from duetick.stores import open_store

from tests.lab.postgres import EmbeddedPostgres, connect

NOON: Final = 1_803_902_400_000
HOUR: Final = 3_600_000

STATEMENTS: Final = (
    """INSERT INTO definitions
    (user_id, key, since, cron, policies, anchor, enabled, standing, tzdata)
SELECT 'u' || (n / 10), 'k' || n, {noon}, '0 * * * *', NULL, {noon}, 1, 'active', 'any'
FROM {schedules}""",
    """INSERT INTO schedule_index (user_id, key, cron, next_fire_at, flow, anchor, redefined_at)
SELECT 'u' || (n / 10), 'k' || n, '0 * * * *', {end}, 'flow', {noon}, {noon} FROM {schedules}""",
    """INSERT INTO occurrences (user_id, key, nominal_at, origin, id, cron, flow, state, reason,
    due_at, attempts, priority, fence, exclusive, redefined_at, count, created_at, updated_at)
SELECT 'u' || (n / 10), 'k' || n, {noon} + t * {hour}, 'schedule', 'occ', '0 * * * *', 'flow',
    'succeeded', 'fired', {noon} + t * {hour}, 1, 0, 1, 1, {noon}, 1, {noon}, {noon}
FROM {schedules}, {times}""",
)

SERIES: Final = {
    "postgres": "generate_series({first}, {last}) AS {name}({name})",
    "sqlite": "(WITH RECURSIVE c AS (SELECT {first} AS {name} UNION ALL SELECT {name} + 1 FROM c "
    "WHERE {name} < {last}) SELECT {name} FROM c)",
}
"""The numbers from the first to the last as rows, in each dialect."""


def filled(dialect: str, schedules: int, times: int) -> list[str]:
    """Return the statements that fill a database."""
    series = SERIES[dialect]
    given = {
        "noon": NOON,
        "hour": HOUR,
        "end": NOON + (times + 1) * HOUR,
        "schedules": series.format(name="n", first=0, last=schedules - 1),
        "times": series.format(name="t", first=1, last=times),
    }
    return [statement.format(**given) for statement in STATEMENTS]


def measure(name: str, store: Store, times: int) -> None:
    """Print a verification of everything, and of the last hour."""
    end = NOON + times * HOUR
    for span, since in (("everything", 0), ("the last hour", end - HOUR)):
        held, began = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.perf_counter()
        found: Verified = verify(store, since, end, now=end)
        took = time.perf_counter() - began
        more = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - held
        rate = found.times / took
        print(
            f"{name:9}{span:14}{found.schedules:>9,} schedules {found.times:>10,} times "
            f"{took:7.1f} s {rate:>9,.0f} a second, {more / 1_024:.0f} MB more; "
            f"faults: {found.found.total()}"
        )


def main() -> None:
    """Fill both databases, and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--schedules", type=int, default=10_000)
    parser.add_argument("--times", type=int, default=100)
    asked = parser.parse_args()
    server = EmbeddedPostgres()
    store = open_store(server.tcp_url)
    store.migrate()
    with connect(server.tcp_url) as admin:
        for statement in filled("postgres", asked.schedules, asked.times):
            admin.run(statement)
        admin.run("ANALYZE")
    measure("Postgres", store, asked.times)
    store.close()
    server.remove()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "file.db"
        store = open_store(f"sqlite:///{path}")
        store.migrate()
        with sqlite3.connect(path) as database:
            for statement in filled("sqlite", asked.schedules, asked.times):
                database.execute(statement)
        database.close()
        measure("SQLite", store, asked.times)
        store.close()


if __name__ == "__main__":
    main()

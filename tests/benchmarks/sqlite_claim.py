"""How fast SQLite claims, beside the least that any claim has to write.

    python -m tests.benchmarks.sqlite_claim

The floor is one transaction in the same file: one UPDATE with a constant, and one INSERT ... SELECT
of as many occurrence rows. Both run in turns, and the best of each is compared.
"""

import sqlite3
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import perf_counter

from duetick.domain.schedule import IndexRow
from duetick.ports import Store
from duetick.stores import open_store
from duetick.testing.conformance.samples import DAY, NOON

DUE = 10_000
ROUNDS = 3
CHUNK = 1_000
ZONES = (None, "Europe/Berlin", "America/New_York", "Asia/Tokyo")
TARGET = 0.6

ADVANCE = "UPDATE schedule_index SET next_fire_at = next_fire_at + 86400000 WHERE next_fire_at <= ?"
RECORD = """
INSERT INTO occurrences (user_id, key, cron, timezone, nominal_at, fence, origin, id, flow, state,
    due_at, attempts, priority, lease_until, exclusive, timing, count, created_at, updated_at)
SELECT user_id, key, cron, timezone, next_fire_at, 1, 'schedule',
    'occ_' || lower(hex(randomblob(12))), flow, 'queued', next_fire_at, 0, 0,
    next_fire_at + 60000, 1, timing, 1, next_fire_at, next_fire_at
FROM schedule_index WHERE next_fire_at <= ?"""


def filled(path: Path) -> Store:
    """A store with rows due at noon: 2,304 groups of expression and zone."""
    store = open_store(f"sqlite:///{path}")
    store.migrate()
    with sqlite3.connect(path) as connection:
        connection.executemany(
            "INSERT INTO schedule_index VALUES (?, ?, ?, ?, ?, 'f', 0, 0, NULL, NULL)",
            [_values(number) for number in range(DUE)],
        )
    connection.close()
    return store


def _values(number: int) -> tuple[str, str, str, str | None, int]:
    minute = number % 576
    cron = f"{minute % 60} {minute // 60} * * *"
    row = IndexRow(f"user{number * 7919 % DUE:05}", "digest", cron, ZONES[number % 4], NOON)
    return (row.user_id, row.key, row.cron, row.timezone, row.next_fire_at)


def seconds(work: Callable[[], object]) -> float:
    """How long it takes."""
    began = perf_counter()
    work()
    return perf_counter() - began


def floor(path: Path, now: int) -> float:
    """The least: one statement for the advance, one for the record."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA synchronous = FULL")

    def work() -> None:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute(RECORD, (now,))
        connection.execute(ADVANCE, (now,))
        connection.execute("COMMIT")

    took = seconds(work)
    connection.close()
    return took


def claim(store: Store, now: int, chunk: int) -> float:
    """All that is due, in chunks, as a tick does it."""
    claimed = 0

    def work() -> None:
        nonlocal claimed
        while found := store.index.claim_due(now, chunk):
            claimed += len(found)

    took = seconds(work)
    assert claimed == DUE, f"claimed {claimed} of {DUE}"
    return took


def measure(folder: Path, chunk: int) -> tuple[float, float]:
    """The best of the floor and of the claim, on databases of their own, in turns."""
    floors, claims = [], []
    for number in range(ROUNDS):
        path = folder / f"floor{chunk}-{number}.db"
        filled(path).close()
        floors.append(floor(path, NOON))
        store = filled(folder / f"claim{chunk}-{number}.db")
        store.index.claim_due(NOON - DAY)
        claims.append(claim(store, NOON, chunk))
        store.close()
    return min(floors), min(claims)


def main() -> int:
    """Print the table; 1 where the claim in one chunk misses its share of the floor."""
    print(f"SQLite {sqlite3.sqlite_version}, {DUE:,} due, occurrences recorded and leased")
    share = 0.0
    with tempfile.TemporaryDirectory() as folder:
        for chunk in (CHUNK, DUE):
            least, took = measure(Path(folder), chunk)
            share = least / took
            rates = f"floor {DUE / least:>9,.0f} rows/s   claim {DUE / took:>9,.0f} rows/s"
            print(f"chunk {chunk:>6,}   {rates}   {share:.0%} of the floor")
    return 0 if share >= TARGET else 1


if __name__ == "__main__":
    sys.exit(main())

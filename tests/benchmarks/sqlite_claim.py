"""The speed of claims on SQLite, beside the least that any claim has to write.

    python -m tests.benchmarks.sqlite_claim [--rows 1000000]

Files of 10,000, 100,000 and 1,000,000 schedules, up to `--rows`, of which 10,000 are due. The floor
commits as often as the claim beside it: for each chunk one transaction in the same file, of one
INSERT … SELECT of as many occurrence rows and one UPDATE with a constant. Both run in turns, seven
times; the medians are compared, by wall and by processor time. In one chunk it is the least that
all rows can cost. A claim's commit does not wait for the disk, as the floor's does: the begin that
follows it does.
"""

import argparse
import sqlite3
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from statistics import median
from time import perf_counter, process_time
from typing import NamedTuple

from duetick.core.store import Store
from duetick.stores import open_store
from duetick.testing.conformance.samples import DAY, NOON

DUE = 10_000
ROUNDS = 7
CHUNK = 1_000
ZONES = (None, "Europe/Berlin", "America/New_York", "Asia/Tokyo")
TARGET = 0.6

ADVANCE = """UPDATE schedule_index SET next_fire_at = next_fire_at + 86400000
WHERE (user_id, key) IN (
    SELECT user_id, key FROM schedule_index WHERE next_fire_at <= ? ORDER BY next_fire_at LIMIT ?
)"""
RESET = """UPDATE schedule_index SET next_fire_at = ?, mark = NULL
WHERE CAST(substr(user_id, 5) AS integer) % ? = 0"""
RECORD = """
INSERT INTO occurrences (user_id, key, cron, timezone, nominal_at, fence, origin, id, flow, state,
    due_at, attempts, priority, lease_until, exclusive, redefined_at, count, created_at, updated_at)
SELECT user_id, key, cron, timezone, next_fire_at, 1, 'schedule',
    'occ_' || lower(hex(randomblob(12))), flow, 'queued', next_fire_at, 0, 0,
    next_fire_at + 60000, 1, redefined_at, 1, next_fire_at, next_fire_at
FROM schedule_index WHERE next_fire_at <= ? ORDER BY next_fire_at LIMIT ?"""


def filled(path: Path, total: int) -> None:
    """Write a number of rows. Of these 10,000 all over the table are due at noon, in 2,304
    groups.
    """
    store = open_store(f"sqlite:///{path}")
    store.migrate()
    store.close()
    connection = sqlite3.connect(path)
    connection.executemany(
        "INSERT INTO schedule_index VALUES (?, 'digest', ?, ?, ?, 'f', 0, 0, NULL, NULL)",
        (_values(number, total // DUE) for number in range(total)),
    )
    connection.commit()
    connection.close()


def _values(number: int, step: int) -> tuple[str, str, str | None, int]:
    due = number % step == 0
    group = number // step % 2_304
    cron = f"{group // 4 % 60} {group // 240} * * *"
    return (f"user{number:07}", cron, ZONES[group % 4], NOON if due else NOON + number)


def reset(path: Path, total: int) -> None:
    """Put the rows back as they were filled in."""
    connection = sqlite3.connect(path)
    connection.execute(RESET, (NOON, total // DUE))
    connection.execute("DELETE FROM occurrences")
    connection.commit()
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()


class Took(NamedTuple):
    """The wall time and the processor time of something."""

    seconds: float
    cpu: float


def clocked(work: Callable[[], object]) -> Took:
    """Return the time that a call takes."""
    began, cpu = perf_counter(), process_time()
    work()
    return Took(perf_counter() - began, process_time() - cpu)


def floor(path: Path, now: int, chunk: int) -> Took:
    """Run the least: one statement for the record of a chunk, one for its advance."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA synchronous = FULL")

    def work() -> None:
        for _ in range(DUE // chunk):
            connection.execute("BEGIN IMMEDIATE")
            connection.execute(RECORD, (now, chunk))
            connection.execute(ADVANCE, (now, chunk))
            connection.execute("COMMIT")

    took = clocked(work)
    connection.close()
    return took


def claim(store: Store, now: int, chunk: int) -> Took:
    """Claim everything that is due, in chunks, as a tick does."""
    claimed = 0

    def work() -> None:
        nonlocal claimed
        while found := store.index.claim_due(now, chunk):
            claimed += len(found)

    took = clocked(work)
    assert claimed == DUE, f"claimed {claimed} of {DUE}"
    return took


def measure(path: Path, total: int, chunk: int) -> tuple[Took, Took]:
    """Measure the floor and the claim in turns. Return their medians."""
    floors, claims = [], []
    for _ in range(ROUNDS):
        reset(path, total)
        floors.append(floor(path, NOON, chunk))
        reset(path, total)
        store = open_store(f"sqlite:///{path}")
        store.index.claim_due(NOON - DAY)
        claims.append(claim(store, NOON, chunk))
        store.close()
    return _medians(floors), _medians(claims)


def _medians(runs: list[Took]) -> Took:
    return Took(median(run.seconds for run in runs), median(run.cpu for run in runs))


def main() -> int:
    """Print the table; 1 where a claim misses its share of the floor."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    given = parser.parse_args()
    print(f"SQLite {sqlite3.sqlite_version}: {DUE:,} due, recorded and leased")
    shares = []
    for total in (size for size in (DUE, 100_000, 1_000_000) if size <= given.rows):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "duetick.db"
            filled(path, total)
            for chunk in (CHUNK, DUE):
                least, took = measure(path, total, chunk)
                wall, cpu = least.seconds / took.seconds, least.cpu / took.cpu
                shares += [wall, cpu]
                print(
                    f"of {total:>9,} in chunks of {chunk:>6,}   floor "
                    f"{DUE / least.seconds:>7,.0f} rows/s   claim {DUE / took.seconds:>7,.0f} "
                    f"rows/s   {wall:.0%}   by processor {took.cpu / DUE * 1e6:.1f} µs a row "
                    f"{cpu:.0%}",
                    flush=True,
                )
    return 0 if min(shares) >= TARGET else 1


if __name__ == "__main__":
    sys.exit(main())

"""The cost of a purge, and the size of what stays: `python -m tests.benchmarks.retention`.

    python -m tests.benchmarks.retention                    # all three, on both stores
    python -m tests.benchmarks.retention --only beside --rows 20000
    python -m tests.benchmarks.retention --only size --days 6 --kept 2 --scale 10000

- *size*: a month of fires at 100 a second, of which one in `--scale` is made: the fires of each
  hour are claimed, begun and settled, and each day is purged at its end, with a retention of
  `--kept` days. It prints the size of the database after each day. The size is steady if no day
  after the retention is more than a tenth above the first of them.
- *beside*: a tick each second claims, begins and settles a hundred while as many rows as `--rows`
  says are purged to their end, on Postgres and SQLite. After every twenty ticks the purge pauses
  for ten, so that whatever else the machine does burdens both alike. A million takes half an hour.
- *plans*: with a million in the history, the plans of claim, begin, settle, purge and pages.

The exit code is 1 if a size is not steady, if the median of the ticks beside a purge is more than
1.5 times that of the ticks alone, or if a row has stayed that should have left.
"""

import argparse
import sqlite3
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from itertools import count
from pathlib import Path
from statistics import median
from typing import Final

from duetick.core.done import Purged
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
DAYS: Final = 30
KEPT: Final = 5
SCALE: Final = 1_000
FIRES_OF_A_DAY: Final = 8_640_000
"""The fires of a day at 100 a second."""

TICKED: Final = 100
BESIDE: Final = 20
ALONE: Final = 10
"""The ticks of a turn: first beside the purge, then while it pauses."""

EVERY: Final = 1.0
SLOWEST: Final = 1.5
"""How many times as long the median tick may take beside a purge."""

STEADIEST: Final = 1.1
ALWAYS: Final = 20
"""The newest occurrences of a schedule, which no purge takes."""

KEYS: Final = 2_000
INVOCATION_SECONDS: Final = 600

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
    """Write a history of `rows` occurrences, which ended long before noon. Their schedules fire
    on.
    """
    run(HISTORY.format(rows=rows, first=NOON - 400 * DAY, step=MINUTE))
    run(ROWS.format(far=NOON + 400 * DAY))


def put(store: Store, schedules: int, cron: str) -> None:
    """Put a number of schedules."""
    for number in range(schedules):
        made = Schedule(f"user{number}", "digest", cron, "reminders", "send")
        store.schedules.put(made, now=NOON - 1)


def fire(store: Store, now: int) -> int:
    """Claim, begin and settle everything that is due. Return the number of fires."""
    fired = 0
    while claimed := store.index.claim_due(now, limit=1_000):
        begun = [store.ledger.begin(one, now=now) for one in claimed]
        for one in begun:
            if isinstance(one, Begun):
                store.ledger.settle(one.occurrence, SUCCEEDED, now=now)
        fired += len(claimed)
    return fired


def grow(
    store: Store, size: Callable[[], int], *, days: int, kept: int, scale: int
) -> Sequence[int]:
    """Fire for days, and purge at the end of each. Return the size after each day."""
    put(store, FIRES_OF_A_DAY // 24 // scale, "0 * * * *")
    sizes = []
    for day in range(days):
        for hour in range(24):
            fire(store, NOON + day * DAY + hour * 3_600_000)
        while purge(store, NOON + (day + 1) * DAY, 1_000, retention=_retention(kept)).more:
            pass
        sizes.append(size())
        tell(f"day {day + 1} of {days}: {sizes[-1] / 2**20:.1f} MB")
    return sizes


def _retention(days: int) -> Retention:
    return Retention(Days(days, days))


def is_steady(name: str, sizes: Sequence[int], kept: int) -> bool:
    """Print the sizes. Return True if the greatest day is near the first that could be steady."""
    full = sizes[kept:]
    growth = max(full) / full[0]
    print(f"{name}: MB after each day: {' '.join(f'{size / 2**20:.1f}' for size in sizes)}")
    print(f"{name}: greatest day / day {kept + 1}: {growth:.2f}", flush=True)
    return growth <= STEADIEST


def tell(progress: str) -> None:
    """Print the progress on stderr, beside the results."""
    print(f"{time.strftime('%H:%M:%S')} {progress}", file=sys.stderr, flush=True)


class Ticking:
    """A tick each second, with a hundred to fire: the time that each took."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._minutes = count()
        put(store, TICKED, "* * * * *")

    def tick(self) -> float:
        """Claim, begin and settle a hundred. Return the seconds, and wait for the next second."""
        began = time.perf_counter()
        assert fire(self._store, NOON + next(self._minutes) * MINUTE) == TICKED
        took = time.perf_counter() - began
        time.sleep(max(0.0, EVERY - took))
        return took

    def take(self, ticks: int, goes_on: Callable[[], bool] = lambda: True) -> list[float]:
        """Return the seconds of some ticks, or of fewer if it does not go on."""
        return [self.tick() for _ in range(ticks) if goes_on()]


class Purging:
    """A purge to its end, as the hourly function and its continued invocations do it. It pauses
    while `may_purge` is not set.
    """

    def __init__(self, store: Store, rows: int) -> None:
        self._store = store
        self._rows = rows
        self._told = 0
        self.may_purge = threading.Event()
        self.retired = 0

    def run(self) -> None:
        """Purge until nothing is left, with rests, as often as it takes."""
        more = True
        while more:
            done = purge_within(
                INVOCATION_SECONDS,
                self._store,
                retention=_retention(KEPT),
                now=lambda: NOON,
                rest=self._rest,
                tell=partial(self._tell, self.retired),
            )
            more = done is None or done.more

    def _rest(self, seconds: float) -> None:
        time.sleep(seconds)
        self.may_purge.wait()

    def _tell(self, before: int, done: Purged) -> None:
        self.retired = before + done.retired
        tenth = self.retired * 10 // self._rows
        if tenth > self._told:
            self._told = tenth
            tell(f"{self.retired:,} of {self._rows:,} purged")


def is_bearable(name: str, store: Store, other: Store, rows: int) -> bool:
    """Compare ticks alone with ticks while another connection purges to the end."""
    ticking, purging = Ticking(store), Purging(other, rows)
    alone, busy = ticking.take(ALONE), list[float]()
    work = threading.Thread(target=purging.run)
    work.start()
    while work.is_alive():
        purging.may_purge.set()
        busy += ticking.take(BESIDE, work.is_alive)
        purging.may_purge.clear()
        alone += ticking.take(ALONE)
    slower = median(busy) / median(alone)
    print(
        f"{name}: a tick of {TICKED} each second: {_spread(alone)} alone, {_spread(busy)} beside "
        f"the purge: {slower:.2f} times; {len(alone)} and {len(busy)} ticks"
    )
    seconds = len(busy) * EVERY
    print(
        f"{name}: {purging.retired:,} of {rows:,} purged in {seconds:.0f} s without the pauses, "
        f"{purging.retired / seconds:,.0f} a second",
        flush=True,
    )
    return slower <= SLOWEST and purging.retired == rows


def _spread(seconds: Sequence[float]) -> str:
    """Return the median in milliseconds, and the slowest of a hundred."""
    slow = sorted(seconds)[len(seconds) * 99 // 100]
    return f"{median(seconds) * 1e3:.0f} ms (p99 {slow * 1e3:.0f})"


def postgres_plans(url: str) -> None:
    """Print the plans by which the everyday queries and the purge read a history of a million."""
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


@dataclass(frozen=True)
class Wanted:
    """The choice of measurements."""

    only: str | None
    on: str | None
    rows: int
    days: int
    kept: int
    scale: int

    def has(self, part: str) -> bool:
        """Return True if a part is to be measured."""
        return self.only in (None, part)

    @property
    def history(self) -> int:
        """The number of rows in a history of which `rows` leave."""
        return self.rows + KEYS * ALWAYS

    def is_steady(self, name: str, store: Store, size: Callable[[], int]) -> bool:
        """Fire for days, and say if the size is steady."""
        sizes = grow(store, size, days=self.days, kept=self.kept, scale=self.scale)
        return is_steady(f"{name}, 1 of {self.scale:,} fires", sizes, self.kept)


def on_postgres(wanted: Wanted) -> bool:
    """Measure on a server of its own, with durable commits. Return True if every bound is kept."""
    server, kept = EmbeddedPostgres(DURABLE), True
    try:
        with closing(open_store(server.url)) as store:
            store.migrate()
            if wanted.has("size"):
                kept &= wanted.is_steady("Postgres", store, lambda: _size(server.url))
                _empty(server.url)
            if wanted.has("beside") or wanted.has("plans"):
                tell(f"Postgres: writing {wanted.history:,} rows")
                with connect(server.url) as connection:
                    fill(connection.run, wanted.history)
                    connection.run("VACUUM ANALYZE")
            if wanted.has("plans"):
                postgres_plans(server.url)
            if wanted.has("beside"):
                with closing(open_store(server.url)) as other:
                    kept &= is_bearable("Postgres", store, other, wanted.rows)
    finally:
        server.remove()
    return kept


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


def on_sqlite(wanted: Wanted) -> bool:
    """Measure in files, with full sync. Return True if every bound is kept."""
    kept = True
    with tempfile.TemporaryDirectory() as folder:
        if wanted.has("size"):
            path = Path(folder) / "size.db"
            with closing(open_store(f"sqlite:///{path}")) as store:
                store.migrate()
                kept &= wanted.is_steady("SQLite", store, lambda: path.stat().st_size)
        if wanted.has("beside"):
            path = Path(folder) / "beside.db"
            with closing(open_store(f"sqlite:///{path}")) as store:
                store.migrate()
                tell(f"SQLite: writing {wanted.history:,} rows")
                with closing(sqlite3.connect(path)) as connection, connection:
                    fill(connection.execute, wanted.history)
                with closing(open_store(f"sqlite:///{path}")) as other:
                    kept &= is_bearable("SQLite", store, other, wanted.rows)
    return kept


def parse() -> Wanted:
    """Read the chosen measures from the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=("size", "beside", "plans"))
    parser.add_argument("--on", choices=("sqlite", "postgres"))
    parser.add_argument("--rows", type=int, default=MILLION, help="that the purge deletes")
    parser.add_argument("--days", type=int, default=DAYS)
    parser.add_argument("--kept", type=int, default=KEPT, help="days of retention")
    parser.add_argument("--scale", type=int, default=SCALE, help="one of so many fires is made")
    given = parser.parse_args()
    if given.days <= given.kept:
        parser.error("--days: more than --kept, or no size can be steady")
    if given.rows % KEYS:
        parser.error(f"--rows: a multiple of {KEYS:,}, the schedules of the history")
    return Wanted(**vars(given))


def main() -> None:
    """See the module's own words."""
    wanted, kept = parse(), True
    if wanted.on != "postgres":
        kept &= on_sqlite(wanted)
    if wanted.on != "sqlite":
        kept &= on_postgres(wanted)
    sys.exit(0 if kept else 1)


if __name__ == "__main__":
    main()

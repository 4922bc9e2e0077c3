"""A day ahead of a million schedules on Postgres and SQLite: `python -m tests.benchmarks.forecast`.

    python -m tests.benchmarks.forecast --schedules 100000 --only sqlite --kind spread

Of `usual` schedules half are daily, three tenths weekly and a tenth hourly, in four zones; a tenth
has a rate, each with an anchor of its own, and another tenth a spread of an hour. With `spread`
each has one, with `rates` each has a rate. Prints the seconds of a forecast, and in the same run
of the naive way: each row is read, and each of its fires is worked out. Both have to count the
same. Then how many megabytes another process holds at its most, beyond those for an empty store.
"""

import argparse
import re
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

from duetick.core.forecast import Forecast, Question
from duetick.core.forecast_cursor import ReadSoFar
from duetick.core.store import Store
from duetick.domain.claims import spread_ms
from duetick.domain.firing import Times
from duetick.domain.policies import MINUTE_MS, Policies
from duetick.stores import open_store
from duetick.testing.conformance.samples import DAY, NOON

from tests.lab.postgres import EmbeddedPostgres, connect

SPREAD: Final = '{"spread":3600}'
ZONES: Final = (None, "Europe/Berlin", "America/New_York", "Asia/Tokyo")
WANTED: Final = 10.0
"""The most seconds for a million usual schedules."""

AT_ONCE: Final = 20_000
MINUTES: Final = DAY // MINUTE_MS

SEND: Final = """INSERT INTO schedule_index
SELECT p[1], p[2], p[3], nullif(p[4], ''), p[5]::bigint, p[6], p[7]::bigint, p[8]::bigint,
    nullif(p[9], ''), NULL
FROM (
    SELECT string_to_array(line, '|') AS p FROM unnest(string_to_array(:all, ';')) AS line
) AS given"""

NAMED: Final = "SELECT user_id, key, cron, timezone, next_fire_at, anchor, policies"


class Given(NamedTuple):
    """A row of the index, without its mark."""

    user: str
    key: str
    cron: str
    zone: str | None
    first: int
    flow: str
    anchor: int
    redefined_at: int
    policies: str | None


def cron_of(number: int, kind: str) -> str:
    """Return the cron of a schedule, by its number."""
    if number % 10 == 9 or kind == "rates":
        return f"rate({(number // 10 % 12 + 1) * 5} minutes)"
    minute, hour, weekday = number // 10 % 60, number // 600 % 24, number // 14_400 % 7
    if number % 10 == 0:
        return f"{minute} * * * *"
    return f"{minute} {hour} * * {'*' if number % 10 < 6 else weekday}"


def rows_of(schedules: int, kind: str) -> Iterator[Given]:
    """Yield a number of rows, each due for its first time after noon."""
    known: dict[tuple[str, str | None, int], int] = {}
    for number in range(schedules):
        cron, zone = cron_of(number, kind), ZONES[number // 7 % 4]
        anchor = NOON - number * 7_919 % 3_600_000
        named = cron, zone, anchor if cron.startswith("rate") else 0
        if named not in known:
            known[named] = Times(*named, Policies()).after(NOON) or 0
        policies = SPREAD if number % 10 == 1 or kind == "spread" else None
        yield Given(
            f"user{number:07}", "digest", cron, zone, known[named], "f", anchor, NOON, policies
        )


def fill_sqlite(path: Path, rows: Iterator[Given]) -> None:
    """Fill a file with these rows."""
    with closing(open_store(f"sqlite:///{path}")) as store:
        store.migrate()
    with closing(sqlite3.connect(path)) as database:
        put = "INSERT INTO schedule_index VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, NULL)"
        database.executemany(put, rows)
        database.commit()


def fill_postgres(url: str, rows: Iterator[Given]) -> None:
    """Fill a database with these rows."""
    with closing(open_store(url)) as store:
        store.migrate()
    with connect(url) as admin:
        batch: list[str] = []
        for row in rows:
            batch.append("|".join("" if one is None else str(one) for one in row))
            if len(batch) == AT_ONCE:
                admin.run(SEND, all=";".join(batch))
                batch.clear()
        if batch:
            admin.run(SEND, all=";".join(batch))
        admin.run("VACUUM ANALYZE schedule_index")


def look_ahead(store: Store) -> list[int]:
    """Forecast a day, as the API does."""
    found = Forecast.begin(store, Question(operator=True), ReadSoFar.begin(NOON, None))
    found.read(lambda: True)
    found.answer()
    return found.outlook.sums[0].due


def look_naively(read: Callable[[str, str], list[Any]]) -> list[int]:
    """Forecast a day row by row and fire by fire."""
    due = [0] * MINUTES
    after = "", ""
    while rows := read(*after):
        for user, key, cron, zone, first, anchor, policies in rows:
            chosen = Policies.load(policies)
            times, at = Times(cron, zone, anchor, chosen), first
            place = spread_ms(user, key, chosen.spread)
            while at is not None and at < NOON + DAY:
                minute = (at + place - NOON) // MINUTE_MS
                if minute < MINUTES:
                    due[minute] += 1
                at = times.after(at)
        after = rows[-1][0], rows[-1][1]
    return due


class Took(NamedTuple):
    """The count of a way, and its seconds: by the clock, and of this process's processor."""

    due: list[int]
    seconds: float
    processor: float


def clocked(work: Callable[[], list[int]]) -> Took:
    """Return the time that a call takes."""
    began, used = time.perf_counter(), time.process_time()
    due = work()
    return Took(due, time.perf_counter() - began, time.process_time() - used)


def held(address: str) -> int:
    """Return the most megabytes that a process held, beyond those that an empty store takes."""
    with closing(open_store("sqlite://")) as empty:
        empty.migrate()
        empty.now = lambda: NOON
        look_ahead(empty)
    before = most_held()
    with closing(open_store(address)) as store:
        store.now = lambda: NOON
        look_ahead(store)
    return (most_held() - before) // 1_024


def most_held() -> int:
    """Return the most kilobytes that this program has held. `getrusage` would count its parent's
    too.
    """
    (found,) = re.findall(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    return int(found)


def held_by_another(address: str) -> int:
    """Return the megabytes that a new process held: this one has held more already."""
    command = [sys.executable, "-m", "tests.benchmarks.forecast", "--held", address]
    return int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


@contextmanager
def sqlite(schedules: int, kind: str) -> Iterator[tuple[str, Callable[[str, str], list[Any]]]]:
    """Yield the address of a file, and a function that reads its rows in pages."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "file.db"
        fill_sqlite(path, rows_of(schedules, kind))
        page = f"{NAMED} FROM schedule_index WHERE (user_id, key) > (?, ?) ORDER BY 1, 2 LIMIT ?"
        with closing(sqlite3.connect(path)) as database:
            yield (
                f"sqlite:///{path}",
                lambda user, key: database.execute(page, (user, key, AT_ONCE)).fetchall(),
            )


@contextmanager
def postgres(schedules: int, kind: str) -> Iterator[tuple[str, Callable[[str, str], list[Any]]]]:
    """Yield the address of a server of its own, and a function that reads its rows in pages."""
    server = EmbeddedPostgres()
    try:
        fill_postgres(server.url, rows_of(schedules, kind))
        page = (
            f"{NAMED} FROM schedule_index WHERE (user_id, key) > (:user, :key) "
            "ORDER BY user_id, key LIMIT :many"
        )
        with connect(server.url) as admin:
            yield (
                server.url,
                lambda user, key: admin.run(page, user=user, key=key, many=AT_ONCE) or [],
            )
    finally:
        server.remove()


STORES: Final = {"sqlite": sqlite, "postgres": postgres}


def measure(name: str, schedules: int, kind: str) -> bool:
    """Print both ways on a store. Return False if the forecast took too long."""
    with STORES[name](schedules, kind) as (address, read), closing(open_store(address)) as store:
        store.now = lambda: NOON
        look_ahead(store)
        ahead, naive = clocked(lambda: look_ahead(store)), clocked(lambda: look_naively(read))
        megabytes = held_by_another(address)
    assert ahead.due == naive.due, "they count differently"
    print(
        f"{name:9} {kind:7} {schedules:>9,} schedules, {sum(ahead.due):>11,} fires: forecast "
        f"{ahead.seconds:5.1f} s ({ahead.processor:.1f} s of the processor), {megabytes} MB more; "
        f"naive way {naive.seconds:6.1f} s ({naive.processor:.1f} s): "
        f"{naive.seconds / ahead.seconds:.1f} times"
    )
    return kind != "usual" or ahead.seconds <= WANTED * schedules / 1_000_000


def main() -> int:
    """Print all; 1 if a forecast of usual schedules took too long."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--schedules", type=int, default=1_000_000)
    parser.add_argument("--held", help=argparse.SUPPRESS)
    parser.add_argument("--only", choices=STORES)
    parser.add_argument("--kind", choices=("usual", "spread", "rates"), default="usual")
    asked = parser.parse_args()
    if asked.held:
        print(held(asked.held))
        return 0
    names = [name for name in STORES if asked.only in (None, name)]
    quick = [measure(name, asked.schedules, asked.kind) for name in names]
    return 0 if all(quick) else 1


if __name__ == "__main__":
    sys.exit(main())

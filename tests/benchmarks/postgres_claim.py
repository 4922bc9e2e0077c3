"""The speed of claims on Postgres, beside the least that must be written: ratios of one run.

    python -m tests.benchmarks.postgres_claim [--rows 1000000] [--due 10000] [--rounds 7]
    python -m tests.benchmarks.postgres_claim --only floors

- *floors*: tables of 10,000, 100,000 and `--rows` schedules, of which `--due` are due, at random
  places: all for one time, and each for one of the last 60 minutes, whatever its cron says. The
  floor is the quicker of two, which claim all at once in one transaction: one constant UPDATE …
  RETURNING and one INSERT … SELECT of as many occurrences; and one statement that does both. The
  share is that of the quicker, by wall and by processor time: of this process and of all of the
  server's. A claim's commits do not wait for the disk, as the begins that follow do; their bytes
  are written half a second later, and counted.
- *loop*: beside the documents' loop, which records nothing.
- *together*: several processes at once.
- *snapshot*: under a snapshot that is held open.

All ways claim the same number of rows of the same table, in turns. The printed figures are medians.
"""

import argparse
import gc
import multiprocessing
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from multiprocessing.synchronize import Barrier
from pathlib import Path
from statistics import median
from time import perf_counter, process_time, sleep
from typing import NamedTuple

from duetick.stores import open_store

from tests.benchmarks.postgres_data import GROUPS, MINUTE, Table
from tests.benchmarks.postgres_ways import (
    Way,
    documents_loop,
    floor,
    floor_in_one,
    ours,
    timed,
)
from tests.lab.postgres import (
    OUTSIDE,
    EmbeddedPostgres,
    OutsidePostgres,
    Postgres,
    connect,
    drop_database,
    fresh_database,
)

DURABLE = {"fsync": "on", "shared_buffers": "1GB", "max_wal_size": "8GB"}
CLAIMERS = (1, 2, 4, 8)
TICKS = 100
BACKLOG = 60
"""The nominal times of a backlog: an hour of minutes."""

SETTLES = 0.5
"""Seconds after which the server has written what a commit did not wait for."""

LEAST_SHARE = 0.5
EACH_MINUTE = "UPDATE schedule_index SET cron = '* * * * *' WHERE next_fire_at = :due"
HOLD = "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM schema_version"


@contextmanager
def table(server: Postgres, rows: int) -> Iterator[Table]:
    """Yield a database of its own, with a number of schedules."""
    url = fresh_database(server)
    yield Table(url, rows).filled()
    drop_database(server, url)


class Took(NamedTuple):
    """Seconds: by wall, and of the processor."""

    wall: float
    computed: float


class Computed:
    """The processor time of this process, and of all processes of a server on this machine."""

    def __init__(self, server: Postgres) -> None:
        self._pid = server.pid if isinstance(server, EmbeddedPostgres) else 0

    def now(self) -> float:
        """Return the seconds so far. A server elsewhere counts nothing."""
        return process_time() + sum(map(_on_processor, self._processes()))

    def _processes(self) -> Iterator[int]:
        if self._pid:
            yield self._pid
            children = Path(f"/proc/{self._pid}/task/{self._pid}/children").read_text()
            yield from map(int, children.split())


def _on_processor(pid: int) -> float:
    try:
        return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e9
    except FileNotFoundError:  # it has ended
        return 0.0


def measure(
    made: Table,
    ways: Mapping[str, Way],
    due: int,
    rounds: int,
    *,
    computed: Computed,
    times: int = 1,
) -> dict[str, Took]:
    """Measure each way. They take turns, so that each meets the same table."""
    found: dict[str, list[Took]] = {name: [] for name in ways}
    for _ in range(rounds):
        for name, way in ways.items():
            now = made.make_due(due, times)
            sleep(SETTLES)
            before = computed.now()
            claimed, seconds = timed(way, now)
            sleep(SETTLES)
            found[name].append(Took(seconds, computed.now() - before))
            if claimed < due:
                raise AssertionError(f"{name} claimed {claimed} of {due}")
    return {name: _medians(took) for name, took in found.items()}


def _medians(took: Sequence[Took]) -> Took:
    return Took(median(one.wall for one in took), median(one.computed for one in took))


def all_ways(url: str) -> dict[str, Way]:
    return {
        "floor, two statements": floor(url),
        "floor, one statement": floor_in_one(url),
        "duetick, chunks of 1,000": ours(open_store(url)),
        "duetick, chunks of 5,000": ours(open_store(url), 5_000),
    }


def floors(server: Postgres, sizes: Sequence[int], due: int, rounds: int) -> bool:
    """Measure ours beside the floors, at each size. Return True if each share is as promised."""
    kept, computed = True, Computed(server)
    for rows in sizes:
        with table(server, rows) as made:
            ways = all_ways(made.url)
            for times in (1, BACKLOG):
                took = measure(made, ways, due, rounds, computed=computed, times=times)
                told = "one time" if times == 1 else f"each for one of {times} times"
                print(f"\n{due:,} due of {rows:,}, {GROUPS:,} groups, {told}")
                kept &= _show_shares(took, due)
    return kept


def _show_shares(took: Mapping[str, Took], due: int) -> bool:
    least = Took(*(min(one[n] for name, one in took.items() if "floor" in name) for n in (0, 1)))
    shares = []
    for name, one in took.items():
        wall, computed = least.wall / one.wall, least.computed / one.computed
        shares += [] if "floor" in name else [wall, computed]
        print(
            f"  {name:<26} {due / one.wall:>9,.0f} rows/s {wall:>6.0%}   by processor "
            f"{one.computed / due * 1e6:>5.1f} µs a row {computed:>6.0%}",
            flush=True,
        )
    return min(shares) >= LEAST_SHARE


def show(title: str, rates: Mapping[str, float], base: float) -> None:
    print(f"\n{title}")
    for name, rate in rates.items():
        print(f"  {name:<44} {rate:>10,.0f} rows/s {rate / base:>8.1%}", flush=True)


def beside_the_loop(server: Postgres, rows: int, due: int, rounds: int) -> None:
    """Measure ours beside the documents' loop."""
    with table(server, rows) as made:
        ways = {"duetick": ours(open_store(made.url)), "the loop": documents_loop(made.url)}
        took = measure(made, ways, due, rounds, computed=Computed(server))
    rates = {name: due / one.wall for name, one in took.items()}
    show(f"beside the documents' loop, {due:,} due of {rows:,}", rates, rates["the loop"])


def held_snapshot(server: Postgres, rows: int, due: int) -> None:
    """Measure the share of the floor while a snapshot is held open through many ticks."""
    with table(server, rows) as made, connect(made.url) as holder:
        first = made.make_due(due)
        with connect(made.url) as connection:
            connection.run(EACH_MINUTE, due=first)
        ways = {"floor": floor(made.url), "duetick": ours(open_store(made.url))}
        holder.run(HOLD)
        shares = [_share(made, ways, first + 2 * n * MINUTE, due) for n in range(TICKS // 2)]
    print(f"\na snapshot held open, {due:,} due of {rows:,}: rows/s")
    for start in (0, TICKS // 4, TICKS // 2 - 5):
        base, rate = (median(found) for found in zip(*shares[start : start + 5], strict=True))
        print(f"  ticks {2 * start:>3} to {2 * start + 10:<4} floor {base:>9,.0f}", end="")
        print(f"   duetick {rate:>9,.0f} {rate / base:>8.1%}")


def _share(made: Table, ways: Mapping[str, Way], now: int, due: int) -> tuple[float, float]:
    """Run one tick by each: ours is due again a minute later, the floor's rows are put back."""
    claimed, seconds = timed(ways["duetick"], now)
    if claimed != due:
        raise AssertionError(f"claimed {claimed} of {due}")
    found, base = timed(ways["floor"], now + MINUTE)
    with connect(made.url) as connection:
        connection.run(BACK, due=now + 2 * MINUTE, now=now + MINUTE)
    return found / base, claimed / seconds


BACK = "UPDATE schedule_index SET next_fire_at = :due WHERE mark = :now"


def _claimer(url: str, now: int, start: Barrier, counts: "multiprocessing.Queue[int]") -> None:
    store = open_store(url)
    store.check_schema()
    way = ours(store)
    start.wait()
    counts.put(way(now))
    store.close()


def together(server: Postgres, rows: int, due: int, rounds: int) -> None:
    """Let several processes claim from one table at once."""
    rates: dict[str, float] = {}
    with table(server, rows) as made:
        for claimers in CLAIMERS:
            found = [_race(made, due, claimers) for _ in range(rounds)]
            rates[f"{claimers} claimers"] = median(found)
    show(f"claimers at once, {due:,} due of {rows:,}", rates, rates["1 claimers"])


def _race(made: Table, due: int, claimers: int) -> float:
    context = multiprocessing.get_context("spawn")
    start, counts = context.Barrier(claimers + 1), context.Queue()
    now = made.make_due(due)
    children = [
        context.Process(target=_claimer, args=(made.url, now, start, counts))
        for _ in range(claimers)
    ]
    for child in children:
        child.start()
    start.wait()
    begun = perf_counter()
    claimed: int = sum(counts.get() for _ in children)
    seconds = perf_counter() - begun
    for child in children:
        child.join()
    if claimed != due:
        raise AssertionError(f"{claimers} claimers claimed {claimed} of {due}")
    return claimed / seconds


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the parts on a server of its own, or on the one that the environment names.

    Return 1 if a share of the floor is less than is promised.
    """
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--due", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--only", choices=("floors", "loop", "together", "snapshot"))
    given = parser.parse_args(arguments)
    outside = os.environ.get(OUTSIDE)
    server = OutsidePostgres(outside) if outside else EmbeddedPostgres(DURABLE)
    gc.freeze()  # as a function does at its start: no collection walks through what was imported
    kept = True
    try:
        if given.only in (None, "floors"):
            sizes = sorted({given.due, 100_000, given.rows})
            kept = floors(
                server, [rows for rows in sizes if rows <= given.rows], given.due, given.rounds
            )
        if given.only in (None, "loop"):
            beside_the_loop(server, given.rows, given.due, given.rounds)
        if given.only in (None, "together"):
            together(server, given.rows, given.due, given.rounds)
        if given.only in (None, "snapshot"):
            held_snapshot(server, given.rows, given.due)
    finally:
        if isinstance(server, EmbeddedPostgres):
            server.remove()
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())

"""How fast Postgres is claimed from, beside the least that must be written: ratios of one run.

    python -m tests.benchmarks.postgres_claim [--rows 1000000] [--due 10000] [--rounds 5]

Every way claims the same number of rows, at random places of the same table, turn and turn about;
what is printed are medians. The floor is one constant UPDATE … RETURNING and one INSERT … SELECT of
as many occurrences in one transaction. The documents' loop records nothing.
"""

import argparse
import multiprocessing
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from multiprocessing.synchronize import Barrier
from statistics import median
from time import perf_counter

from duetick.stores import open_store

from tests.benchmarks.postgres_data import GROUPS, MINUTE, Table
from tests.benchmarks.postgres_ways import Way, documents_loop, floor, ours, timed
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
EACH_MINUTE = "UPDATE schedule_index SET cron = '* * * * *' WHERE next_fire_at = :due"
HOLD = "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM schema_version"


@contextmanager
def table(server: Postgres, rows: int) -> Iterator[Table]:
    """A database of its own, with that many schedules."""
    url = fresh_database(server)
    yield Table(url, rows).filled()
    drop_database(server, url)


def measure(made: Table, ways: Mapping[str, Way], due: int, rounds: int) -> dict[str, float]:
    """Rows a second of each way; they take turns, so that each meets the same table."""
    rates: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(rounds):
        for name, way in ways.items():
            claimed, seconds = timed(way, made.make_due(due))
            if claimed != due:
                raise AssertionError(f"{name} claimed {claimed} of {due}")
            rates[name].append(claimed / seconds)
    return {name: median(found) for name, found in rates.items()}


def show(title: str, rates: Mapping[str, float], base: float) -> None:
    print(f"\n{title}")
    for name, rate in rates.items():
        print(f"  {name:<44} {rate:>10,.0f} rows/s {rate / base:>8.1%}")


def all_ways(url: str) -> dict[str, Way]:
    return {
        "floor": floor(url),
        "duetick, chunks of 1,000": ours(open_store(url)),
        "duetick, chunks of 5,000": ours(open_store(url), 5_000),
        "the documents' loop": documents_loop(url),
    }


def compare(server: Postgres, rows: int, due: int, rounds: int) -> None:
    """Ours beside the floor and the loop."""
    with table(server, rows) as made:
        rates = measure(made, all_ways(made.url), due, rounds)
    show(f"{due:,} due of {rows:,}, {GROUPS:,} groups", rates, rates["floor"])
    loop = rates["the documents' loop"]
    print(f"  duetick is {rates['duetick, chunks of 1,000'] / loop:.1f} times the documents' loop")


def held_snapshot(server: Postgres, rows: int, due: int) -> None:
    """The share of the floor while a snapshot is held open through many ticks."""
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
    """One tick by each; ours is due again a minute later, the floor's rows are put back."""
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
    """Several processes claim from one table at once."""
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


def main(arguments: Sequence[str] | None = None) -> None:
    """Run all of it on a server of its own, or on the one that the environment names."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--due", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args(arguments)
    outside = os.environ.get(OUTSIDE)
    server = OutsidePostgres(outside) if outside else EmbeddedPostgres(DURABLE)
    try:
        for rows in sorted({given.due, given.rows}):
            compare(server, rows, given.due, given.rounds)
        together(server, given.rows, given.due, given.rounds)
        held_snapshot(server, given.rows, given.due)
    finally:
        if isinstance(server, EmbeddedPostgres):
            server.remove()


if __name__ == "__main__":
    main()

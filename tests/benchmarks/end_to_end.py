"""A tick from claim to answer, beside the documents' loop over the same rows, in one run.

Of 1,000,000 schedules in Postgres a number is due. The documents' loop takes a hundred rows at a
time FOR UPDATE SKIP LOCKED, asks croniter for each, and makes one UPDATE. Then it sends a signed
POST for each through urllib3, on kept connections: one after another, or 64 at once, and waits for
the hundred. It records nothing. Ours is `run_tick`: it records and leases each occurrence, then
delivers, 64 at once.

The endpoint is a process of its own, and answers at once, after 5 ms or after 50. An API Gateway
with a function behind it is never under 5. Where it answers at once it is processor time that
counts, and Postgres and the endpoint have theirs from the same cores: their shares are printed.
"""

import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeAlias

import urllib3
from duetick.core.tick import run_tick
from duetick.stores import open_store
from duetick.transports.http import HttpTransport

from tests.benchmarks.endpoint import answering, told
from tests.benchmarks.postgres_claim import DURABLE
from tests.benchmarks.postgres_data import Table
from tests.benchmarks.postgres_ways import a_hundred
from tests.benchmarks.signing import signed
from tests.lab.postgres import EmbeddedPostgres, connect, fresh_database

Way: TypeAlias = Callable[[str, int, int], int]
"""Delivers all that is due in the database, to a port, at a time; how many that were."""

ROWS: Final = 1_000_000
SLOTS: Final = 64
ROUNDS: Final = 3


@dataclass(frozen=True, slots=True)
class Run:
    """The occurrences of a second, and the microseconds of processor time of each, by process."""

    per_second: float
    here: float
    endpoint: float
    database: float

    def __str__(self) -> str:
        of = f"{self.here:.0f} here, {self.endpoint:.0f} endpoint, {self.database:.0f} Postgres"
        return f"{self.per_second:7,.0f}/s; CPU µs each: {of}"


@dataclass(frozen=True, slots=True)
class Bench:
    """The rows, the endpoint, and the server beside us."""

    table: Table
    server: EmbeddedPostgres
    port: int

    def run(self, count: int, way: Way) -> Run:
        """Make a number of rows due, and let them be delivered.

        Earlier deliveries are forgotten: the endpoint settles nothing, so their leases would end.
        """
        with connect(self.table.url) as connection:
            connection.run("TRUNCATE occurrences")
        now = self.table.make_due(count)
        before, begin = self._spent(), time.perf_counter()
        done = way(self.table.url, self.port, now)
        took = time.perf_counter() - begin
        assert done == count, (done, count)
        spent = zip(self._spent(), before, strict=True)
        return Run(done / took, *((after - earlier) / done * 1e6 for after, earlier in spent))

    def _spent(self) -> tuple[float, float, float]:
        return time.process_time(), told(self.port)["cpu"], processor_time(self.server.pid)


def processor_time(pid: int) -> float:
    """Return the seconds of a process and its children, dead or alive; 0 without /proc."""
    ticks = 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            text = stat.read_text()
        except OSError:
            continue  # it ended meanwhile
        fields = text.rpartition(")")[2].split()
        if stat.parent.name == str(pid):
            ticks += sum(map(int, fields[11:15]))
        elif fields[1] == str(pid):
            ticks += sum(map(int, fields[11:13]))
    return ticks / os.sysconf("SC_CLK_TCK")


def a_tick(url: str, port: int, now: int) -> int:
    """Claim, record, lease and deliver."""
    store = open_store(url)
    transport = HttpTransport(f"http://127.0.0.1:{port}", signed)
    report = run_tick(store, transport, now=now, budget=600)
    transport.close()
    store.close()
    return report.delivered


def one_after_another(url: str, port: int, now: int) -> int:
    """Run the documents' loop, and post each when the one before is answered."""
    pool = urllib3.HTTPConnectionPool("127.0.0.1", port)
    with connect(url) as connection:
        hundreds = iter(lambda: a_hundred(connection, now), [])
        return sum(_post(pool, row, now) for rows in hundreds for row in rows)


def all_at_once(url: str, port: int, now: int) -> int:
    """Run the documents' loop with 64 posts at once, and wait for each hundred."""
    pool = urllib3.HTTPConnectionPool("127.0.0.1", port, maxsize=SLOTS)
    done = 0
    with connect(url) as connection, ThreadPoolExecutor(SLOTS) as workers:
        while rows := a_hundred(connection, now):
            done += sum(workers.map(lambda row: _post(pool, row, now), rows))
    return done


def _post(pool: urllib3.HTTPConnectionPool, row: Sequence[str], now: int) -> bool:
    body = json.dumps({"nominalFireTime": now}).encode()
    path = f"/api/flows/mail/schedules/{row[0]}/{row[1]}/dispatch"
    headers = {"content-type": "application/json"}
    headers |= signed(f"127.0.0.1:{pool.port}", path, body)
    return pool.urlopen("POST", path, body=body, headers=headers).status == 202


OURS: Final = "a tick"
WAYS: Final[Mapping[str, Way]] = {
    "the loop, one after another": one_after_another,
    "the loop, 64 at once": all_at_once,
    OURS: a_tick,
}
PLAN: Final = (
    (0.0, (10_000, 10_000, 10_000)),
    (0.005, (500, 2_000, 10_000)),
    (0.05, (200, 2_000, 5_000)),
)
"""Seconds until the answer, and how many are due for each way: fewer where it would take long."""


def measure(rows: int = ROWS) -> None:
    """Measure each way in turn, some rounds, for each endpoint."""
    server = EmbeddedPostgres(DURABLE)
    url = fresh_database(server)
    table = Table(url, rows).filled()
    for delay, counts in PLAN:
        with answering(delay) as port:
            bench = Bench(table, server, port)
            ways = [*zip(WAYS, WAYS.values(), counts, strict=True)]
            rounds = [
                {name: bench.run(count, way) for name, way, count in ways} for _ in range(ROUNDS)
            ]
        tell(delay, counts, rounds)
    server.remove()


def tell(delay: float, counts: Sequence[int], rounds: Sequence[Mapping[str, Run]]) -> None:
    """Print the best run of each way, and ours beside the others.

    Other work of the machine only adds to a run. The ratios are of the best runs, and from the
    worst to the best round.
    """
    print(f"{ROWS:,} schedules, an endpoint that answers after {delay * 1_000:.0f} ms:")
    best = {
        name: max((each[name] for each in rounds), key=lambda run: run.per_second) for name in WAYS
    }
    for name, count in zip(WAYS, counts, strict=True):
        print(f"  {name:27} {count:6,} due {best[name]}")
    for name in WAYS:
        ratios = sorted(each[OURS].per_second / each[name].per_second for each in rounds)
        if name != OURS:
            ratio = best[OURS].per_second / best[name].per_second
            cpu = best[name].here / best[OURS].here
            print(f"  a tick: {ratio:.1f} times {name} ({ratios[0]:.1f} to {ratios[-1]:.1f}),")
            print(f"    at 1/{cpu:.1f} of its processor time")


if __name__ == "__main__":
    measure()

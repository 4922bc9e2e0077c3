"""A minute's mass through the local queue, on Postgres: `python -m tests.benchmarks.packs`.

    python -m tests.benchmarks.packs --due 100000 --spread 60 --workers 8
    python -m tests.benchmarks.packs --due 6000 --mass 100000 --backlog

So many schedules are put into Postgres, each due once, evenly over so many seconds that begin soon.
One tick claims them ahead and hands packs to the local queue. Worker processes, each with the real
dispatch handler, run the packs. Each action logs one line, as the README's. Lateness is that of the
ledger: from the due time to the begin. At the end `verify` accounts for each time.

With `--mass`, one user's so many are due at once, before the others: how late are those? With
`--backlog`, all is due already when the tick begins.
"""

import argparse
import multiprocessing
import os
import queue as queues
import resource
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any, Final

from duetick.cli.context import LocalContext
from duetick.core.store import Store
from duetick.core.tick.packing import run_pack_tick
from duetick.core.verify import verify
from duetick.domain.schedule import Occurrence, Schedule
from duetick.ports import Delivered
from duetick.stores import open_store
from duetick.transports.local_queue import LocalQueue

from tests.benchmarks.end_to_end import processor_time
from tests.benchmarks.postgres_claim import DURABLE
from tests.integration.handlers import load_handler
from tests.lab.credentials import DUMMY
from tests.lab.postgres import EmbeddedPostgres, connect, fresh_database

DAY_MS: Final = 86_400_000
LEAD_SECONDS: Final = 20
"""Seconds from the start of the tick to the first due time: it claims ahead meanwhile."""
COPIED: Final = ("schedules", "definitions", "schedule_index")
COMES_BACK_IN: Final = 5
TIMEOUT_MS: Final = 60_000

COPY: Final = """
INSERT INTO {table}
SELECT (jsonb_populate_record(
    t, jsonb_build_object('user_id', :user || n % :users::bigint, 'key', 'k' || n)
)).*
FROM {table} t, generate_series(1, :count::bigint) n WHERE t.user_id = :first
"""

LATENESS: Final = """
SELECT count(*), percentile_cont(ARRAY[0.5, 0.9, 0.99, 1.0])
    WITHIN GROUP (ORDER BY begun_at - greatest(due_at, :since::bigint))
FROM occurrences
WHERE state = 'succeeded' AND (user_id LIKE :users OR user_id LIKE 'first-' || :users)
"""


class NoCalls:
    """A transport for what has no place in a pack: nothing here."""

    def deliver(self, occurrence: Occurrence, *, timeout: float) -> Delivered:
        """No limit is set."""
        raise AssertionError(occurrence.identity)

    def close(self) -> None:
        """Nothing is open."""


@dataclass(slots=True)
class Spent:
    """The seconds of a worker: in handlers, and of the processor; its most memory."""

    busy: float
    cpu: float
    megabytes: float


def work(door: Connection, environment: Mapping[str, str]) -> None:
    """Answer events until None comes, as a sandbox of the dispatch function does."""
    os.environ.update(environment)
    sys.stdout = open(os.devnull, "w")  # noqa: SIM115  (the process's own, to its end)
    dispatch, busy = load_handler("dispatch"), 0.0
    door.send("ready")
    while (event := door.recv()) is not None:
        began = time.perf_counter()
        door.send(dispatch(event, LocalContext(TIMEOUT_MS)))
        busy += time.perf_counter() - began
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1_024
    door.send(Spent(busy, time.process_time(), memory))


class Workers:
    """Processes, to each of which one message is handed at a time."""

    def __init__(self, count: int, environment: Mapping[str, str]) -> None:
        context = multiprocessing.get_context("spawn")
        self._free: queues.Queue[Connection] = queues.Queue()
        self._doors: list[Connection] = []
        self.messages = 0
        self.failed = 0
        for _ in range(count):
            ours, theirs = context.Pipe()
            context.Process(target=work, args=(theirs, environment), daemon=True).start()
            theirs.close()  # so that the end of the process is the end of the pipe
            self._doors.append(ours)
        for door in self._doors:
            door.recv()
            self._free.put(door)

    def handle(self, event: dict[str, Any]) -> Mapping[str, Any]:
        """Hand an event to a process that is free, and wait for its answer."""
        door = self._free.get()
        try:
            door.send(event)
            answer: Mapping[str, Any] = door.recv()
        finally:
            self._free.put(door)
        self.messages += 1
        self.failed += bool(answer["batchItemFailures"])
        return answer

    def close(self) -> list[Spent]:
        """End the processes. Return what each has spent."""
        for door in self._doors:
            door.send(None)
        return [door.recv() for door in self._doors]


def put(bench: tuple[Store, str], user: str, at: int, count: int, users: int) -> None:
    """Put so many schedules that are due at an instant: one by the store, and copies of it."""
    store, url = bench
    first = f"first-{user}{at}"
    one = Schedule(first, "k0", "rate(1 day)", "reminders", "remind", input={"text": "hello"})
    store.schedules.put(one, now=at - DAY_MS)
    with connect(url) as connection:
        for table in COPIED:
            copy = COPY.format(table=table)
            connection.run(copy, user=user, users=users, count=count - 1, first=first)


def fill(store: Store, url: str, chosen: argparse.Namespace) -> int:
    """Put everything. Return the first due time."""
    print(
        f"{chosen.due:,} schedules over {chosen.spread} s, {chosen.mass:,} of one user", flush=True
    )
    lead = -chosen.spread if chosen.backlog else LEAD_SECONDS + chosen.due // 20_000
    begin: int = store.now() // 1_000 * 1_000 + lead * 1_000
    seconds = max(1, chosen.spread)
    for second in range(seconds):
        many = chosen.due // seconds
        put((store, url), f"u{second:02}-", begin + second * 1_000, many, many)
    if chosen.mass:
        put((store, url), "big", begin - 1_000, chosen.mass, 1)
    with connect(url) as connection:
        connection.run("VACUUM ANALYZE")
    return begin


def wait_for_all(url: str, count: int, seconds: float) -> float:
    """Wait until so many have succeeded. Return when that was."""
    end = time.monotonic() + seconds
    with connect(url) as connection:
        while time.monotonic() < end:
            ((done,),) = connection.run(
                "SELECT count(*) FROM occurrences WHERE state = 'succeeded'"
            )
            if done >= count:
                break
            time.sleep(1)
    return time.time()


def show_lateness(url: str, who: str, users: str, since: int) -> int:
    """Print how late occurrences began. Return how many have succeeded."""
    with connect(url) as connection:
        ((count, found),) = connection.run(LATENESS, users=users, since=since)
    if count:
        p50, p90, p99, most = (float(one) / 1_000 for one in found)
        print(f"  {who}: {count:,} succeeded; began p50 {p50:.2f} s, p90 {p90:.2f}, ", end="")
        print(f"p99 {p99:.2f}, the latest {most:.2f}", flush=True)
    return int(count)


def measure(chosen: argparse.Namespace, server: EmbeddedPostgres) -> bool:
    """Fill, tick, dispatch, verify. Return True if every time is accounted for."""
    url = fresh_database(server)
    store = open_store(url)
    store.migrate()
    told = {
        **DUMMY,
        "DUETICK_STORE": url,
        "DUETICK_QUEUE": "local",
        "DUETICK_API_URL": "http://127.0.0.1:9/v1",
        "POWERTOOLS_METRICS_NAMESPACE": "Duetick",
    }
    workers, queue = Workers(chosen.workers, told), LocalQueue()

    def handle(event: dict[str, Any]) -> Mapping[str, Any]:
        answer = workers.handle(event)
        if answer["batchItemFailures"]:
            queue.put_back(event["Records"][0]["receiptHandle"], COMES_BACK_IN)
        return answer

    queue.start(handle, chosen.workers)
    begin, total = fill(store, url, chosen), chosen.due // max(1, chosen.spread)
    total = total * max(1, chosen.spread) + chosen.mass
    before, own, started = processor_time(server.pid), time.process_time(), time.monotonic()
    ticked = store.now()
    report = run_pack_tick(store, queue, NoCalls(), budget=chosen.budget)
    took, cpu = time.monotonic() - started, time.process_time() - own
    print(
        f"  the tick: {report.claimed:,} claimed, {report.handed_on:,} handed on in "
        f"{report.packs:,} messages, {took:.1f} s, {report.claimed / took:,.0f} a second, "
        f"{cpu / max(1, report.claimed) * 1e6:.0f} µs of its processor each, "
        f"{report.left:,} left",
        flush=True,
    )
    last = max(begin / 1_000 + chosen.spread, ticked / 1_000)
    ended = wait_for_all(url, total, chosen.budget + chosen.spread + 120)
    print(f"  the last succeeded {ended - last:.0f} s after the last due time")
    since = ticked if chosen.backlog or begin < ticked else begin - 1_000
    mass = show_lateness(url, "one user", "big%", since) if chosen.mass else 0
    fine = show_lateness(url, "the others" if chosen.mass else "all", "u%", since)
    queue.close()
    show_spent(workers, processor_time(server.pid) - before, total)
    found = verify(store, begin - 2_000, begin + chosen.spread * 1_000, now=store.now())
    print(
        f"  verify: {found.schedules:,} schedules, {found.times:,} times, {found.under_way} under "
    )
    print(f"    way, {found.found.total()} faults; {workers.failed} messages came again")
    store.close()
    return found.found.total() == 0 and found.times >= total and mass + fine >= chosen.due


def show_spent(workers: Workers, database: float, total: int) -> None:
    """Print what workers and the database have spent."""
    spent = workers.close()
    busy, cpu = (sum(getattr(one, name) for one in spent) for name in ("busy", "cpu"))
    most = max(one.megabytes for one in spent)
    print(
        f"  {len(spent)} workers: {total / busy:,.0f} fires a second for each while busy, with "
        f"their waits; {cpu / total * 1e6:.0f} µs of their processor and "
        f"{database / total * 1e6:.0f} µs of Postgres' for each; {most:.0f} MB at most",
        flush=True,
    )


def main() -> int:
    """Print one run; the exit status is 1 if a time is not accounted for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--due", type=int, default=100_000)
    parser.add_argument("--spread", type=int, default=60, help="seconds")
    parser.add_argument("--mass", type=int, default=0, help="one user's")
    parser.add_argument("--workers", type=int, default=8)
    parser.add_argument("--budget", type=float, default=170.0, help="seconds of the tick")
    parser.add_argument("--backlog", action="store_true", help="all of it is late")
    chosen = parser.parse_args()
    os.environ.update(DUMMY)
    server = EmbeddedPostgres(DURABLE)
    try:
        return int(not measure(chosen, server))
    finally:
        server.remove()


if __name__ == "__main__":
    sys.exit(main())

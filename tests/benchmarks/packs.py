"""A minute's mass from the tick to its ends, on one store: `python -m tests.benchmarks.packs`.

    python -m tests.benchmarks.packs --due 100000 --spread 60 --workers 8
    python -m tests.benchmarks.packs --due 600 --spread 20 --mass 100000 --backlog
    python -m tests.benchmarks.packs --due 600 --spread 20 --mass 100000 --backlog --store sqlite
    python -m tests.benchmarks.packs --due 600 --spread 20 --mass 3000 --backlog --store dynamodb
    python -m tests.benchmarks.packs --due 600 --spread 20 --mass 100000 --backlog --transport api

So many schedules are put, each due once, evenly over so many seconds that begin soon. Over the
queue one tick claims them ahead and hands packs to the local queue. Over the API ticks of a
minute deliver each by a call of its own, 64 at once, until nothing is left. Worker processes,
each with the real dispatch handler, have one pack or call at a time, as sandboxes of Lambda; a
call waits in a line for one. A pipe stands for the gateway. Each action logs one line, as the
README's. Lateness is that of the ledger: from the due time to the begin. At the end `verify`
accounts for each time.

With `--mass`, one user's so many are due at once, before the others: how late are those? With
`--backlog`, all is due already when the tick begins. `--within` ends a run that takes too long, and
what has not succeeded by then is counted.
"""

import argparse
import multiprocessing
import os
import resource
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from queue import SimpleQueue
from typing import Any, Final

from duetick.cli.context import LocalContext
from duetick.cli.parsing import whole
from duetick.core.store import Store
from duetick.core.tick import TickReport, run_tick
from duetick.core.tick.packing import LOOK_AHEAD, run_pack_tick
from duetick.core.verify import verify
from duetick.domain.schedule import Occurrence, Schedule
from duetick.ports import Delivered
from duetick.stores import open_store
from duetick.transports.local_queue import LocalQueue, QueueState

from tests.benchmarks.masses import KINDS, Group, Mass, mass_on
from tests.benchmarks.usage import call_of
from tests.integration.handlers import load_handler
from tests.lab.credentials import DUMMY

DAY_MS: Final = 86_400_000
LEAD_SECONDS: Final = 20
"""Seconds from the start of the tick to the first due time: it claims ahead meanwhile."""
COMES_BACK_IN: Final = 5
EACH_MINUTE: Final = 55.0
"""The seconds of a tick that comes each minute: over the API a tick has no more."""
TOLD: Final = {
    **DUMMY,
    "DUETICK_API_URL": "http://127.0.0.1:9/v1",
    "POWERTOOLS_METRICS_NAMESPACE": "Duetick",
}
"""The environment of a worker besides its store."""
TIMEOUT_MS: Final = 60_000


class NoCalls:
    """A transport for occurrences that have no place in a pack: there are none here."""

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
    """Processes that each have one event at a time. `failed` counts packs."""

    def __init__(self, count: int, environment: Mapping[str, str]) -> None:
        context = multiprocessing.get_context("spawn")
        self._lock = threading.Lock()
        self._free: deque[Connection] = deque()
        self._waiting: deque[SimpleQueue[Connection]] = deque()
        self._doors: list[Connection] = []
        self.failed = 0
        for _ in range(count):
            ours, theirs = context.Pipe()
            context.Process(target=work, args=(theirs, environment), daemon=True).start()
            theirs.close()  # so that the end of the process is the end of the pipe
            self._doors.append(ours)
        for door in self._doors:
            door.recv()
            self._give(door)

    def handle(self, event: dict[str, Any]) -> Mapping[str, Any]:
        """Hand an event to a process that is free, and wait for its answer."""
        door = self._take()
        try:
            door.send(event)
            answer: Mapping[str, Any] = door.recv()
        finally:
            self._give(door)
        return answer

    def _take(self) -> Connection:
        """Wait in a line: the first in it gets the next process."""
        with self._lock:
            if self._free:
                return self._free.popleft()
            place = SimpleQueue[Connection]()
            self._waiting.append(place)
        return place.get()

    def _give(self, door: Connection) -> None:
        with self._lock:
            if self._waiting:
                self._waiting.popleft().put(door)
            else:
                self._free.append(door)

    def close(self) -> list[Spent]:
        """End the processes. Return the time and memory that each has spent."""
        for door in self._doors:
            door.send(None)
        return [door.recv() for door in self._doors]


class Calls:
    """A transport to the workers: each call is an event of the gateway."""

    def __init__(self, workers: Workers) -> None:
        self._workers = workers

    def deliver(self, occurrence: Occurrence, *, timeout: float) -> Delivered:
        """See `Transport`."""
        del timeout
        answer = self._workers.handle(call_of(occurrence))
        return Delivered(int(answer["statusCode"]), str(answer["body"]))

    def close(self) -> None:
        """Nothing is open: the workers are ended by who started them."""


def put(store: Store, mass: Mass, group: Group, at: int) -> None:
    """Put a group of schedules that are due at an instant: one by the store, the others as copies
    of it.
    """
    first = f"first-{group.user}{at}"
    one = Schedule(first, "k0", "rate(1 day)", "reminders", "remind", input={"text": "hello"})
    store.schedules.put(one, now=at - DAY_MS)
    mass.copy(one, at - DAY_MS, group._replace(size=group.size - 1))


def fill(store: Store, mass: Mass, chosen: argparse.Namespace) -> int:
    """Put everything. Return the first due time."""
    print(
        f"{chosen.store}, over the {chosen.transport}: {chosen.due:,} schedules over "
        f"{chosen.spread} s, {chosen.mass:,} of one user",
        flush=True,
    )
    lead = -chosen.spread if chosen.backlog else LEAD_SECONDS + chosen.due // 20_000
    begin: int = store.now() // 1_000 * 1_000 + lead * 1_000
    many = chosen.due // chosen.spread
    for second in range(chosen.spread):
        put(store, mass, Group(f"u{second:02}-", many, many), begin + second * 1_000)
    if chosen.mass:
        put(store, mass, Group("big", 1, chosen.mass), begin - 1_000)
    mass.settle_down()
    return begin


def hand_on(store: Store, workers: Workers, chosen: argparse.Namespace) -> None:
    """Run one tick that hands packs to the queue, until the queue is empty or the time is over."""
    state = QueueState()
    queue = LocalQueue(state)

    def handle(event: dict[str, Any]) -> Mapping[str, Any]:
        answer = workers.handle(event)
        if answer["batchItemFailures"]:
            workers.failed += 1
            queue.put_back(event["Records"][0]["receiptHandle"], COMES_BACK_IN)
        return answer

    queue.start(handle, chosen.workers)
    end = time.monotonic() + chosen.within
    show_tick(lambda: run_pack_tick(store, queue, NoCalls(), budget=chosen.budget))
    while len(state) and time.monotonic() < end:
        time.sleep(0.2)
    print(f"  {len(state)} messages are left in the queue", flush=True)
    queue.close()


def call(store: Store, workers: Workers, chosen: argparse.Namespace) -> None:
    """Run ticks that deliver each by a call, until nothing is left or the time is over."""
    end = time.monotonic() + chosen.within
    tick = partial(
        run_tick,
        store,
        Calls(workers),
        look_ahead=0 if chosen.backlog else LOOK_AHEAD,
    )
    while (left := end - time.monotonic()) > 0:
        if not show_tick(partial(tick, budget=min(chosen.budget, left, EACH_MINUTE))).left:
            break


def show_tick(tick: Callable[[], TickReport]) -> TickReport:
    """Run a tick, and print its report."""
    own, started = time.process_time(), time.monotonic()
    report = tick()
    took, cpu = time.monotonic() - started, time.process_time() - own
    print(
        f"  the tick: {report.claimed:,} claimed, {report.delivered:,} delivered, "
        f"{report.handed_on:,} handed on in {report.packs:,} messages, {took:.1f} s, "
        f"{report.claimed / took:,.0f} a second, "
        f"{cpu / max(1, report.claimed) * 1e6:.0f} µs of its processor each, "
        f"{report.left:,} left",
        flush=True,
    )
    return report


def show_lateness(mass: Mass, who: str, user: str, since: int) -> int:
    """Print the lateness of the begins. Return the number of successes."""
    late = sorted(begun_at - max(due_at, since) for begun_at, due_at in mass.read_begins(user))
    if late:
        p50, p90, p99, most = (
            late[min(len(late) - 1, int(len(late) * part))] / 1_000 for part in (0.5, 0.9, 0.99, 1)
        )
        print(f"  {who}: {len(late):,} succeeded; began p50 {p50:.2f} s, p90 {p90:.2f}, ", end="")
        print(f"p99 {p99:.2f}, the latest {most:.2f}", flush=True)
    return len(late)


def measure(chosen: argparse.Namespace, mass: Mass) -> bool:
    """Fill, tick, dispatch, verify. Return True if every time is accounted for."""
    store = open_store(mass.url)
    store.migrate()
    queue = {"DUETICK_QUEUE": "local"} if chosen.transport == "queue" else {}
    workers = Workers(chosen.workers, {**TOLD, **queue, "DUETICK_STORE": mass.url})
    begin = fill(store, mass, chosen)
    total = chosen.due // chosen.spread * chosen.spread + chosen.mass
    before, ticked = mass.processor_time(), store.now()
    WAYS[chosen.transport](store, workers, chosen)
    last = max(begin / 1_000 + chosen.spread, ticked / 1_000)
    print(f"  it ended {time.time() - last:.0f} s after the last due time")
    since = ticked if chosen.backlog or begin < ticked else begin - 1_000
    of_mass = show_lateness(mass, "one user", "big", since) if chosen.mass else 0
    of_others = show_lateness(mass, "the others" if chosen.mass else "all", "u", since)
    show_spent(workers, mass.processor_time() - before, of_mass + of_others)
    found = verify(store, begin - 2_000, begin + chosen.spread * 1_000, now=store.now())
    print(
        f"  verify: {found.schedules:,} schedules, {found.times:,} times, {found.under_way} under "
        f"way, {found.found.total()} faults; {workers.failed} messages came again; "
        f"{total - of_mass - of_others:,} have not succeeded",
        flush=True,
    )
    store.close()
    return found.found.total() == 0 and of_mass + of_others == total


WAYS: Final = {"queue": hand_on, "api": call}


def show_spent(workers: Workers, database: float, total: int) -> None:
    """Print the time that the workers and the database have spent."""
    spent = workers.close()
    busy, cpu = (sum(getattr(one, name) for one in spent) for name in ("busy", "cpu"))
    most = max(one.megabytes for one in spent)
    if not total:
        return
    print(
        f"  {len(spent)} workers: {total / busy:,.0f} fires a second for each while busy, with "
        f"their waits; {cpu / total * 1e6:.0f} µs of their processor and "
        f"{database / total * 1e6:.0f} µs of its server's for each; {most:.0f} MB at most",
        flush=True,
    )


def main() -> int:
    """Print one run; the exit status is 1 if a time is not accounted for, or has not succeeded."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--store", choices=KINDS, default="postgres")
    parser.add_argument("--transport", choices=WAYS, default="queue")
    parser.add_argument("--due", type=int, default=100_000)
    parser.add_argument("--spread", type=whole(1, 600), default=60, help="seconds")
    parser.add_argument("--mass", type=int, default=0, help="one user's")
    parser.add_argument("--workers", type=int, default=8)
    parser.add_argument("--budget", type=float, default=170.0, help="seconds of a tick")
    parser.add_argument("--within", type=float, default=400.0, help="seconds of all")
    parser.add_argument("--backlog", action="store_true", help="all of it is late")
    chosen = parser.parse_args()
    os.environ.update(DUMMY)
    with tempfile.TemporaryDirectory() as folder, mass_on(chosen.store, Path(folder)) as mass:
        return int(not measure(chosen, mass))


if __name__ == "__main__":
    sys.exit(main())

"""Measurements of what `duetick costs` takes for granted: `python -m tests.benchmarks.usage`.

    python -m tests.benchmarks.usage dynamodb        # in the environment of a function
    python -m tests.benchmarks.usage dynamodb packs
    python -m tests.benchmarks.usage dynamodb bells

The functions' own handlers, warm, against DynamoDB Local and the embedded Postgres. A function of
512 MB has 0.29 of a processor, so seconds as billed are CPU / 0.29 and the waits: requests are
counted on DynamoDB, and each is taken to last as long as one inside a region does. CPU is this
process's alone. The bytes that Lambda itself logs of an invocation are added to those of the
functions.
"""

import contextlib
import io
import json
import logging
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import astuple, dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final, get_args

from duetick.cli.context import LocalContext
from duetick.cli.costs import Usage
from duetick.core.managed.trigger import Trigger, keep_trigger
from duetick.core.managed.watched import Followers
from duetick.core.store import Store
from duetick.core.tick.packing import LOOK_AHEAD
from duetick.core.wire import delivery_json
from duetick.core.witness import catch_up
from duetick.domain.bells import SCHEDULED_TIME, bell_of
from duetick.domain.identity import to_path
from duetick.domain.packs import OutgoingMessage, Packer
from duetick.domain.schedule import Json, Occurrence, Schedule
from duetick.domain.states import State
from duetick.runtime import wiring
from duetick.stores.dynamodb.shelf import DynamoShelf
from duetick.transports.local_queue import LocalQueue, QueueState, event_of

from tests.benchmarks.cold_start import Backend, database
from tests.benchmarks.dynamodb_units import Meter
from tests.benchmarks.endpoint import answering
from tests.integration.handlers import TOP, load_handler
from tests.lab.credentials import DUMMY

FIRES: Final = 500
TICKS: Final = 20
LONE: Final = 50
AT_ONCE: Final = 8
"""The requests to DynamoDB that a pack makes side by side."""
BILLED_PART: Final = 64 * 1_024
"""The bytes of a batch for which SQS bills a request."""
BATCH: Final = 10
ROUND_TRIP: Final = 0.004
"""Seconds of one request to a service or a database in the same region: an assumption."""
EVENTBRIDGE: Final = 0.05
"""Seconds of a call of EventBridge Scheduler: an assumption."""
LAMBDA_LOG_KB: Final = 0.6
"""Its lines platform.start and platform.report, as JSON: an assumption."""
SLACK: Final = 0.1
WHOLE_PROCESSOR_GB: Final = 1_769 / 1_024
TEXT: Final[Json] = {"text": "good morning"}
NOMINAL: Final = "2026-11-20T09:00:00Z"
RINGS: Final = Trigger(
    "stack", group="bells", role="role", dispatch="dispatch", tick="tick", moved_until=None,
    settled=True,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Spent:
    """Of one invocation, or of one fire in it."""

    cpu: float
    log_kb: float
    trips: float
    reads: float
    writes: float

    def billed(self, *, waits: bool = True, at_once: int = 1) -> float:
        """Return the billed seconds. Deliveries of one tick wait side by side: theirs are nearly
        nothing.
        """
        working = self.cpu / (Usage().memory_gb / WHOLE_PROCESSOR_GB)
        return working + waits * self.trips * ROUND_TRIP / at_once


class Watch:
    """A watch on the log, and on the requests to DynamoDB."""

    def __init__(self, log: io.StringIO, store: Store) -> None:
        self._log = log
        self._meter: Meter | None = None
        if isinstance(store.shelf, DynamoShelf):
            self._meter = Meter(store.shelf)

    def spent(self, work: Callable[[], int]) -> Spent:
        """Return the usage of one piece of work. `work` returns how many pieces it did."""
        logged, asked, (read, written) = self._log.tell(), self._asked(), self._units()
        began = time.process_time()
        times = work()
        cpu = time.process_time() - began
        reads, writes = self._units()
        return Spent(
            cpu / times,
            (self._log.tell() - logged) / 1_024 / times + LAMBDA_LOG_KB,
            (self._asked() - asked) / times,
            (reads - read) / times,
            (writes - written) / times,
        )

    def _asked(self) -> int:
        return self._meter.requests if self._meter else 0

    def _units(self) -> tuple[float, float]:
        return (self._meter.reads, self._meter.writes) if self._meter else (0.0, 0.0)


def put(store: Store, prefix: str, count: int = FIRES) -> int:
    """Put many schedules, each due once. Return their number."""
    made = store.now() - 130_000
    for number in range(count):
        user = f"{prefix}{number}"
        schedule = Schedule(user, "hello", "rate(2 minutes)", "reminders", "remind", input=TEXT)
        store.schedules.put(schedule, now=made)
    return count


@cache
def _recorded_call() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((TOP / "events" / "dispatch-iam.json").read_text())
    return found


def call_of(occurrence: Occurrence) -> dict[str, Any]:
    """Return the call of dispatch that a tick makes of an occurrence."""
    return {
        **_recorded_call(),
        "path": f"/api/flows/reminders/schedules/{to_path(occurrence.schedule_id)}/dispatch",
        "body": json.dumps(delivery_json(occurrence)),
    }


def measure() -> dict[str, Spent]:
    """Measure in this process, whose environment names the database."""
    log = io.StringIO()
    with contextlib.redirect_stdout(log):
        store = wiring.store()
        store.migrate()
        os.environ["DUETICK_WITNESS"] = "ssm:of-an-hour-that-is-not-over"
        catch_up(store, store.now())
        watch = Watch(log, store)
        tick, dispatch = load_handler("tick"), load_handler("dispatch")

        def ticks() -> int:
            return sum(not tick({}, LocalContext(60_000))["claimed"] for _ in range(TICKS))

        def fires() -> int:
            return int(tick({}, LocalContext(60_000))["delivered"])

        def dispatches() -> int:
            return [dispatch(one, LocalContext(29_000))["statusCode"] for one in told].count(202)

        ticks()
        found = {"tick": watch.spent(ticks)}
        put(store, "ann")
        found["fire"] = watch.spent(fires)
        put(store, "bea")
        told = [*map(call_of, store.index.claim_due(store.now(), FIRES))]
        found["dispatch"] = watch.spent(dispatches)
    return found


def measure_packs() -> dict[str, Spent]:
    """Measure packs: a fire in the tick, a pack of one fire, a pack of a hundred.

    The action logs nothing of its own here.
    """
    logging.getLogger("duetick.flows").disabled = True
    logging.getLogger("duetick.flows.reminders").disabled = True
    log, state = io.StringIO(), QueueState()
    os.environ["DUETICK_QUEUE"] = "local"
    with contextlib.redirect_stdout(log):
        store = wiring.store()
        store.migrate()
        watch = Watch(log, store)
        wiring.queue.cache_clear()
        vars(wiring)["local_queue"] = lambda: LocalQueue(state)
        tick, dispatch = load_handler("tick"), load_handler("dispatch")

        def fires() -> int:
            return int(tick({}, LocalContext(60_000))["handed_on"])

        def packs() -> int:
            return sum(not dispatch(one, LocalContext(60_000))["batchItemFailures"] for one in told)

        def taken(prefix: str, count: int) -> list[Occurrence]:
            put(store, prefix, count)
            found: list[Occurrence] = []
            while len(found) < count:
                found += store.index.claim_due(store.now(), count)
            return found

        put(store, "ann")
        found = {"packed": watch.spent(fires)}
        told = [event for one in taken("bea", LONE) for event in messages([one], state)]
        packs()  # the first ones import what a pack needs
        told = [event for one in taken("cyd", LONE) for event in messages([one], state)]
        found["lone"] = watch.spent(packs)
        told = messages(taken("dan", FIRES), state)
        found["pack"] = watch.spent(packs)
    return found


def measure_bells() -> dict[str, Spent]:
    """Measure with Trigger=managed: a ring from its event to its end, and a put with and without
    its bell. EventBridge is an endpoint that answers at once.
    """
    os.environ["DUETICK_WITNESS"] = "ssm:of-an-hour-that-is-not-over"
    log, followers = io.StringIO(), Followers()
    with contextlib.redirect_stdout(log):
        plain = wiring.store()
        plain.migrate()
        keep_trigger(plain, RINGS)
        catch_up(plain, plain.now())
        store, watch = Store(plain.shelf, plain.now, followers=followers), Watch(log, plain)
        os.environ["DUETICK_TRIGGER"] = "managed"
        os.environ["AWS_ENDPOINT_URL_SCHEDULER"] = wiring.settings().api_url.removesuffix("/v1")
        vars(wiring)["store"] = lambda: store
        dispatch = load_handler("dispatch")
        followers.bell_moved, followers.waits = wiring.bells().keep, wiring.bells().wake

        def rings() -> int:
            return [dispatch(one, LocalContext(60_000))["statusCode"] for one in told].count(204)

        put(store, "ann", LONE)
        told = [*ringing(store, "ann", LONE)]
        rings()  # the first ones import what a ring needs
        found = {"put": watch.spent(lambda: put(plain, "bea"))}
        found["belled"] = watch.spent(lambda: put(store, "cyd"))
        told = [*ringing(store, "cyd", FIRES)]
        found["ring"] = watch.spent(rings)
        check_fired(store, "cyd")
    return found


def check_fired(store: Store, prefix: str) -> None:
    """Check in the ledger that the rings fired: a ring answers 204 in any case."""
    for number in range(FIRES):
        states = [one.state for one in store.ledger.find(f"{prefix}{number}")]
        if states != [State.SUCCEEDED]:
            raise AssertionError(states)


def ringing(store: Store, prefix: str, count: int) -> Iterator[dict[str, Any]]:
    """Yield the events of the bells of the rows, as EventBridge sends them."""
    for number in range(count):
        row = store.index.get(f"{prefix}{number}", "hello")
        bell = bell_of(row, store.now()) if row else None
        if not bell:
            raise AssertionError(row)
        event: dict[str, Any] = json.loads(bell.payload.replace(SCHEDULED_TIME, NOMINAL))
        yield event


def messages(claimed: Sequence[Occurrence], state: QueueState) -> list[dict[str, Any]]:
    """Return the events of dispatch that a queue would make of the packs of these."""
    now, packer = wiring.store().now(), Packer("tick")
    while state.receive(now + LOOK_AHEAD + 1_000):
        pass
    made: list[OutgoingMessage] = [*packer.add(claimed, now), *packer.take(now)]
    for one in made:
        state.put(one.body, one.group, 0, now)
    billed_send_parts(made)
    return [event_of([one]) for one in iter(lambda: state.receive(now), None)]


def billed_send_parts(made: Sequence[OutgoingMessage]) -> None:
    """Check that a batch of messages is billed as no more requests than it has messages."""
    for first in range(0, len(made), BATCH):
        batch = made[first : first + BATCH]
        parts = -(-sum(len(one.body) for one in batch) // BILLED_PART)
        if parts > len(batch):
            raise AssertionError((parts, len(batch)))


def show_bells(backend: str, found: dict[str, Spent]) -> bool:
    """Print the usage beside the calculation's. Return True if that has no fewer units and no less
    log.
    """
    taken, ring = Usage(), found["ring"]
    bell = bell_between(found["put"], found["belled"])
    told = {
        "ring": (ring, ring.billed(), taken.ring_seconds),
        "bell": (bell, bell.billed() + EVENTBRIDGE, taken.bell_seconds),
    }
    for name, (one, seconds, assumed) in told.items():
        print(
            f"{backend:9} {name:9} {one.cpu * 1_000:6.2f} ms of CPU, {one.trips:4.1f} requests, "
            f"{one.reads:4.1f} read units, {one.writes:4.1f} write units: "
            f"{seconds * 1_000:5.1f} ms billed ({assumed * 1_000:g} taken), "
            f"{one.log_kb:.2f} kB of log"
        )
    rings = ring.reads <= taken.ring_reads and ring.writes <= taken.ring_writes
    bells = bell.reads <= taken.bell_reads and bell.writes <= taken.bell_writes
    return rings and bells and ring.log_kb <= taken.ring_log_kb + SLACK


def bell_between(put: Spent, belled: Spent) -> Spent:
    """Return the usage of a put's bell alone. Its requests are those to the database."""
    before, after = astuple(put), astuple(belled)
    return Spent(*(more - less for less, more in zip(before, after, strict=True)))


def show_packs(backend: str, found: dict[str, Spent]) -> bool:
    """Print the usage beside the calculation's. Return True if that has no fewer units and no less
    log.
    """
    taken = Usage()
    fires = taken.pack_fires
    seconds = {
        "packed": taken.pack_tick_seconds,
        "lone": taken.pack_seconds,
        "pack": taken.pack_seconds + (fires - 1) * taken.pack_fire_seconds,
    }
    for name, one in found.items():
        at_once = AT_ONCE if name == "pack" and backend == "dynamodb" else 1
        billed = one.billed(waits=name != "packed", at_once=at_once)
        print(
            f"{backend:9} {name:9} {one.cpu * 1_000:6.2f} ms of CPU, {one.trips:5.1f} requests, "
            f"{one.reads:5.1f} read units, {one.writes:5.1f} write units: "
            f"{billed * 1_000:6.1f} ms billed ({seconds[name] * 1_000:g} taken), "
            f"{one.log_kb:.2f} kB of log"
        )
    log = {"packed": LAMBDA_LOG_KB + SLACK, "lone": taken.pack_log_kb, "pack": taken.pack_log_kb}
    reads = found["packed"].reads + found["pack"].reads / fires
    writes = found["packed"].writes + found["pack"].writes / fires
    is_within = reads <= taken.fire_reads and writes <= taken.fire_writes
    return is_within and all(one.log_kb <= log[name] + SLACK for name, one in found.items())


def show(backend: str, found: dict[str, Spent]) -> bool:
    """Print the usage beside the calculation's. Return True if that has no fewer units and no less
    log.
    """
    taken = Usage()
    assumed = {
        "tick": (taken.tick_seconds, taken.tick_reads, taken.tick_log_kb),
        "fire": (taken.fire_tick_seconds, taken.fire_reads, LAMBDA_LOG_KB + SLACK),
        "dispatch": (taken.fire_dispatch_seconds, taken.fire_reads, taken.fire_log_kb),
    }
    for name, one in found.items():
        seconds = one.billed(waits=name != "fire")
        print(
            f"{backend:9} {name:9} {one.cpu * 1_000:6.2f} ms of CPU, {one.trips:4.1f} requests, "
            f"{one.reads:4.1f} read units: {seconds * 1_000:5.1f} ms billed "
            f"({assumed[name][0] * 1_000:g} taken), {one.log_kb:.2f} kB of log"
        )
    return all(
        one.reads <= assumed[name][1] and one.log_kb <= assumed[name][2] + SLACK
        for name, one in found.items()
    )


WAYS: Final = {
    "api": (measure, show),
    "packs": (measure_packs, show_packs),
    "bells": (measure_bells, show_bells),
}


def main() -> int:
    """Measure each backend in a process of its own: wired objects stay wired."""
    if len(sys.argv) > 1:
        backend, way = sys.argv[1], (sys.argv[2:] or ["api"])[0]
        measured, shown = WAYS[way]
        return int(not shown(backend, measured()))
    os.environ |= DUMMY
    with tempfile.TemporaryDirectory() as name, answering(0.0) as port:
        for backend in get_args(Backend):
            folder = Path(name, backend)
            folder.mkdir()
            with database(backend, folder) as environment:
                api = {"DUETICK_API_URL": f"http://127.0.0.1:{port}/v1", "AWS_REGION": "us-east-1"}
                command = [sys.executable, "-m", "tests.benchmarks.usage", backend]
                env = {**os.environ, **environment, **api}
                for way in WAYS:
                    subprocess.run([*command, way], env=env, cwd=TOP, check=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())

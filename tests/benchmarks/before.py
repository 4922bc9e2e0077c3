"""Every figure of the stores beside those of another checkout, in one run.

    python -m tests.benchmarks.before ../another-checkout
    python -m tests.benchmarks.before ../another-checkout --only postgres --rounds 3

Each round runs a process of each checkout on a database of its own, one after the other, in turn.
The medians of all rounds are compared, by wall and by the processor time of the process; below 1.00
this checkout is quicker. Both checkouts must know the calls that are used here.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from time import perf_counter, process_time
from typing import TYPE_CHECKING, Final, TypeAlias, TypeVar, cast

from duetick.core.tick import run_tick
from duetick.domain.policies import Delivery, Policies
from duetick.domain.schedule import IndexRow, Occurrence, Schedule
from duetick.domain.states import Reason, State
from duetick.stores import open_store

if TYPE_CHECKING:
    from duetick.core.store import Store
    from duetick.domain.attempts import Outcome
    from duetick.ports import Delivered

Took: TypeAlias = tuple[float, float]
"""Microseconds for one, of wall and of this process's own processor time."""

Round: TypeAlias = Mapping[str, Sequence[Sequence[float]]]
"""The times of each way, here and there."""

T = TypeVar("T")

NOON: Final = 1_803_902_400_000
MINUTE: Final = 60_000
DAY: Final = 86_400_000
HERE: Final = Path(__file__).parents[2]
RETRIED: Final = Policies(delivery=Delivery.AT_LEAST_ONCE)
SIZES: Final = {"memory": 2_000, "sqlite": 2_000, "postgres": 2_000, "dynamodb": 200}
"""The schedules of each kind of store. `memory` is SQLite without a disk, which may be busy."""

KEEPS_MEMORY: Final = {"MALLOC_TRIM_THRESHOLD_": "1000000000", "MALLOC_TOP_PAD_": "16777216"}
"""Else the allocator may give memory back at the end of a call, and take it again at the next. That
takes as long as a begin, and whether it happens depends on how the objects lie.
"""

CRONS: Final = ("0 12 * * *", "*/5 * * * *", "0 * * * MON-FRI", "0 12 1 * *", "* * * * *")


@dataclass(frozen=True, slots=True)
class Answered:
    """An answer of dispatch. Its type has another home in each checkout."""

    status: int = 202
    detail: str = '{"status": "accepted"}'


@dataclass(frozen=True, slots=True)
class Accepting:
    """A transport whose endpoint begins and settles at once."""

    store: "Store"
    outcome: "Outcome"

    def deliver(self, occurrence: Occurrence, *, timeout: float) -> "Delivered":
        """Run it, and succeed."""
        del timeout
        now = occurrence.due_at + 1  # the tick's own time: no clock is behind the claim's
        begun = self.store.ledger.begin(occurrence, now=now)
        if isinstance(getattr(begun, "occurrence", None), Occurrence):
            self.store.ledger.settle(_begun(begun), self.outcome, now=now)
        return cast("Delivered", Answered())

    def close(self) -> None:
        """Nothing is open."""


def measure(url: str, size: int) -> dict[str, Took]:
    """Measure each way on an empty database."""
    store = open_store(url)
    store.migrate()
    took = dict(_changes(store, size // 10)) | dict(_ticks(store, size // 4))
    took |= dict(_fires(store, size)) | dict(_idle(store))
    store.close()
    return took


def _changes(store: "Store", size: int) -> Iterator[tuple[str, Took]]:
    """Measure a schedule's own changes."""
    made = [
        Schedule(f"u{n}", "k", "0 9 * * *", "mail", "send", input={"n": n}) for n in range(size)
    ]
    put = store.schedules.put
    yield "put: create", timed(lambda one: put(one, now=NOON), made)
    yield "put: same", timed(lambda one: put(one, now=NOON + 1), made)
    other = [replace(one, input={"n": -1}) for one in made]
    yield "put: input", timed(lambda one: put(one, now=NOON + 2), other)
    later = [replace(one, cron="0 10 * * *", input={"n": -1}) for one in made]
    yield "put: timing", timed(lambda one: put(one, now=NOON + 3), later)
    off = [replace(one, enabled=False) for one in later]
    yield "put: disable", timed(lambda one: put(one, now=NOON + 4), off)
    yield "get", timed(lambda one: store.schedules.get(one.user_id, one.key), made)
    delete = store.schedules.delete
    yield "delete", timed(lambda one: delete(one.user_id, one.key, now=NOON + 5), made)


def _fires(store: "Store", size: int) -> Iterator[tuple[str, Took]]:
    """Measure one noon claimed, begun and settled, and the next minutes by whole ticks."""
    for n in range(size):
        cron = CRONS[n % 5]
        made = Schedule(
            f"f{n}", "k", cron, "mail", "send", timezone="Europe/Berlin", policies=RETRIED
        )
        store.schedules.put(made, now=NOON - 1)
        row = store.index.get(f"f{n}", "k")
        assert row
        store.index.upsert(replace(row, next_fire_at=NOON))
    claimed: list[Occurrence] = []

    def claim(_: int) -> None:
        claimed.extend(store.index.claim_due(NOON, 1_000))

    yield "claim", spread(timed(claim, range(-(-size // 1_000))), size)
    running: list[Occurrence] = []

    def begin(one: Occurrence) -> None:
        running.append(_begun(store.ledger.begin(one, now=NOON + 1)))

    yield "begin", timed(begin, claimed)
    third = len(running) // 3
    good, bad, rest = running[:third], running[third : 2 * third], running[2 * third :]
    outcome = _outcomes()
    settle = store.ledger.settle
    yield "settle: success", timed(lambda one: settle(one, outcome[0], now=NOON + 2), good)
    yield "settle: failure", timed(lambda one: settle(one, outcome[1], now=NOON + 2), bad)
    renew = store.ledger.renew
    yield "renew", timed(lambda one: renew(one, now=NOON + 2), rest)
    retries: list[Occurrence] = []

    def lease(_: int) -> None:
        retries.extend(store.ledger.claim_waiting(NOON + MINUTE, 1_000))

    yield "lease retries", spread(timed(lease, range(-(-len(bad) // 1_000))), len(bad))
    release = store.ledger.release
    again = [one for one in store.index.claim_due(NOON + MINUTE, 100) if one.attempts == 0]
    yield "release", timed(lambda one: release(one, now=NOON + MINUTE), again)


def _ticks(store: "Store", size: int) -> Iterator[tuple[str, Took]]:
    """Measure a whole tick whose endpoint begins and settles."""
    at, report = NOON + 10 * DAY, list[int]()
    for n in range(size):
        store.index.upsert(IndexRow(f"t{n}", "k", CRONS[n % 5], "Europe/Berlin", at, "mail"))

    def tick(_: int) -> None:
        to = Accepting(store, _outcomes()[0])
        report.append(run_tick(store, to, now=at + 1, slots=8).delivered)

    took = timed(tick, [0])
    assert report == [size], f"{report} of {size} were delivered"
    yield "a tick's fire", spread(took, size)


def _idle(store: "Store") -> Iterator[tuple[str, Took]]:
    """Ticks that find nothing; pages of the history."""
    to, then = Accepting(store, _outcomes()[0]), NOON - DAY
    yield "idle tick", timed(lambda _: run_tick(store, to, now=then, slots=2), range(20))
    yield "history page", timed(lambda n: store.ledger.find(f"f{n}", "k", limit=50), range(100))


def _begun(answer: object) -> Occurrence:
    """Return the occurrence of a begin. The answer's type has another home in each checkout."""
    found = getattr(answer, "occurrence", None)
    assert isinstance(found, Occurrence)
    return found


def _outcomes() -> "tuple[Outcome, Outcome]":
    from duetick.domain.attempts import SUCCEEDED, Outcome

    return SUCCEEDED, Outcome(State.FAILED, Reason.FAILED, "no mail server")


def timed(act: Callable[[T], object], each: Sequence[T]) -> Took:
    """Microseconds for one."""
    if not each:
        raise SystemExit("Nothing was there to be measured.")
    begin, spent = perf_counter(), process_time()
    for one in each:
        act(one)
    took = (perf_counter() - begin, process_time() - spent)
    return took[0] / len(each) * 1e6, took[1] / len(each) * 1e6


def spread(took: Took, over: int) -> Took:
    """Return the time of each of `over` things that one call did."""
    return took[0] / over, took[1] / over


def run(checkout: Path, url: str, size: int) -> dict[str, list[float]]:
    """Run one round of a checkout in a process of its own."""
    from tests.lab.credentials import DUMMY

    path = [str(checkout / "layers/duetick"), str(HERE)]
    command = [sys.executable, "-m", "tests.benchmarks.before", str(checkout)]
    done = subprocess.run(
        [*command, "--at", url, "--size", str(size)],
        env=os.environ | DUMMY | KEEPS_MEMORY | {"PYTHONPATH": os.pathsep.join(path)},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise SystemExit(f"{checkout} failed:\n{done.stderr[-2_000:]}")
    found: dict[str, list[float]] = json.loads(done.stdout)
    return found


def addresses(kinds: Sequence[str]) -> Iterator[tuple[str, Callable[[], str]]]:
    """Fresh databases of each kind."""
    for kind in kinds:
        with ExitStack() as open_now, tempfile.TemporaryDirectory() as folder:
            yield kind, _fresh(kind, Path(folder), open_now)


def _fresh(kind: str, folder: Path, open_now: ExitStack) -> Callable[[], str]:
    from tests.benchmarks.postgres_claim import DURABLE
    from tests.lab.dynamodb import start_dynamodb_local, table_name
    from tests.lab.postgres import EmbeddedPostgres, drop_database, fresh_database

    if kind == "memory":
        return lambda: "sqlite://"
    if kind == "postgres":
        server = EmbeddedPostgres(DURABLE)
        open_now.callback(server.remove)
        made: list[str] = []

        def fresh() -> str:
            for url in made:
                drop_database(server, url)
            made[:] = [fresh_database(server)]
            return made[0]

        return fresh
    if kind == "dynamodb":
        local = start_dynamodb_local(folder)
        open_now.callback(local.stop)
        return lambda: local.table_url(table_name())
    numbers = iter(range(10_000))
    return lambda: f"sqlite:///{folder}/{next(numbers)}.db"


def compare(here: Path, other: Path, kinds: Sequence[str], rounds: int) -> None:
    """Print the medians of all rounds, and their ratio."""
    for kind, fresh in addresses(kinds):
        found: list[Round] = []
        for number in range(rounds):
            order = (here, other) if number % 2 else (other, here)
            one = {checkout: run(checkout, fresh(), SIZES[kind]) for checkout in order}
            found.append({way: [one[here][way], one[other][way]] for way in one[here]})
        print(f"{kind}, {rounds} rounds: µs here, µs there, ratio; by wall, then by processor")
        for way in found[0]:
            cells = [_cell(found, way, place) for place in (0, 1)]
            print(f"  {way:16} {'   '.join(cells)}", flush=True)


def _cell(found: Sequence[Round], way: str, place: int) -> str:
    here, there = (median(one[way][side][place] for one in found) for side in (0, 1))
    return f"{here:8.0f} {there:8.0f} {here / there if there else 0:5.2f}"


def main() -> None:
    """See the module's own words."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("other", type=Path, help="another checkout of Duetick")
    parser.add_argument("--only", choices=SIZES, action="append", help="one kind of store")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--at", help="measure this checkout alone, on an empty database")
    parser.add_argument("--size", type=int, default=2_000)
    given = parser.parse_args()
    if given.at:
        print(json.dumps(measure(given.at, given.size)))
    else:
        compare(HERE, given.other.resolve(), given.only or list(SIZES), given.rounds)


if __name__ == "__main__":
    main()

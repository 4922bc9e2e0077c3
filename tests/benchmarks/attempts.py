"""The time of a begin and a settle on Postgres, beside those of another checkout.

    python -m tests.benchmarks.attempts
    python -m tests.benchmarks.attempts --beside ../another-checkout

Each round runs a process of each checkout, on a database of its own, one after the other. The
medians of seven rounds are compared. An overlap is the begin of an occurrence whose predecessor
runs; a failure is the settle of an attempt that is tried again.
"""

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from statistics import median
from time import perf_counter, process_time

from duetick.core.store import Store
from duetick.domain.attempts import SUCCEEDED, Begun, Outcome
from duetick.domain.policies import Delivery, Policies
from duetick.domain.schedule import Occurrence, Schedule
from duetick.domain.states import Reason, State
from duetick.stores import open_store

from tests.benchmarks.postgres_claim import DURABLE
from tests.lab.postgres import EmbeddedPostgres, Postgres, drop_database, fresh_database

ROUNDS = 7
SCHEDULES = 300
NOON = 1_803_902_400_000
MINUTE = 60_000
HERE = Path(__file__).parents[2]
FAILED = Outcome(State.FAILED, Reason.FAILED, "no mail server")


def measure(url: str) -> dict[str, tuple[float, float]]:
    """Microseconds of wall and of processor time for each way, on an empty database."""
    store = open_store(url)
    store.migrate()
    retried = Policies(delivery=Delivery.AT_LEAST_ONCE)
    for number in range(SCHEDULES):
        made = Schedule(f"user{number}", "digest", "* * * * *", "mail", "send", policies=retried)
        store.schedules.put(made, now=NOON - 1)
    took = dict(_minutes(store))
    store.close()
    return took


def _minutes(store: Store) -> Iterator[tuple[str, tuple[float, float]]]:
    """Run one minute's occurrences, and begin the next minute's while half of them still run."""
    ledger, running = store.ledger, list[Occurrence]()
    claimed = store.index.claim_due(NOON, limit=SCHEDULES)

    def begin(occurrence: Occurrence) -> None:
        begun = ledger.begin(occurrence, now=NOON)
        if isinstance(begun, Begun):
            running.append(begun.occurrence)

    yield "begin", _timed(begin, claimed)
    ended, held = running[: SCHEDULES // 2], running[SCHEDULES // 2 :]
    yield "success", _timed(lambda one: ledger.settle(one, SUCCEEDED, now=NOON), ended)
    busy = {one.user_id for one in held}
    later = store.index.claim_due(NOON + MINUTE - 1_000, limit=SCHEDULES, ahead=2_000)
    behind = [one for one in later if one.user_id in busy]
    yield "overlap", _timed(lambda one: ledger.begin(one, now=NOON + 1), behind)
    yield "failure", _timed(lambda one: ledger.settle(one, FAILED, now=NOON + 2), held)


def _timed(act: Callable[[Occurrence], object], each: Sequence[Occurrence]) -> tuple[float, float]:
    """Microseconds for one, of wall and of this process's own processor time."""
    if not each:
        raise SystemExit("Nothing was there to be measured.")
    begin, spent = perf_counter(), process_time()
    for one in each:
        act(one)
    took = (perf_counter() - begin, process_time() - spent)
    return took[0] / len(each) * 1e6, took[1] / len(each) * 1e6


def run(checkout: Path, server: Postgres) -> dict[str, list[float]]:
    """Run one round of a checkout in a process of its own."""
    url = fresh_database(server)
    path = [str(checkout / "layers/duetick"), str(HERE)]
    try:
        printed = subprocess.run(
            [sys.executable, "-m", "tests.benchmarks.attempts", "--at", url],
            env=os.environ | {"PYTHONPATH": os.pathsep.join(path)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
    finally:
        drop_database(server, url)
    found: dict[str, list[float]] = json.loads(printed)
    return found


def compare(checkouts: Sequence[Path]) -> None:
    """Print the medians of all rounds, and their ratio to the last checkout's."""
    server = EmbeddedPostgres(DURABLE)
    rounds = [[run(each, server) for each in checkouts] for _ in range(ROUNDS)]
    for way in rounds[0][0]:
        for place, kind in enumerate(("wall", "processor")):
            middle = [median(one[n][way][place] for one in rounds) for n in range(len(checkouts))]
            told = "  ".join(f"{each:7.0f} µs" for each in middle)
            print(f"{way:8} {kind:9} {told}   {middle[0] / middle[-1]:5.2f}")


def main() -> None:
    """See the module's own words."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--beside", type=Path, help="another checkout of Duetick")
    parser.add_argument("--at", help="measure this checkout alone, on an empty database")
    given = parser.parse_args()
    if given.at:
        print(json.dumps(measure(given.at)))
    else:
        compare([HERE, *([given.beside.resolve()] if given.beside else [])])


if __name__ == "__main__":
    main()

"""A minute's thousand through the queue of a deployed stack: `python -m tests.benchmarks.minute`.

    python -m tests.benchmarks.minute --backend postgres
    python -m tests.benchmarks.minute --due 600 --spread 1

The template is deployed onto the emulated AWS as `make cloud TRANSPORT=queue` does it, on DynamoDB
or on an embedded Postgres. `--due` schedules are put, each due once, evenly over `--spread` seconds
of one minute. EventBridge ticks by itself, the tick hands packs to SQS, a mapping gives them to
dispatch. Lateness is that of the ledger: from the due time to the begin. At the end `verify`
accounts for each time.

The emulator looks for messages once a second while it is idle, and all of it, the database and the
functions share this machine. So the delay says what the emulator costs, not what SQS does.
"""

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from duetick.cli.parsing import whole
from duetick.core.store import Store
from duetick.core.verify import verify
from duetick.domain.schedule import Schedule
from duetick.stores import open_store

from tests.benchmarks.masses import read_begins_of
from tests.e2e.conftest import TEMPLATE, Deployed, deploy, emulated_parameters, on_postgres
from tests.lab.credentials import DUMMY, REAL
from tests.lab.emulated_aws import REGION, EmulatedAws
from tests.lab.sam import Sam

BACKENDS: Final = ("dynamodb", "postgres")
WRITERS: Final = 4
EACH_USER: Final = 10
MINUTE: Final = 60_000
WARM_MS: Final = 10_000
"""Milliseconds in which the sandboxes of dispatch start."""
PATIENCE: Final = 240.0
"""The seconds after the last due time in which all has to end."""


@contextmanager
def stack_on(backend: str, aws: EmulatedAws, folder: Path) -> Iterator[tuple[Deployed, Store]]:
    """Yield a deployed stack with a queue, and its store as it is seen from outside."""
    sam, parameters = Sam(folder), emulated_parameters(aws) | {"Transport": "queue"}
    built = sam.build(TEMPLATE, folder / "built", parameters)
    if backend == "postgres":
        with on_postgres(aws, "packs") as there:
            stack = deploy(sam, aws, built, "duetick", parameters | there)
            with closing(open_store(there["PostgresAddress"])) as store:
                yield stack, store
    else:
        stack = deploy(sam, aws, built, "duetick", parameters)
        table = stack.outputs["TableName"]
        address = f"dynamodb://{table}?region={REGION}&endpoint={aws.endpoint}"
        with closing(open_store(address)) as store:
            yield stack, store


def put(store: Store, due: int, spread: int) -> tuple[int, Sequence[str]]:
    """Put schedules that are due in one minute. Return its start, and the names of the users.

    The minute begins late enough for a tick before it that sees all of them.
    """
    seconds = 30 + due // 20
    begin: int = ((store.now() + seconds * 1_000) // MINUTE + 2) * MINUTE
    schedules = [
        Schedule(
            f"u{number // EACH_USER:04}", f"k{number}",
            f"at({datetime.fromtimestamp(begin / 1_000 + number % spread, UTC):%Y-%m-%dT%H:%M:%S})",
            "reminders", "remind", input={"text": "hello"},
        )
        for number in range(due)
    ]  # fmt: skip
    with ThreadPoolExecutor(WRITERS) as pool:
        for _ in pool.map(store.schedules.put, schedules):
            pass
    if store.now() > begin - MINUTE:
        raise RuntimeError("The puts took so long that no tick sees all. Put fewer, or wait.")
    return begin, sorted({one.user_id for one in schedules})


def wait_until_empty(stack: Deployed, begin: int, spread: int) -> None:
    """Wait for the last due time, and until the queue is empty."""
    time.sleep(max(0.0, begin / 1_000 + spread - time.time()))
    end = time.monotonic() + PATIENCE
    while _count_left(stack) and time.monotonic() < end:
        time.sleep(1)


def _count_left(stack: Deployed) -> int:
    """Return the number of messages in the queue: visible, delayed or in hand."""
    names = ["", "Delayed", "NotVisible"]
    asked = [f"ApproximateNumberOfMessages{one}" for one in names]
    url = stack.outputs["PackQueue"]
    found = stack.aws.client("sqs").get_queue_attributes(QueueUrl=url, AttributeNames=asked)
    return sum(map(int, found["Attributes"].values()))


def lines(stack: Deployed, function: str, action: str) -> list[dict[str, Any]]:
    """Return a function's log lines of that action."""
    logs = stack.aws.client("logs")
    pages = logs.get_paginator("filter_log_events").paginate(logGroupName=stack.log_of(function))
    told = (event["message"] for page in pages for event in page["events"])
    found = (json.loads(line) for line in told if line.startswith("{"))
    return [line for line in found if line.get("action") == action]


def show(stack: Deployed, store: Store, chosen: argparse.Namespace) -> bool:
    """Put, wait, and print the outcomes. Return True if each succeeded, and verify agrees."""
    begin, users = put(store, chosen.due, chosen.spread)
    print(
        f"{chosen.backend}: {chosen.due:,} schedules of {len(users)} users, over {chosen.spread} s",
        flush=True,
    )
    wait_until_empty(stack, begin, chosen.spread)
    took = time.time() - begin / 1_000 - chosen.spread
    begun = [one for user in users for one in read_begins_of(store, user)]
    packs = lines(stack, "Dispatch", "pack")
    print(f"  {len(begun):,} succeeded, in {len(packs)} messages; ", end="")
    print(f"the queue was empty {took:.0f} s after the last due time")
    show_lateness("began", [begun_at - due_at for begun_at, due_at in begun])
    warm = [begun_at - due_at for begun_at, due_at in begun if due_at >= begin + WARM_MS]
    show_lateness(f"those due after the first {WARM_MS // 1_000} s", warm)
    found = verify(store, begin - 1_000, begin + chosen.spread * 1_000, now=store.now())
    print(
        f"  verify: {found.schedules:,} schedules, {found.times:,} times, "
        f"{found.under_way} under way, {found.found.total()} faults"
    )
    return len(begun) == found.times == chosen.due and found.found.total() == 0


def show_lateness(of: str, lateness: Sequence[int]) -> None:
    """Print the lateness of the begins after their due times."""
    late = sorted(lateness)
    if late:
        p50, p90, p99 = (late[int(len(late) * part)] / 1_000 for part in (0.5, 0.9, 0.99))
        print(f"  {of}: p50 {p50:.2f} s, p90 {p90:.2f}, p99 {p99:.2f}, the latest ", end="")
        print(f"{late[-1] / 1_000:.2f}, the earliest {late[0] / 1_000:.2f}")


def main() -> int:
    """Print one run; the exit status is 1 if a time is not accounted for, or has not succeeded."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--backend", choices=BACKENDS, default="dynamodb")
    parser.add_argument("--due", type=whole(1, 100_000), default=1_000)
    parser.add_argument("--spread", type=whole(1, 60), default=60, help="seconds")
    chosen = parser.parse_args()
    os.environ.update(DUMMY)
    for name in REAL:
        os.environ.pop(name, None)
    with tempfile.TemporaryDirectory(prefix="duetick-packs-") as name:
        folder = Path(name)
        aws = EmulatedAws(folder)
        try:
            with stack_on(chosen.backend, aws, folder) as (stack, store):
                return int(not show(stack, store, chosen))
        finally:
            aws.stop()


if __name__ == "__main__":
    sys.exit(main())

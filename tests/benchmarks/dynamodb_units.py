"""The cost of a fire on DynamoDB: `python -m tests.benchmarks.dynamodb_units`.

Units are counted by Amazon's DynamoDB Local, which counts single writes as the service does; they
include the pass that finds no lease lost, two minutes later. CPU is this process's own, beside one
bare UpdateItem through boto3 in the same run. A chunk has a note of its own, which is put and
deleted: two units that its fires share, so that one alone costs eight, and the promise holds in
chunks of ten and more. Throughput cannot be tried here (no emulator has
partitions), so it is arithmetic: a partition takes 1,000 units a second, and a claim two of them.
"""

import os
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypedDict, TypeVar

import boto3
from duetick.core.store import Store
from duetick.domain.attempts import SUCCEEDED, Begun, Outcome
from duetick.domain.policies import Delivery, Policies
from duetick.domain.schedule import Occurrence, Schedule
from duetick.domain.states import Reason, State
from duetick.ports import Shelf
from duetick.stores.dynamodb.shelf import open_dynamodb

from tests.lab.credentials import DUMMY
from tests.lab.dynamodb import REGION, DynamoDB, start_dynamodb_local, table_name
from tests.lab.dynamodb_service import watch

HOUR = 3_600_000
NOON = 1_800_000_000_000
FAILED = Outcome(State.FAILED, Reason.FAILED, "it went wrong")
MOST_UNITS, MOST_UNITS_WITH_RETRY = 6.3, 14.0
FEWEST = 10
"""Fires of a chunk from which on that is promised."""
PARTITION_UNITS = 1_000
READS = frozenset({"GetItem", "Query", "BatchGetItem"})
WRITES = frozenset({"PutItem", "UpdateItem", "DeleteItem", "BatchWriteItem", "TransactWriteItems"})
T = TypeVar("T")


class Consumed(TypedDict):
    """The capacity that the requests to one table consumed."""

    CapacityUnits: float


class Meter:
    """The units that DynamoDB says the requests of a shelf consumed, added up. `requests` counts
    them.
    """

    def __init__(self, shelf: Shelf) -> None:
        self.writes = 0.0
        self.reads = 0.0
        self.requests = 0
        watch(shelf, self._ask, self._add)

    def _ask(self, operation: str, request: dict[str, object]) -> None:
        self.requests += 1
        if operation in READS | WRITES:
            request["ReturnConsumedCapacity"] = "INDEXES"

    def _add(self, operation: str, answer: dict[str, Consumed | list[Consumed]]) -> None:
        consumed = answer.get("ConsumedCapacity", [])
        for each in consumed if isinstance(consumed, list) else [consumed]:
            if operation in READS:
                self.reads += each["CapacityUnits"]
            else:
                self.writes += each["CapacityUnits"]

    def reset(self) -> None:
        self.writes = 0.0
        self.reads = 0.0


class Bench:
    """A table of hourly schedules, fired hour after hour."""

    def __init__(self, dynamodb: DynamoDB, schedules: int, shards: int, policies: Policies) -> None:
        self.table = table_name()
        url = f"{dynamodb.table_url(self.table)}&shards={shards}"
        shelf = open_dynamodb(url, checks_clock=False)
        self.store = Store(shelf, lambda: self.now)
        self.meter = Meter(shelf)
        self.now = NOON
        self.store.migrate()
        for number in range(schedules):
            self.store.schedules.put(_schedule(number, policies))

    def claim(self, limit: int) -> list[Occurrence]:
        claimed: list[Occurrence] = []
        while chunk := self.store.index.claim_due(self.now, limit):
            claimed += chunk
        return claimed

    def run(self, claimed: Sequence[Occurrence], outcome: Outcome) -> None:
        for occurrence in claimed:
            begun = self.store.ledger.begin(_as_delivered(occurrence))
            if not isinstance(begun, Begun):
                raise TypeError(f"{occurrence.key} did not begin: {begun}")
            self.store.ledger.settle(begun.occurrence, outcome)

    def hour(self, limit: int) -> int:
        """Fire everything once, and look after lost leases at their end. Return the number that
        fired.
        """
        self.now += HOUR
        claimed = self.claim(limit)
        self.run(claimed, SUCCEEDED)
        self.sweep(120_000)
        return len(claimed)

    def sweep(self, later: int) -> None:
        """Tick somewhat later, which finds nothing lost and drops the notes of the claim."""
        if self.store.ledger.claim_waiting(self.now + later):
            raise AssertionError("something was lost")

    def hour_with_retry(self, limit: int) -> int:
        """Fire everything once, each failing the first time."""
        self.now += HOUR
        claimed = self.claim(limit)
        self.run(claimed, FAILED)
        self.now += 10_000
        again: list[Occurrence] = []
        while chunk := self.store.ledger.claim_waiting(self.now, limit):
            again += chunk
        self.run(again, SUCCEEDED)
        self.sweep(120_000)
        self.now -= 10_000
        if len(again) != len(claimed):
            raise AssertionError(f"{len(claimed)} fired, {len(again)} again")
        return len(claimed)


def _schedule(number: int, policies: Policies) -> Schedule:
    return Schedule(
        user_id=f"user-{number % 50:06d}",
        key=f"followup-{number:06d}",
        cron="0 * * * *",
        timezone="Europe/Berlin",
        flow="reminders",
        action="send_digest",
        input={"channel": "email", "template": "followup", "thread": number},
        labels={"team": "growth"},
        policies=policies,
    )


def _as_delivered(occurrence: Occurrence) -> Occurrence:
    """Return the lease of an occurrence as dispatch has it: a name and a fence."""
    o = occurrence
    return Occurrence(o.user_id, o.key, "", None, o.nominal_at, o.fence, o.origin)


def units(bench: Bench, fire: Callable[[int], int], limit: int) -> tuple[float, float]:
    """Write and read units for each fire, of the second hour: the first has no past to move."""
    fire(limit)
    bench.meter.reset()
    fired = fire(limit)
    return bench.meter.writes / fired, bench.meter.reads / fired


def cpu(task: Callable[[], T]) -> tuple[float, T]:
    """Return the seconds of this process, and the answer."""
    start = time.process_time()
    answer = task()
    return time.process_time() - start, answer


def bare_update(dynamodb: DynamoDB, table: str, times: int) -> float:
    """Return the seconds of CPU of one UpdateItem through boto3."""
    client = boto3.client("dynamodb", endpoint_url=dynamodb.endpoint, region_name=REGION)

    def update() -> None:
        for number in range(times):
            client.update_item(
                TableName=table,
                Key={"p": {"S": "bare"}, "s": {"S": str(number)}},
                UpdateExpression="SET a = :a",
                ExpressionAttributeValues={":a": {"N": str(number)}},
            )

    update()
    return cpu(update)[0] / times


def print_units(dynamodb: DynamoDB) -> bool:
    """Print the table of units. Return True if the promises hold."""
    kept = True
    print("units for each fire: claimed, begun, settled, ledger included")
    print(f"{'shards':>6} {'chunk':>6} {'write':>7} {'read':>6} {'fires/s by its index':>21}")
    for shards in (1, 4, 16):
        for limit in (1, 10, 100, 1_000):
            bench = Bench(dynamodb, 20 if limit == 1 else 200, shards, Policies())
            write, read = units(bench, bench.hour, limit)
            allowed = shards * PARTITION_UNITS // 2
            print(f"{shards:>6} {limit:>6} {write:>7.2f} {read:>6.2f} {allowed:>21,}")
            kept = kept and (write <= MOST_UNITS or limit < FEWEST)
    policies = Policies(delivery=Delivery.AT_LEAST_ONCE)
    bench = Bench(dynamodb, 200, 1, policies)
    write, read = units(bench, bench.hour_with_retry, 100)
    print(f"with one retry: {write:.2f} write, {read:.2f} read")
    return kept and write <= MOST_UNITS_WITH_RETRY


def print_cpu(dynamodb: DynamoDB) -> None:
    """Print the processor time of a fire in this process, step by step."""
    bench = Bench(dynamodb, 400, 1, Policies())
    bench.hour(1_000)
    bench.now += HOUR
    claim, claimed = cpu(lambda: bench.claim(1_000))
    begun = [bench.store.ledger.begin(_as_delivered(one)) for one in claimed[:200]]
    begin, _ = cpu(lambda: [bench.store.ledger.begin(_as_delivered(o)) for o in claimed[200:]])
    running = [one.occurrence for one in begun if isinstance(one, Begun)]
    settle, _ = cpu(lambda: [bench.store.ledger.settle(one, SUCCEEDED) for one in running])
    bare = bare_update(dynamodb, bench.table, 200)
    each = {"claim": claim / len(claimed), "begin": begin / 200, "settle": settle / 200}
    print(f"CPU for each fire; one bare UpdateItem through boto3 is {bare * 1e6:.0f} µs")
    for name, seconds in (each | {"all": sum(each.values())}).items():
        print(f"{name:>7} {seconds * 1e6:>6.0f} µs {seconds / bare:>5.2f}x")


def main() -> None:
    """Print both tables; fail where a promise of units is not kept."""
    os.environ |= DUMMY
    with tempfile.TemporaryDirectory() as folder:
        dynamodb = start_dynamodb_local(Path(folder))
        try:
            kept = print_units(dynamodb)
            print_cpu(dynamodb)
        finally:
            dynamodb.stop()
    promised = f"{MOST_UNITS} in chunks of {FEWEST} or more, {MOST_UNITS_WITH_RETRY} with a retry"
    print(f"promised: {promised}:", kept)
    raise SystemExit(not kept)


if __name__ == "__main__":
    main()

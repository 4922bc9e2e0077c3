"""The lateness of actions on a deployed stack: `python -m tests.benchmarks.lateness`.

The template is deployed onto the emulated AWS, with one action more: it writes the time at which it
began into its log. The emulator runs on this machine beside all that it carries, so it is first
asked how many dispatches a second it takes; schedules are then put at a quarter of that rate or
less, evenly over the minute, each fires once a minute, and EventBridge ticks by itself.
Prints by how much actions began after their nominal times, and the seconds that ticks are billed.
"""

import json
import os
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from duetick.domain.policies import Overlap, Policies
from duetick.domain.schedule import Schedule
from duetick.stores import open_store

from tests.e2e.conftest import Deployed, deploy, emulated_parameters
from tests.lab.credentials import DUMMY, REAL
from tests.lab.emulated_aws import REGION, EmulatedAws
from tests.lab.sam import Sam

TOP: Final = Path(__file__).parents[2]
LOOK_AHEAD: Final = 120
MINUTES: Final = 4
CALLS: Final = 60
MOST: Final = 4.0
"""Fires a second: more would tell no more, and take the machine for itself."""
AIM_MS: Final = 1_000

STAMPS: Final = '''
import logging
import time

from duetick import Context, Flow

stamps = Flow("stamps")
logger = logging.getLogger("duetick.flows.stamps")


@stamps.action("stamp")
def stamp(_: None, ctx: Context) -> None:
    """Say when it began."""
    began = time.time_ns() // 1_000_000
    logger.info("stamp", extra={"began": began, "nominal": ctx.nominal_at, "id": ctx.schedule_id})
'''


@dataclass(frozen=True, slots=True)
class Stamp:
    """One run of the action. Milliseconds."""

    schedule: str
    nominal: int
    began: int

    @property
    def late(self) -> int:
        """After its nominal time."""
        return self.began - self.nominal


def main() -> int:
    """Deploy, find the rate, measure; the exit status is 1 where actions are late or missing."""
    os.environ.update(DUMMY)
    for name in REAL:
        os.environ.pop(name, None)
    with tempfile.TemporaryDirectory(prefix="duetick-lateness-") as name:
        folder = Path(name)
        aws = EmulatedAws(folder)
        try:
            stack = _deployed(aws, folder)
            return _measure(stack, _rate(stack))
        finally:
            aws.stop()


def _deployed(aws: EmulatedAws, folder: Path) -> Deployed:
    """Deploy the template as it is, with a flow that stamps."""
    source = folder / "source"
    for part in ("functions", "layers"):
        shutil.copytree(TOP / part, source / part, ignore=shutil.ignore_patterns("__pycache__"))
    template = Path(shutil.copy(TOP / "template.yaml", source))
    (source / "layers" / "flows" / "flows" / "stamps.py").write_text(STAMPS)
    parameters = emulated_parameters(aws) | {"LookAheadSeconds": str(LOOK_AHEAD)}
    sam = Sam(folder)
    built = sam.build(template, folder / "built", parameters)
    return deploy(sam, aws, built, "duetick", parameters)


def _rate(stack: Deployed) -> float:
    """Return the dispatches a second that do not queue: a quarter of the most that the emulator
    carries.
    """
    at_once = Policies(overlap=Overlap.ALLOW)
    probe = Schedule("probe", "k", "0 9 1 1 *", "stamps", "stamp", policies=at_once)
    _put(stack, (probe, _now()))
    carried = []
    for threads in (1, 2, 4):
        _calls(stack, threads, 2 * threads)  # each sandbox starts once
        took = _calls(stack, threads, CALLS)
        carried.append(CALLS / took)
        print(f"the emulator carries {carried[-1]:.1f} dispatches a second, {threads} at a time")
    rate = min(MOST, max(carried) / 4)
    print(f"chosen: {rate:.1f} a second")
    return rate


def _calls(stack: Deployed, threads: int, count: int) -> float:
    """Return the seconds for a number of dispatches by an outside caller, each with a key of its
    own.
    """
    path = "/api/flows/stamps/schedules/probe~2Fk/dispatch"

    def call(_number: int) -> int:
        return stack.call("POST", path, {"idempotencyKey": str(time.monotonic_ns())})[0]

    begin = time.perf_counter()
    with ThreadPoolExecutor(threads) as pool:
        statuses = set(pool.map(call, range(count)))
    assert statuses == {202}, statuses
    return time.perf_counter() - begin


def _measure(stack: Deployed, rate: float) -> int:
    each_minute = int(rate * 60)
    start = _now() - 60_000
    timed = (
        (Schedule("timed", f"k{n}", "rate(1 minute)", "stamps", "stamp"), n * 60_000 // each_minute)
        for n in range(each_minute)
    )
    _put(stack, *((schedule, start + offset) for schedule, offset in timed))
    # The first tick finds what is due at once; from the second on, all was claimed ahead.
    begin = (_now() // 60_000 + 2) * 60_000
    end = begin + MINUTES * 60_000
    time.sleep((end - _now()) / 1_000 + 5)
    stamps = [one for one in _stamps(stack) if begin <= one.nominal < end]
    wanted, late = each_minute * MINUTES, sorted(one.late for one in stamps)
    print(f"{len(stamps)} of {wanted} fires in {MINUTES} minutes, {rate:.1f} a second:")
    if len(stamps) != wanted:
        print("  some are missing: is the machine busy? The end of the tick's log:")
        print("\n".join(f"    {line.strip()[:200]}" for line in [*_log(stack, "Tick")][-12:]))
    if not late:
        return 1
    p50, p99 = late[len(late) // 2], late[len(late) * 99 // 100]
    print(f"  began p50 {p50} ms, p99 {p99} ms (to reach: under {AIM_MS}), at most {late[-1]} ms")
    print(f"  after their nominal times; the earliest {late[0]} ms")
    billed = _billed(stack)
    shown = ", ".join(f"{seconds:.0f}" for seconds in billed)
    print(f"  billed seconds of the ticks that ended: {shown}")
    return int(p99 >= AIM_MS or len(stamps) != wanted)


def _put(stack: Deployed, *made: tuple[Schedule, int]) -> None:
    """Put schedules, each at its own time."""
    table = stack.outputs["TableName"]
    store = open_store(f"dynamodb://{table}?region={REGION}&endpoint={stack.aws.endpoint}")
    for schedule, at in made:
        store.schedules.put(schedule, now=at)
    store.close()


def _stamps(stack: Deployed) -> Iterator[Stamp]:
    for line in _log(stack, "Dispatch"):
        if '"stamp"' in line:
            told = json.loads(line)
            yield Stamp(told["id"], told["nominal"], told["began"])


def _billed(stack: Deployed) -> list[float]:
    """Return the billed seconds of each tick."""
    found = (re.search(r"Billed Duration: ([0-9.]+) ms", line) for line in _log(stack, "Tick"))
    return [float(one[1]) / 1_000 for one in found if one]


def _log(stack: Deployed, function: str) -> Iterator[str]:
    """Yield every line of a function's log."""
    logs = stack.aws.client("logs")
    pages = logs.get_paginator("filter_log_events").paginate(logGroupName=stack.log_of(function))
    for page in pages:
        for event in page["events"]:
            yield event["message"]


def _now() -> int:
    return time.time_ns() // 1_000_000


if __name__ == "__main__":
    sys.exit(main())

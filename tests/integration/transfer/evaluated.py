"""The fire times of others, by their own code: each runs in an environment of its own."""

import json
import shutil
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from subprocess import run as run_process
from typing import Any

from duetick.cli.transfer.items import Timing
from duetick.domain.expression import fires

from tests.lab.cache import made_once
from tests.lab.missing import missing
from tests.lab.process import Command, run
from tests.lab.pythons import environment

HERE = Path(__file__).parent / "evaluators"
SINCE = 1_796_083_200_000
"""2026-12-01T00:00:00Z."""
UNTIL = SINCE + 366 * 86_400_000
DAY = 86_400_000


def here(timing: Timing, since: int = SINCE, until: int = UNTIL) -> list[int]:
    """Return the fire times of an imported schedule, within its window."""
    start = timing.policies.get("startsAt")
    after = since - 1
    if isinstance(start, str):
        moment = datetime.fromisoformat(start)
        after = max(since, round(moment.timestamp() * 1_000)) - 1
    options: dict[str, Any] = {
        name: timing.policies[name] for name in ("gap", "repeat") if name in timing.policies
    }
    return fires(timing.cron, timing.timezone, after, until, **options)


def change_days(zone: str | None) -> set[str]:
    """Return the local days on which clocks change, and the days after them."""
    from duetick.domain.expression.zones import ZONES

    found = ZONES[zone]
    starts = [at for at in found.starts if SINCE - DAY < at < UNTIL + DAY]
    days = [at + shift for at in starts for shift in (-DAY, 0, DAY)]
    return {_day(at) for at in days}


def _day(instant: int) -> str:
    return datetime.fromtimestamp(instant / 1_000, UTC).date().isoformat()


def differences(ours: Iterable[int], theirs: Iterable[int]) -> set[str]:
    """Return the days on which two lists of fire times differ."""
    return {_day(at) for at in set(ours) ^ set(theirs)}


def ask(command: Command, lines: Sequence[object]) -> list[list[int]]:
    """Return the answers of a program to lines of JSON."""
    given = "".join(f"{json.dumps(line)}\n" for line in lines)
    done = run_process(
        [str(part) for part in command], input=given, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def apscheduler(
    version: int, file: Path | str, lines: Sequence[Mapping[str, object]], *more: str
) -> list[list[int]]:
    """Make a store of APScheduler. Return the fire times of the schedules with a span."""
    part = f"APScheduler {version}"
    python = environment(f"apscheduler{version}", part) / "bin" / "python"
    return ask([python, HERE / f"apscheduler_{version}.py", file, *more], lines)


def cron_parser(lines: Sequence[tuple[str, str, int, int]]) -> list[list[int]]:
    """Return the fire times of cron-parser, which pg-boss uses."""
    if shutil.which("npm") is None or shutil.which("node") is None:
        missing("cron-parser", "node or npm is not on the PATH", "Install Node.js, then run again.")
    place = made_once("cron-parser-5.10.4", _install)
    shutil.copy(HERE / "cron_parser.mjs", place)
    return ask(["node", place / "cron_parser.mjs"], lines)


def _install(place: Path) -> None:
    for name in ("package.json", "package-lock.json"):
        shutil.copy(HERE / name, place)
    run(["npm", "ci", "--no-audit", "--no-fund"], cwd=place)

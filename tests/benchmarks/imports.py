"""The cost of each store's path at a cold start: `python -m tests.benchmarks.imports`.

Time to import and open (no database is asked), and the most memory that the process ever held,
both over a bare Python of the same run. The median of several processes, one after the other.
"""

import os
import subprocess
import sys
from statistics import median
from typing import NamedTuple

from tests.lab.credentials import DUMMY

PROCESSES = 9
MEASURED = """
import resource, sys, time
began = time.perf_counter()
{}
print((time.perf_counter() - began) * 1_000, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""
OPEN = "from duetick.stores import open_store; open_store({!r})"
PATHS = {
    "bare Python": "pass",
    "domain and ports": "import duetick.ports",
    "the tick, no store": "import duetick.core.tick",
    "SQLite": OPEN.format("sqlite://"),
    "Postgres": OPEN.format("postgresql://nobody@127.0.0.1:1/nothing"),
    "DynamoDB": OPEN.format("dynamodb://t?region=us-east-1&endpoint=http://127.0.0.1:1"),
    "boto3 and its client": "import boto3; boto3.client('dynamodb', region_name='us-east-1')",
    "pg8000.native": "import pg8000.native",
}


class Cost(NamedTuple):
    """Milliseconds, and kilobytes of memory."""

    ms: float
    kb: float


def measure(code: str) -> Cost:
    """Return the median of processes that do this and nothing else."""
    found = [_once(MEASURED.format(code)) for _ in range(PROCESSES)]
    return Cost(median(one.ms for one in found), median(one.kb for one in found))


def _once(code: str) -> Cost:
    command = [sys.executable, "-c", code]
    done = subprocess.run(
        command, capture_output=True, text=True, check=True, env={**os.environ, **DUMMY}
    )
    ms, kb = done.stdout.split()
    return Cost(float(ms), float(kb))


def main() -> None:
    """Print one line for each path."""
    bare = measure(PATHS["bare Python"])
    print(f"{'path':24}{'ms':>10}{'MB':>10}   over bare Python ({bare.kb / 1_024:.0f} MB)")
    for name, code in PATHS.items():
        cost = measure(code)
        print(f"{name:24}{cost.ms - bare.ms:>10.0f}{(cost.kb - bare.kb) / 1_024:>10.1f}")


if __name__ == "__main__":
    main()

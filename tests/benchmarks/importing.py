"""An import of ten thousand schedules, beside the same schedules put one by one.

    python -m tests.benchmarks.importing [--schedules 10000] [--alone 500] [--store sqlite:///…]

The whole command is measured: reading a CSV file, the plan, the batches, the report; against a
local stack of another process, as an operator. Then a second import, which changes nothing; and, in
the same run, some schedules by a PUT each, from eight threads. On Postgres name a store that is
empty.
"""

import argparse
import csv
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from functools import partial
from io import StringIO
from pathlib import Path

from duetick.cli.main import main as duetick
from duetick.client import Fields
from duetick.operators import Operators

from tests.lab.process import free_port

TOP = Path(__file__).parents[2]
THREADS = 8


def definition(number: int) -> Fields:
    """Return a schedule: 2,520 expressions in all."""
    cron = f"{number % 60} {number % 24} * * {number % 7}"
    return {
        "key": f"k{number:06}",
        "cron": cron,
        "timezone": "Europe/Berlin",
        "flow": "reminders",
        "action": "remind",
        "input": {"text": f"reminder {number}"},
    }


@contextmanager
def local_stack(store: str) -> Iterator[tuple[str, str]]:
    """Yield the address of a local stack in a process of its own, and the operator's token."""
    port = free_port()
    quotas = {"DUETICK_QUOTA_SCHEDULES": "1000000"}
    code = "import sys; from duetick.cli.main import main; sys.exit(main(sys.argv[1:]))"
    command = [sys.executable, "-c", code, "local", "--port", str(port), "--store", store]
    with subprocess.Popen(
        command, cwd=TOP, env=os.environ | quotas, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            told = ""
            while "Ctrl-C stops" not in told and process.stdout:
                told += process.stdout.readline()
            (operator,) = re.findall(r"DUETICK_OPERATOR=(\S+)", told)
            yield f"http://127.0.0.1:{port}", operator
        finally:
            process.terminate()


def timed(work: Callable[[], object]) -> float:
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


def write(path: Path, count: int) -> None:
    """Write the file that is imported."""
    with path.open("w", newline="") as text:
        rows = csv.writer(text)
        rows.writerow(definition(0))
        for number in range(count):
            cells = definition(number)
            rows.writerow(
                [json.dumps(one) if isinstance(one, dict) else one for one in cells.values()]
            )


def bring(path: Path, url: str, *more: str) -> None:
    """Run the command, and drop its output."""
    with redirect_stdout(StringIO()) as out, redirect_stderr(out):
        code = duetick(["import", "csv", str(path), "--url", url, "--user", "ann", *more])
    assert code == 0, out.getvalue()[-500:]


def put_alone(url: str, operator: str, count: int) -> None:
    """Put each schedule by a call of its own."""
    client = Operators(url, token=operator).of("bob")

    def put(number: int) -> None:
        fields = definition(number)
        key = str(fields.pop("key"))
        client.put(key, fields)

    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(put, range(count)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--schedules", type=int, default=10_000)
    parser.add_argument("--alone", type=int, default=500)
    parser.add_argument("--store")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "given.csv"
        write(path, given.schedules)
        with local_stack(given.store or f"sqlite:///{name}/store.db") as (url, operator):
            os.environ["DUETICK_OPERATOR"] = operator
            alone = timed(lambda: put_alone(url, operator, given.alone)) / given.alone
            print(f"load {os.getloadavg()[0]:.1f}")
            for title, more in (("dry run", ()), ("import", ("--yes",)), ("again", ("--yes",))):
                seconds = timed(partial(bring, path, url, *more))
                each = seconds / given.schedules
                print(
                    f"{title:<8} {seconds:7.1f} s  {each * 1_000:6.2f} ms each, "
                    f"{alone / each:5.1f} times as fast as a PUT of each ({alone * 1_000:.2f} ms)",
                    flush=True,
                )


if __name__ == "__main__":
    main()

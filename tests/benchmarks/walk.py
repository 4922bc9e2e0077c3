"""Follow one fire and one page of its history through the code: calls, functions and files.

    python -m tests.benchmarks.walk
    python -m tests.benchmarks.walk --store postgresql://localhost/walk

A schedule is due. A tick claims it, delivers it over HTTP and its action ends; then its user reads
the history. All of that happens once before, so that nothing is loaded on the way. Only functions
of the layer and the handlers are counted, without the local gateway. The sizes of the layer and its
longest chain of imports follow. Python 3.12 is needed: older ones follow no thread that runs
already.
"""

import argparse
import ast
import os
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Final

import requests

if TYPE_CHECKING:
    from duetick.cli.local import LocalStack

HERE: Final = Path(__file__).parents[2]
LAYER: Final = HERE / "layers" / "duetick" / "duetick"
ASIDE: Final = LAYER / "cli"
MINUTE: Final = 60_000

Function = tuple[str, str]


@dataclass
class Walk:
    """The functions that were called, with the file of each."""

    calls: Counter[Function] = field(default_factory=Counter)

    def see(self, frame: FrameType, event: str, _argument: object) -> None:
        """Count a call; see `sys.setprofile`."""
        code = frame.f_code
        if event == "call" and _is_ours(code.co_filename):
            self.calls[code.co_filename, code.co_qualname] += 1

    @property
    def files(self) -> set[str]:
        """The files of the functions."""
        return {file for file, _ in self.calls}

    def __str__(self) -> str:
        return f"{self.calls.total()} calls, {len(self.calls)} functions, {len(self.files)} files"


@cache
def _is_ours(file: str) -> bool:
    path = Path(file)
    mine = path.is_relative_to(LAYER) or path.is_relative_to(HERE / "functions")
    return mine and not path.is_relative_to(ASIDE)


@contextmanager
def _followed(walk: Walk) -> Iterator[None]:
    if sys.version_info >= (3, 12):
        threading.setprofile_all_threads(walk.see)
        try:
            yield
        finally:
            threading.setprofile_all_threads(None)
    else:
        raise SystemExit("Python 3.12 or newer is needed: make setup PYTHON=python3.13")


def follow(stack: "LocalStack") -> tuple[Walk, Walk]:
    """Fire one schedule, then read its history; the second time it is followed."""
    threading.Thread(target=stack.server.serve_forever, args=(0.01,), daemon=True).start()
    fire, page = Walk(), Walk()
    _make_due("first")
    stack.tick()
    _history(stack, "first")
    _make_due("walk")
    with _followed(fire):
        report = stack.tick()
    with _followed(page):
        history = _history(stack, "walk")
    states = [one["state"] for one in history]
    if states != ["succeeded"]:
        raise SystemExit(f"It did not fire: {report}, {states}.")
    return fire, page


def _make_due(key: str) -> None:
    from duetick.domain.schedule import Schedule
    from duetick.runtime import wiring

    of_now = Schedule("you", key, "* * * * *", "reminders", "remind", input={"text": key})
    wiring.store().schedules.put(of_now, now=time.time_ns() // 1_000_000 - MINUTE)


def _history(stack: "LocalStack", key: str) -> list[dict[str, str]]:
    url = f"{stack.server.url}/api/schedules/{key}/history"
    page = requests.get(url, headers={"Authorization": f"Bearer {stack.token}"}, timeout=10).json()
    found: list[dict[str, str]] = page.get("occurrences") or page["history"]
    return found


def imports() -> dict[str, set[str]]:
    """Return the modules of the layer by name, each with the modules that it imports."""
    files = {_name(path): path for path in LAYER.rglob("*.py")}
    return {name: set(_imported(path, set(files))) for name, path in files.items()}


def _name(path: Path) -> str:
    parts = path.relative_to(LAYER.parent).with_suffix("").parts
    return ".".join(parts).removesuffix(".__init__")


def _imported(path: Path, modules: set[str]) -> Iterator[str]:
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                name = f"{node.module}.{alias.name}"
                yield from {name if name in modules else node.module} & modules


def longest_chain(graph: dict[str, set[str]]) -> int:
    """Return the number of modules in the longest chain of imports."""

    @cache
    def depth(module: str) -> int:
        return 1 + max((depth(other) for other in graph[module] - {module}), default=0)

    sys.setrecursionlimit(10_000)
    return max(depth(module) for module in graph)


def lines(folder: Path) -> int:
    """Return the lines of the Python files in a folder."""
    return sum(len(path.read_text().splitlines()) for path in folder.rglob("*.py"))


def main() -> None:
    """Print the walk and the sizes."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--store", help="the address of an empty store; a SQLite file of its own")
    chosen = parser.parse_args()
    os.environ.setdefault("POWERTOOLS_METRICS_NAMESPACE", "walk")
    from duetick.cli.local import LocalStack

    with tempfile.TemporaryDirectory() as folder:
        stack = LocalStack(HERE, chosen.store or f"sqlite:///{folder}/walk.db", 0)
        fire, page = follow(stack)
        stack.close()
    graph = imports()
    product = [name for name in graph if ".testing" not in name]
    tested = lines(HERE / "tests")
    print(f"the fire       {fire}")
    print(f"the history    {page}")
    print(f"both           {Walk(fire.calls + page.calls)}")
    print(f"modules        {len(product)}, longest chain of imports {longest_chain(graph)}")
    layer, testing = lines(LAYER), lines(LAYER / "testing")
    print(f"lines          layer {layer - testing}, testing {testing}, tests {tested}")


if __name__ == "__main__":
    main()

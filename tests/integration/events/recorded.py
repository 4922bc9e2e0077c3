"""Events as AWS sends them, and a way to hand them to a function."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

from duetick.cli.context import LocalContext

from tests.integration.handlers import load_handler

EVENTS = Path(__file__).parents[3] / "events"
Handle: TypeAlias = Callable[[str, object], dict[str, Any]]
"""One invocation of a function's handler."""


def event(name: str) -> dict[str, Any]:
    """Return a recorded event."""
    read: dict[str, Any] = json.loads((EVENTS / f"{name}.json").read_text())
    return read


def load_and_handle(
    function: str, given: object, context: LocalContext | None = None
) -> dict[str, Any]:
    """Load a handler, and invoke it once. Return its answer."""
    answer: dict[str, Any] = load_handler(function)(given, context or LocalContext())
    return answer

"""Ticks that a tick starts: an asynchronous invocation of the function itself for each."""

from collections.abc import Mapping
from typing import Any, Final

from duetick.core.tick.helpers import Assignment
from duetick.ports import Part
from duetick.runtime.invoking import call_this

MARK: Final = "duetickPart"
"""A field that no event of EventBridge has: only the owner of the function can send it."""


def start_tick(one: Assignment) -> None:
    """Start a tick with an assignment."""
    part = {"number": one.part.number, "of": one.part.of}
    call_this({MARK: {**part, "chain": one.chain, "owner": one.owner}})


def assignment_of(event: Mapping[str, Any]) -> Assignment | None:
    """Return the assignment that an event has; None if EventBridge, or a person, sent it."""
    found = event.get(MARK)
    if not isinstance(found, dict):
        return None
    part = Part(int(found["number"]), int(found["of"]))
    return Assignment(part, int(found["chain"]), str(found["owner"]))

"""The lines of an overview about faults, each with the next command."""

from collections.abc import Mapping
from typing import Any, Final

from duetick.core.wrong import Kind, Wrong, wrong_in

NOTHING: Final = "Nothing is wrong, as far as these numbers tell."

LOOK: Final[Mapping[Kind, str]] = {
    "restored": "What to do? duetick recover{stack}",
    "silent": "Why? duetick doctor{where}",
    "late": "What did the last ones do? duetick workers{where}",
    "ticks_lost": "Which? duetick workers{where}",
    "ticks_raised": "Why? duetick doctor{where}",
    "deliveries_failed": "Which? duetick occurrences list{where}",
    "lateness": "Which? duetick workers{where}",
    "dead": "Why? duetick occurrences list --state dead{where}",
    "unreadable": "Which? duetick unreadable{where}",
    "gone": "Which? duetick schedules list --all-users{where}",
    "unindexed": "Which? duetick check{stack}",
    "stale": "Which? duetick check{stack}",
    "overdue": "Which? duetick check{stack}",
    "unaccounted": "Which? duetick verify{stack}",
    "bells": "Why? The logs have bell_failed, and the runbook has a row for PendingAlarm.",
}
"""The command that shows more."""


def wrong_lines(found: Mapping[str, Any], where: str) -> list[str]:
    """Return the faults, the worst first, each with the command that shows more.

    `where` has the options that lead the command to the same place.
    """
    return [f"WRONG  {one.said} {_look(one, where)}" for one in wrong_in(found)] or [NOTHING]


def _look(one: Wrong, where: str) -> str:
    """Return the next command. One that reads a store, or asks a stack, takes no address."""
    return LOOK[one.kind].format(where=where, stack=where if "--stack" in where else "")

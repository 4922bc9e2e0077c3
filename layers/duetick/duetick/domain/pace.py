"""The pace that ticks have shown: how many occurrences a minute the stack delivers."""

from collections.abc import Iterable
from typing import Final, NamedTuple

from duetick.domain.policies import MINUTE_MS
from duetick.domain.workers import Worker

LEAST_DELIVERED: Final = 64
"""The fewest deliveries of a tick that say anything of its pace: one for each slot."""


class Pace(NamedTuple):
    """The best pace of a tick: `delivered` within `took` milliseconds from `at` on.

    If the tick was `full`, it left work behind: no tick does more. Otherwise one does at least so
    much.
    """

    at: int
    delivered: int
    took: int
    full: bool

    @property
    def a_minute(self) -> int:
        """The deliveries of a minute at this pace."""
        return self.delivered * MINUTE_MS // self.took


def best_pace(reports: Iterable[Worker]) -> Pace | None:
    """Return the best pace among ticks that left work behind; among all if none did. None if no
    tick had enough to do.
    """
    found = [pace for one in reports if (pace := _pace_of(one))]
    full = [one for one in found if one.full]
    return max(full or found, key=lambda one: one.a_minute, default=None)


def _pace_of(one: Worker) -> Pace | None:
    counts = one.counts
    answered = sum(counts.get(name, 0) for name in ("delivered", "failed", "behind"))
    if one.kind != "tick" or one.ended_at is None or answered < LEAST_DELIVERED:
        return None
    full = bool(counts.get("left") or counts.get("backlog"))
    return Pace(one.started_at, answered, max(1, one.ended_at - one.started_at), full)


def count_delivered(reports: Iterable[Worker], since: int, minutes: int) -> list[int]:
    """Return how many occurrences the ticks delivered that began in each minute."""
    found = [0] * minutes
    for one in reports:
        place = (one.started_at - since) // MINUTE_MS
        if one.kind == "tick" and 0 <= place < minutes:
            found[place] += one.counts.get("delivered", 0)
    return found

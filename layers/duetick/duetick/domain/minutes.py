"""The minutes of a span, and a number for each of them."""

from dataclasses import dataclass
from typing import NamedTuple

from duetick.domain.policies import MINUTE_MS


class MinuteSpan(NamedTuple):
    """A span of whole minutes: from `since` until before `until`."""

    since: int
    until: int

    @property
    def minutes(self) -> int:
        """The number of minutes."""
        return (self.until - self.since) // MINUTE_MS

    @property
    def last(self) -> int:
        """The last instant."""
        return self.until - 1

    def has(self, at: int) -> bool:
        """Return True if an instant lies in the span."""
        return self.since <= at < self.until

    def minute(self, at: int) -> int:
        """Return the number of the minute of an instant, counted from the start of the span."""
        return (at - self.since) // MINUTE_MS


@dataclass(slots=True)
class Sums:
    """The number of occurrences that are due in each minute of a span.

    Those in `movable` would have another minute if their schedules had a spread.
    """

    due: list[int]
    movable: list[int]
    ragged: bool = False
    densest: int = 1

    @classmethod
    def of(cls, span: MinuteSpan) -> "Sums":
        """Return the sums of a span in which nothing is due."""
        return cls([0] * span.minutes, [0] * span.minutes)

    @property
    def fixed(self) -> list[int]:
        """The occurrences of each minute that no spread would move."""
        return [due - moves for due, moves in zip(self.due, self.movable, strict=True)]

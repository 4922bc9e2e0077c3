"""Windows in which more is due than is allowed, and the spread that would fit.

A schedule's place in its spread is a hash of its name, so places are as good as random, and fixed.
How many of them meet in one window is a sum of independent chances. `fitting_spread` returns the
shortest spread for which it is all but sure (`DOUBT`) that no window of the span has more than is
allowed, whatever the names are. Chernoff's bound says how sure: for a sum with the mean m,
P(at least k) is at most e**(k - m) * (m / k)**k.
"""

from collections.abc import Iterator, Sequence
from math import exp, log
from typing import Final, NamedTuple

from duetick.domain.limits import WINDOWS, Per
from duetick.domain.minutes import MinuteSpan, Sums
from duetick.domain.policies import DAY

DOUBT: Final = 1e-6
"""The probability that some window has more than is allowed, in spite of the spread."""

LONGEST: Final = DAY // 60
"""The longest spread, in minutes."""


class Over(NamedTuple):
    """A window in which more is due than is allowed.

    If the excess waits, all of it has begun by `cleared_at`; None if that is not within the span.
    """

    at: int
    due: int
    cleared_at: int | None


class Grid(NamedTuple):
    """The windows of the clock, in UTC, that a span lies in."""

    span: MinuteSpan
    per: Per

    @property
    def length(self) -> int:
        """The milliseconds of a window."""
        return WINDOWS[self.per]

    def bounds(self) -> Iterator[tuple[int, int, int]]:
        """Yield the start of each window, and the minutes of the span that it has."""
        start = self.span.since - self.span.since % self.length
        while start <= self.span.last:
            first = max(0, self.span.minute(start))
            end = min(self.span.minutes, self.span.minute(start + self.length))
            yield start, first, end
            start += self.length

    def add_up(self, by_minute: Sequence[float]) -> list[float]:
        """Return the sum of each window."""
        return [sum(by_minute[first:end]) for _, first, end in self.bounds()]


def windows_over(due: Sequence[int], most: int, grid: Grid) -> list[Over]:
    """Return the windows in which more is due than is allowed."""
    starts = [start for start, _, _ in grid.bounds()]
    wanted = [int(one) for one in grid.add_up(due)]
    waiting, cleared = 0, list[int | None]()
    for number in wanted:
        waiting = max(0, waiting + number - most)
        cleared.append(waiting)
    ends = _ends_of_waits(cleared, starts, grid.length)
    return [
        Over(start, number, end)
        for start, number, end in zip(starts, wanted, ends, strict=True)
        if number > most
    ]


def _ends_of_waits(
    waiting: Sequence[int | None], starts: Sequence[int], length: int
) -> list[int | None]:
    """Return for each window the end of the first window after which nothing waits any more."""
    ends: list[int | None] = []
    end: int | None = None
    for start, number in zip(reversed(starts), reversed(waiting), strict=True):
        end = start + length if not number else end
        ends.append(end)
    return ends[::-1]


def fitting_spread(sums: Sums, most: int, grid: Grid) -> int | None:
    """Return the shortest spread, in seconds, with which no window has more than is allowed. It has
    whole minutes. None if no spread of at most a day does it.
    """
    movable, held = sums.movable, grid.add_up(sums.fixed)
    together = -(-sums.densest * grid.length // WINDOWS["hour"])

    def fits(minutes: int) -> bool:
        spread = grid.add_up(_spread_out(movable, minutes, ragged=sums.ragged))
        pairs = zip(held, spread, strict=True)
        return sum(_doubt(most - taken, mean, together) for taken, mean in pairs) <= DOUBT

    low, high = 1, LONGEST
    if not fits(high):
        return None
    while low < high:
        middle = (low + high) // 2
        if fits(middle):
            high = middle
        else:
            low = middle + 1
    return high * 60


def _spread_out(movable: Sequence[int], minutes: int, *, ragged: bool) -> list[float]:
    """Return the mean of each minute if each fire moves into one of as many minutes.

    A fire within a minute may move into one more.
    """
    reach, mean, found = minutes + ragged, 0, list[float]()
    for place, number in enumerate(movable):
        mean += number - (movable[place - reach] if place >= reach else 0)
        found.append(mean / minutes)
    return found


def _doubt(room: float, mean: float, together: int) -> float:
    """Return a bound of the probability that a sum of chances has more than there is room for.

    `together` is the most that one schedule adds: its fires share their chance.
    """
    least = room + 2
    if mean <= 0:
        return float(room < 0)
    if least <= mean:
        return 1.0
    return exp((least - mean + least * log(mean / least)) / together)

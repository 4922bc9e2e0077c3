"""The standing orders as ticks and dispatch read them: at most five seconds old."""

from collections.abc import Sequence
from typing import Final

from duetick.domain.standing import StandingOrder
from duetick.ports import Shelf

FRESH_MS: Final = 5_000
"""The time for which what was read is used again."""


class FreshOrders:
    """The standing orders of one database. One trip reads the orders of every kind."""

    def __init__(self, shelf: Shelf) -> None:
        self._shelf = shelf
        self._read: tuple[int, Sequence[StandingOrder]] | None = None

    def at(self, now: int) -> Sequence[StandingOrder]:
        """Return the orders that stood at most five seconds before `now`."""
        known = self._read
        if known and 0 <= now - known[0] < FRESH_MS:
            return known[1]
        return self.read(now)

    def last(self, now: int) -> Sequence[StandingOrder]:
        """Return the orders as they were read last, however long ago."""
        return self._read[1] if self._read else self.read(now)

    def read(self, now: int) -> Sequence[StandingOrder]:
        """Return the orders that stand, as they are now."""
        found = self._shelf.standing()
        self._read = now, found
        return found

    def know(self, now: int, orders: Sequence[StandingOrder]) -> None:
        """Know the orders as another read has found them."""
        self._read = now, orders

    def note(self, written: StandingOrder) -> None:
        """Know an order as this process has written it."""
        if self._read:
            at, known = self._read
            name = written.kind, written.name
            self._read = at, [written if (one.kind, one.name) == name else one for one in known]

    def forget(self) -> None:
        """Read again next time: this process has written an order."""
        self._read = None

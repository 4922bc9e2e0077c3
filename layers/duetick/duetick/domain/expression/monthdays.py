"""The days that depend on the month: L, LW, 15W, FRIL, MON#2.

Each is a function of the weekday of the month's first day (Sunday is 0) and the month's length. It
returns a day of the month, or 0 if the month has no such day.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    InMonth = Callable[[int, int], int]


def last_day(_first: int, length: int) -> int:
    """Return the day of L: the last day."""
    return length


def last_working_day(first: int, length: int) -> int:
    """Return the day of LW: the last day from Monday to Friday."""
    return nearest_working_day(length)(first, length)


def nearest_working_day(day: int) -> InMonth:
    """Return the finder of 15W: the working day nearest to a day, in the same month."""

    def find(first: int, length: int) -> int:
        on = (first + day - 1) % 7
        if day > length:
            return 0
        if on == 6:
            return day - 1 if day > 1 else 3
        if on == 0:
            return day + 1 if day < length else day - 2
        return day

    return find


def nth_weekday(on: int, nth: int) -> InMonth:
    """Return the finder of MON#2: the second Monday."""

    def find(first: int, length: int) -> int:
        day = 1 + (on - first) % 7 + 7 * (nth - 1)
        return day if day <= length else 0

    return find


def last_weekday(on: int) -> InMonth:
    """Return the finder of FRIL: the last Friday."""
    return lambda first, length: length - (first + length - 1 - on) % 7

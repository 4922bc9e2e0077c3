"""The local minutes that an expression names, without zones and instants.

Days count from 1970-01-01, and minutes from the midnight of that day, both on the local clock. A
set is a bytes object with one byte for each minute of a day, or day of a year: `find`, `rfind` and
`count` then search at the speed of C.
"""

from __future__ import annotations

from bisect import bisect_right
from itertools import accumulate
from operator import and_, or_
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

    from duetick.domain.expression.fields import Reading
    from duetick.domain.expression.monthdays import InMonth

FIRST_YEAR, LAST_YEAR = 1, 2199
MONTH_LENGTHS = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


def _leap(year: int) -> bool:
    return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)


YEAR_STARTS = tuple(
    accumulate((365 + _leap(year) for year in range(FIRST_YEAR, LAST_YEAR + 1)), initial=-719162)
)
FIRST_DAY, NEVER_DAY = YEAR_STARTS[0], YEAR_STARTS[-1]
NEVER = NEVER_DAY * 1440
_YEARS = len(YEAR_STARTS) - 1


def weekday(day: int) -> int:
    """Return 0 for Sunday to 6 for Saturday."""
    return (day + 4) % 7  # day 0 was a Thursday


def month_lengths(leap: bool) -> tuple[int, ...]:
    """Return the lengths of the twelve months."""
    return (31, 29, *MONTH_LENGTHS[2:]) if leap else MONTH_LENGTHS


def day_of(year: int, month: int, day: int) -> int | None:
    """Return the day's number, or None if the calendar has no such day."""
    lengths = month_lengths(_leap(year))
    if not (
        FIRST_YEAR <= year <= LAST_YEAR and 1 <= month <= 12 and 1 <= day <= lengths[month - 1]
    ):
        return None
    return YEAR_STARTS[year - FIRST_YEAR] + sum(lengths[: month - 1]) + day - 1


def day_minutes(minutes: frozenset[int], hours: frozenset[int]) -> bytes:
    """Return the 1,440 minutes of a day: 1 for each whose minute and hour are named."""
    row = row_of(minutes, 60)
    if len(hours) == 24:
        return row * 24
    day = bytearray(1440)
    for hour in hours:
        day[hour * 60 : hour * 60 + 60] = row
    return bytes(day)


def row_of(values: Iterable[int], length: int) -> bytes:
    """Return a row of that length, 1 at each of the values."""
    row = bytearray(length)
    for value in values:
        row[value] = 1
    return bytes(row)


class DateFields:
    """The day-of-month, month and day-of-week fields of an expression."""

    __slots__ = ("_date_row", "_dates", "_join", "_months", "_week_row", "_weekdays")

    def __init__(
        self, dates: Reading, months: Reading, weekdays: Reading, *, either: bool = False
    ) -> None:
        """Take the fields. With `either`, one field of days is enough for a match."""
        self._date_row: Final = row_of(dates.values, 32)[1:]
        self._week_row: Final = row_of(weekdays.values, 7) * 6
        self._dates: Final = dates.in_month
        self._weekdays: Final = weekdays.in_month
        self._months: Final = months.values
        self._join: Final = or_ if either else and_

    def year(self, january_1: int, leap: bool) -> bytes:
        """Return the days of a year that starts on a weekday: 1 for each day that matches."""
        first = january_1
        rows = []
        for month, length in enumerate(month_lengths(leap), 1):
            rows.append(self._month(first, length) if month in self._months else bytes(length))
            first = (first + length) % 7
        return b"".join(rows)

    def _month(self, first: int, length: int) -> bytes:
        by_date = _with(self._dates, self._date_row[:length], first)
        by_week = _with(self._weekdays, self._week_row[first : first + length], first)
        if self._join is and_ and 0 not in by_week:
            return by_date
        return bytes(map(self._join, by_date, by_week))


def _with(days: tuple[InMonth, ...], row: bytes, first: int) -> bytes:
    if not days:
        return row
    more = bytearray(row)
    for named in days:
        day = named(first, len(row))
        if day:
            more[day - 1] = 1
    return bytes(more)


class Dates:
    """The days on which an expression with a date may fire.

    There are only 14 kinds of year. Each is computed on first use.
    """

    __slots__ = ("_days", "_end", "_fields", "_kinds", "_start", "_years")

    def __init__(self, fields: DateFields, years: frozenset[int] | None = None) -> None:
        """Take the fields, and the years of the expression if it names years."""
        self._fields: Final = fields
        self._years: Final = years
        self._start: Final = min(years) - FIRST_YEAR if years else 0
        self._end: Final = max(years) - FIRST_YEAR + 1 if years else _YEARS
        self._kinds: Final[dict[tuple[int, bool], bytes]] = {}
        self._days: Final[dict[int, bytes]] = {}

    def _year(self, index: int) -> bytes:
        """Return the days of the year at a place in YEAR_STARTS."""
        days = self._days.get(index)
        if days is None:
            days = self._days[index] = self._compute(index)
        return days

    def _compute(self, index: int) -> bytes:
        if self._years is not None and index + FIRST_YEAR not in self._years:
            return b""
        start = YEAR_STARTS[index]
        kind = weekday(start), YEAR_STARTS[index + 1] - start == 366
        if kind not in self._kinds:
            self._kinds[kind] = self._fields.year(*kind)
        return self._kinds[kind]

    def ever(self) -> bool:
        """Return True if any day of the calendar matches."""
        years = range(2026, 2054) if self._years is None else self._years  # or all 14 kinds
        return any(1 in self._year(year - FIRST_YEAR) for year in years)

    def first(self, day: int) -> int:
        """Return the first matching day from `day` on, or NEVER_DAY if there is none."""
        day = max(day, YEAR_STARTS[self._start])
        index = bisect_right(YEAR_STARTS, day) - 1
        rest = day - YEAR_STARTS[index]
        while index < self._end:
            found = self._year(index).find(1, rest)
            if found >= 0:
                return YEAR_STARTS[index] + found
            index, rest = index + 1, 0
        return NEVER_DAY

    def last(self, day: int) -> int:
        """Return the last matching day up to `day`, or a day before FIRST_DAY if there is none."""
        index = min(bisect_right(YEAR_STARTS, day), self._end) - 1
        while index >= self._start:
            found = self._year(index).rfind(1, 0, max(day - YEAR_STARTS[index] + 1, 0))
            if found >= 0:
                return YEAR_STARTS[index] + found
            index -= 1
        return FIRST_DAY - 1


class Almanac:
    """The local minutes that an expression names. `fixed` is the sense of C-01."""

    __slots__ = ("_dates", "_week", "fixed")

    def __init__(self, week: tuple[bytes, ...], dates: Dates | None, *, fixed: bool) -> None:
        """Take the minutes of each weekday from Sunday on, and the days; None means every day.

        With `dates`, every weekday must have minutes.
        """
        self._week: Final = week
        self._dates: Final = dates
        self.fixed: Final = fixed

    @property
    def week(self) -> tuple[bytes, ...]:
        """The minutes of each weekday, from Sunday on."""
        return self._week

    def minutes_of(self, day: int) -> bytes:
        """Return the named minutes of a day that has any."""
        return self._week[weekday(day)]

    def first(self, minute: int) -> int:
        """Return the first named minute from `minute` on, or NEVER if there is none."""
        day, rest = divmod(minute, 1440)
        week, dates = self._week, self._dates
        if dates is not None:
            on = dates.first(day)
            if on != day:
                day, rest = on, 0
        found = week[(day + 4) % 7].find(1, rest)
        while found < 0:
            day = day + 1 if dates is None else dates.first(day + 1)
            found = week[(day + 4) % 7].find(1)
        return day * 1440 + found if day < NEVER_DAY else NEVER

    def last(self, minute: int) -> int:
        """Return the last named minute up to `minute`, or one before the calendar if none."""
        day, rest = divmod(min(minute, NEVER - 1), 1440)
        end = rest + 1
        while day >= FIRST_DAY:
            on = day if self._dates is None else self._dates.last(day)
            found = self._week[weekday(on)].rfind(1, 0, end if on == day else 1440)
            if found >= 0:
                return on * 1440 + found
            day, end = on - 1, 1440
        return FIRST_DAY * 1440 - 1

    def count(self, start: int, end: int) -> int:
        """Count the named minutes in [start, end)."""
        (first, rest), (last, until) = divmod(start, 1440), divmod(end, 1440)
        if first == last:
            return self._minutes(first).count(1, rest, until)
        whole = sum(self._minutes(day).count(1) for day in range(first + 1, last))
        return self._minutes(first).count(1, rest) + whole + self._minutes(last).count(1, 0, until)

    def _minutes(self, day: int) -> bytes:
        if self._dates is None or self._dates.first(day) == day:
            return self._week[weekday(day)] if FIRST_DAY <= day < NEVER_DAY else b""
        return b""

"""The oracle: C-01 by a walk, one step of the clock after another.

It shares nothing with the module under test: zones come from the standard library's reader (of
the same pinned files), fields from a reader of its own, and no step is ever skipped. It reads
right expressions only, and is slow.
"""

import calendar
import datetime
import re
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from importlib.resources import files
from typing import Protocol
from zoneinfo import ZoneInfo

Clock = list[tuple[int, int]]  # (UTC second, local second), one for each step

UTC = datetime.UTC
MINUTE = datetime.timedelta(minutes=1)
EPOCH = datetime.datetime(1970, 1, 1, tzinfo=UTC).replace(tzinfo=None)
MONTHS = ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"]
DAYS = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"]


def zone_names() -> list[str]:
    """Return every name that the package has."""
    return sorted(files("tzdata").joinpath("zones").read_text("ascii").split())


@lru_cache(maxsize=64)
def zone(name: str) -> ZoneInfo:
    """Read a zone from the package, not from the system."""
    with files("tzdata").joinpath("zoneinfo", *name.split("/")).open("rb") as file:
        return ZoneInfo.from_file(file, name)


def local_second(name: str, utc: int) -> int:
    """Return the time on the zone's clock, as seconds since 1970-01-01 00:00 on that clock."""
    shown = datetime.datetime.fromtimestamp(utc, zone(name)).replace(tzinfo=None)
    return int((shown - EPOCH).total_seconds())


def clock(name: str, start: int, end: int, step: int = 60) -> Clock:
    """Return each step of the zone's clock from `start` to `end`, both UTC seconds."""
    return [(utc, local_second(name, utc)) for utc in range(start, end + 1, step)]


def changes(name: str, start: int, end: int) -> Iterator[int]:
    """Return the UTC seconds at which the zone's offset changes, found by halving days."""
    for early in range(start, end, 86_400):
        low, high = early, early + 86_400
        if _offset(name, low) == _offset(name, high):
            continue
        while high - low > 1:
            middle = (low + high) // 2
            if _offset(name, middle) == _offset(name, low):
                low = middle
            else:
                high = middle
        yield high


def _offset(name: str, utc: int) -> int:
    return local_second(name, utc) - utc


class Expression:
    """Five fields, read by expanding every item to the values that it stands for."""

    def __init__(self, text: str) -> None:
        """Take a right expression."""
        minute, hour, self.dates, month, self.weekdays = text.upper().split()
        self.fixed = not minute.startswith("*") and not hour.startswith("*")
        minutes, hours = _values(minute, range(60)), _values(hour, range(24))
        self.times = {60 * h + m for h in hours for m in minutes}
        self.months = _values(month, range(1, 13), MONTHS)
        self.either = "*" not in (self.dates[0], self.weekdays[0])
        self._days: dict[int, bool] = {}

    def names(self, minute: int) -> bool:
        """Say whether a minute of the local clock, counted from 1970-01-01 00:00, is named."""
        if minute % 1440 not in self.times:
            return False
        day = minute // 1440
        if day not in self._days:
            self._days[day] = self.names_day(EPOCH.date() + datetime.timedelta(day))
        return self._days[day]

    def names_day(self, day: datetime.date) -> bool:
        """Say whether the three date fields name a day."""
        by_date = any(_date_item(item, day) for item in self.dates.split(","))
        by_week = any(_weekday_item(item, day) for item in self.weekdays.split(","))
        both = by_date or by_week if self.either else by_date and by_week
        return both and day.month in self.months


class Six(Expression):
    """EventBridge's cron(…): Sunday is 1, a `?` is anything, the year stands at the end."""

    def __init__(self, inner: str) -> None:
        """Take six right fields."""
        *times, weekdays, years = inner.upper().replace("?", "*").split()
        if weekdays == "L":
            weekdays = "SAT"
        weekdays = re.sub(r"(?<![#/])\d", lambda digit: str(int(digit[0]) - 1), weekdays)
        super().__init__(" ".join([*times, weekdays]))
        self._years = None if years == "*" else _values(years, range(1970, 2200))

    def names_day(self, day: datetime.date) -> bool:
        """Say whether the date fields and the year name a day."""
        return (not self._years or day.year in self._years) and super().names_day(day)


class Days:
    """days(…): a minute of some weekdays, for one target or several."""

    fixed = True

    def __init__(self, inner: str) -> None:
        """Take right days, with or without targets."""
        found = re.findall(r"(\w{3}) (\d\d):(\d\d)", inner)
        self._times = {(DAYS.index(day.upper()), int(h) * 60 + int(m)) for day, h, m in found}

    def names(self, minute: int) -> bool:
        """Say whether a minute of the local clock is one of a day's."""
        weekday = (EPOCH + datetime.timedelta(minutes=minute)).isoweekday() % 7
        return (weekday, minute % 1440) in self._times


class Moment:
    """at(…): one minute of the local clock."""

    fixed = True

    def __init__(self, inner: str) -> None:
        """Take a right local time, to the full minute."""
        self._minute = (datetime.datetime.fromisoformat(inner) - EPOCH) // MINUTE

    def names(self, minute: int) -> bool:
        """Say whether that is the minute."""
        return minute == self._minute


FORMS: dict[str, Callable[[str], "Named"]] = {"cron": Six, "days": Days, "at": Moment}


class Named(Protocol):
    """Anything that names minutes of the local clock."""

    @property
    def fixed(self) -> bool:
        """Return True if it is fixed (C-01)."""

    def names(self, minute: int) -> bool:
        """Return True if it names that minute."""


def read(text: str) -> Named:
    """Read any right expression but a rate."""
    form, bracket, inner = text.partition("(")
    return FORMS[form](inner.removesuffix(")")) if bracket else Expression(text)


def _values(text: str, span: range, names: Iterable[str] = ()) -> set[int]:
    for number, name in enumerate(names, span[0]):
        text = text.replace(name, str(number))
    found: set[int] = set()
    for item in text.split(","):
        body, _, step = item.partition("/")
        if body == "*":
            low, high = span[0], span[-1]
        elif "-" in body:
            low, high = (int(part) for part in body.split("-"))
        else:
            low = int(body)
            high = span[-1] if step else low
        found |= {value for value in range(low, high + 1) if (value - low) % int(step or 1) == 0}
    return found


def _month_days(day: datetime.date) -> list[datetime.date]:
    return [day.replace(day=d) for d in range(1, calendar.monthrange(day.year, day.month)[1] + 1)]


def _date_item(item: str, day: datetime.date) -> bool:
    days = _month_days(day)
    working = [each for each in days if each.isoweekday() <= 5]
    if item == "L":
        return day == days[-1]
    if item == "LW":
        return day == working[-1]
    if item.endswith("W"):
        wanted = int(item[:-1])
        if wanted > len(days):
            return False
        return day == min(working, key=lambda each: (abs(each.day - wanted), _tie(each, wanted)))
    return day.day in _values(item, range(1, 32))


def _tie(day: datetime.date, wanted: int) -> bool:
    return day.day > wanted


def _weekday_item(item: str, day: datetime.date) -> bool:
    same = [each for each in _month_days(day) if each.weekday() == day.weekday()]
    number = day.isoweekday() % 7
    if match := re.fullmatch(r"(\w+)#(\d)", item):
        return number in _weekday(match[1]) and same.index(day) + 1 == int(match[2])
    if item.endswith("L"):
        return number in _weekday(item[:-1]) and day == same[-1]
    return number in _weekday(item)


def _weekday(text: str) -> set[int]:
    text = re.sub(r"(?<=-)SUN", "7", text)
    span = range(8) if "-" in text else range(7)
    return {value % 7 for value in _values(text, span, DAYS)}


def walk(expression: Named, steps: Clock, gap: str = "run", repeat: str = "first") -> list[int]:
    """Return the UTC milliseconds at which the expression fires, after the first step.

    Fixed: each named minute once, when the clock first reaches or passes it. Other: whenever a
    named minute begins on the clock, or a change lands in one that the clock was not reading.
    """
    fired = _walk_fixed(expression, steps, gap, repeat) if expression.fixed else None
    return sorted(set(_walk_real(expression, steps) if fired is None else fired))


def _walk_real(expression: Named, steps: Clock) -> Iterator[int]:
    reading = steps[0][1] // 60
    for utc, local in steps[1:]:
        begins = local % 60 == 0 or local // 60 != reading
        if begins and expression.names(local // 60):
            yield utc * 1000
        reading = local // 60


def _walk_fixed(expression: Named, steps: Clock, gap: str, repeat: str) -> Iterator[int]:
    furthest = steps[0][1]
    for utc, local in steps[1:]:
        for minute in range(furthest // 60 + 1, local // 60 + 1):
            if expression.names(minute) and (gap == "run" or minute * 60 == local):
                yield utc * 1000
        again = local <= furthest and local % 60 == 0
        if again and repeat == "both" and expression.names(local // 60):
            yield utc * 1000
        furthest = max(furthest, local)

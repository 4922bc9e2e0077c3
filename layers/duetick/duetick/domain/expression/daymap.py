"""Day maps (G-05): a time for each enabled day, for one target or several."""

from __future__ import annotations

from duetick.domain.errors import kind_of
from duetick.domain.expression.almanac import Almanac, row_of
from duetick.domain.expression.errors import InvalidExpression, quote
from duetick.domain.expression.firing import Recurring

DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
LONG_DAYS = ("sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday")
_IN_ORDER = (*DAYS[1:], "sun")
_NAME = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-")
_EXAMPLE = "for example: days(mon 09:00, thu 17:30) or days(x: mon 09:00; threads: tue 10:00)"

DayTimes = dict[str, int]  # a weekday's name -> the minute of the day


def read_days(inner: str) -> tuple[str, Recurring]:
    """Read `mon 09:00, thu 17:30`, or `x: mon 09:00; threads: tue 10:00`."""
    maps: dict[str, DayTimes] = {}
    for part in inner.split(";") if inner.strip() else ():
        name, days = _target(part)
        if name in maps or (maps and not (name and all(maps))):
            raise refusal(part, "must begin with a target's name of its own")
        maps[name] = _times(days)
    parts = tuple((name, _days_text(days)) for name, days in maps.items() if name)
    return day_map_of(maps), Recurring(_almanac(list(maps.values())), parts)


def day_map_of(maps: dict[str, DayTimes]) -> str:
    """Return the text of a day map. Raises InvalidExpression if it enables no day."""
    if not any(maps.values()):
        raise InvalidExpression(
            f"the day map enables no day, so it can never fire; {_EXAMPLE}", "never_fires"
        )
    parts = [(f"{name}: " if name else "", days) for name, days in maps.items() if days]
    return f"days({'; '.join(name + _days_text(days) for name, days in parts)})"


def _days_text(days: DayTimes) -> str:
    times = ((day, divmod(days[day], 60)) for day in _IN_ORDER if day in days)
    return ", ".join(f"{day} {hour:02}:{minute:02}" for day, (hour, minute) in times)


def _target(part: str) -> tuple[str, str]:
    head, colon, rest = part.strip().partition(":")
    return (check_target(head.strip()), rest) if colon and len(head.split()) < 2 else ("", part)


def check_target(name: object) -> str:
    """Return the name of a target. Raises InvalidExpression if it can be none."""
    if not isinstance(name, str):
        raise refusal(str(name), f"is {kind_of(name)}, and a target's name is text")
    if not name or len(name) > 64 or not _NAME.issuperset(name):
        raise refusal(name, "is no target's name (letters, digits, _ . - and at most 64 of them)")
    return name


def _times(text: str) -> DayTimes:
    days: DayTimes = {}
    for item in text.split(","):
        day, time = (*item.split(None, 1), "", "")[:2]
        enable(days, day, time.strip())
    return days


def day_named(day: str) -> str:
    """Return the short name of a day, in lower case. A name that is no day's is not cut."""
    name = day.lower()
    return name[:3] if name in LONG_DAYS else name


def enable(days: DayTimes, day: str, time: str) -> None:
    """Give a day its time. Raises InvalidExpression if it is no day, has one, or it is no time."""
    name = day_named(day)
    if name not in DAYS:
        raise refusal(day, f"is not a day; the days are {' '.join(_IN_ORDER)}")
    if name in days:
        raise refusal(day, "has its time already")
    days[name] = _minute(time, day)


def _minute(time: str, day: str) -> int:
    hour, _, minute = time.partition(":")
    right = time.isascii() and hour.isdigit() and minute.isdigit()
    if not right or len(hour) > 2 or len(minute) != 2 or int(hour) > 23 or int(minute) > 59:
        raise refusal(time, f"is no time from 00:00 to 23:59 (on {day})")
    return int(hour) * 60 + int(minute)


def _almanac(maps: list[DayTimes]) -> Almanac:
    week = (_day({days[day] for days in maps if day in days}) for day in DAYS)
    return Almanac(tuple(week), None, fixed=True)


def _day(minutes: set[int]) -> bytes:
    """Return the minutes of a day up to the last named one: many maps stay in memory."""
    return row_of(minutes, max(minutes, default=-1) + 1)


def refusal(piece: str, why: str) -> InvalidExpression:
    """Return the refusal of a piece of a day map."""
    return InvalidExpression(f"days(…): {quote(piece.strip())} {why}; {_EXAMPLE}")

"""Day maps (G-05): a time for each enabled day, for one target or several."""

from __future__ import annotations

from typing import TYPE_CHECKING

from duetick.domain.errors import kind_of
from duetick.domain.expression.almanac import Almanac, row_of
from duetick.domain.expression.errors import InvalidExpression, quoted
from duetick.domain.expression.firing import Recurring

if TYPE_CHECKING:
    from collections.abc import Mapping

DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_IN_ORDER = (*DAYS[1:], "sun")
_NAME = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-")
_EXAMPLE = "for example: days(mon 09:00, thu 17:30) or days(x: mon 09:00; threads: tue 10:00)"

_Days = dict[str, int]  # a weekday's name -> the minute of the day


def day_map_text(mapping: Mapping[str, object]) -> str:
    """Write {"mon": "09:00", "tue": None}, or such a dict for each target, as days(…).

    A day is enabled if its time is a string.
    """
    from collections.abc import Mapping  # only writes need this import

    if not isinstance(mapping, Mapping):
        raise _refusal(kind_of(mapping), "is no mapping of days to times")
    targets = {name: days for name, days in mapping.items() if isinstance(days, Mapping)}
    if not targets:
        return _text({"": _read_days(mapping)})
    for name, days in mapping.items():
        if isinstance(days, str):
            raise _refusal(str(name), "has a time beside targets; give it to one of them")
    return _text({_check_name(name): _read_days(days) for name, days in targets.items()})


def read_days(inner: str) -> tuple[str, Recurring]:
    """Read `mon 09:00, thu 17:30`, or `x: mon 09:00; threads: tue 10:00`."""
    maps: dict[str, _Days] = {}
    for part in inner.split(";") if inner.strip() else ():
        name, days = _target(part)
        if name in maps or (maps and not (name and all(maps))):
            raise _refusal(part, "must begin with a target's name of its own")
        maps[name] = _times(days)
    parts = tuple((name, _days_text(days)) for name, days in maps.items() if name)
    return _text(maps), Recurring(_almanac(list(maps.values())), parts)


def _text(maps: dict[str, _Days]) -> str:
    if not any(maps.values()):
        raise InvalidExpression(
            f"the day map enables no day, so it can never fire; {_EXAMPLE}", "never_fires"
        )
    parts = [(f"{name}: " if name else "", days) for name, days in maps.items() if days]
    return f"days({'; '.join(name + _days_text(days) for name, days in parts)})"


def _days_text(days: _Days) -> str:
    times = ((day, divmod(days[day], 60)) for day in _IN_ORDER if day in days)
    return ", ".join(f"{day} {hour:02}:{minute:02}" for day, (hour, minute) in times)


def _read_days(times: Mapping[str, object]) -> _Days:
    days: _Days = {}
    for day, time in times.items():
        if isinstance(time, str):
            _enable(days, str(day), time)
    return days


def _target(part: str) -> tuple[str, str]:
    head, colon, rest = part.strip().partition(":")
    return (_check_name(head.strip()), rest) if colon and len(head.split()) < 2 else ("", part)


def _check_name(name: object) -> str:
    if not isinstance(name, str):
        raise _refusal(str(name), f"is {kind_of(name)}, and a target's name is text")
    if not name or len(name) > 64 or not _NAME.issuperset(name):
        raise _refusal(name, "is no target's name (letters, digits, _ . - and at most 64 of them)")
    return name


def _times(text: str) -> _Days:
    days: _Days = {}
    for item in text.split(","):
        day, time = (*item.split(None, 1), "", "")[:2]
        _enable(days, day, time.strip())
    return days


def _enable(days: _Days, day: str, time: str) -> None:
    name = day.lower()
    if name not in DAYS:
        raise _refusal(day, f"is not a day; the days are {' '.join(_IN_ORDER)}")
    if name in days:
        raise _refusal(day, "has its time already")
    days[name] = _minute(time, day)


def _minute(time: str, day: str) -> int:
    hour, _, minute = time.partition(":")
    right = time.isascii() and hour.isdigit() and minute.isdigit()
    if not right or len(hour) > 2 or len(minute) != 2 or int(hour) > 23 or int(minute) > 59:
        raise _refusal(time, f"is no time from 00:00 to 23:59 (on {day})")
    return int(hour) * 60 + int(minute)


def _almanac(maps: list[_Days]) -> Almanac:
    week = (_day({days[day] for days in maps if day in days}) for day in DAYS)
    return Almanac(tuple(week), None, fixed=True)


def _day(minutes: set[int]) -> bytes:
    """Return the minutes of a day up to the last named one: many maps stay in memory."""
    return row_of(minutes, max(minutes, default=-1) + 1)


def _refusal(piece: str, why: str) -> InvalidExpression:
    return InvalidExpression(f"days(…): {quoted(piece.strip())} {why}; {_EXAMPLE}")

"""An expression in words: a sentence that a form shows below the field.

The words follow the canonical text item by item, so two expressions with the same words fire alike.
"""

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple, TypeAlias

from duetick.domain.expression import parse

Say: TypeAlias = Callable[[int], str]
"""A function that returns the name of a value."""

DAYS: Final = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
MONTHS: Final = (
    *("January", "February", "March", "April", "May", "June", "July"),
    *("August", "September", "October", "November", "December"),
)
SHORT: Final = {name[:3].lower(): name for name in DAYS}
MOST_TIMES: Final = 6
"""The most times of day that are listed one by one."""


class _Unit(NamedTuple):
    """A field: its unit, the span of its values, the words for one value, and the word before
    several.
    """

    name: str
    low: int
    high: int
    say: Say
    several: str = ""


def _ordinal(number: int) -> str:
    ending = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10)
    return f"{number}{ending or 'th'}"


_MINUTE: Final = _Unit("minute", 0, 59, str, "the minutes ")
_HOUR: Final = _Unit("hour", 0, 23, str, "the hours ")
_DATE: Final = _Unit("day of the month", 1, 31, lambda day: f"the {_ordinal(day)}")
_MONTH: Final = _Unit("month", 1, 12, lambda month: MONTHS[month - 1])
_WEEKDAY: Final = _Unit("day of the week", 0, 7, lambda day: DAYS[day % 7])
_AWS_WEEKDAY: Final = _Unit("day of the week", 1, 7, lambda day: DAYS[day - 1])
_YEAR: Final = _Unit("year", 1970, 2199, str)


def in_words(cron: str) -> str:
    """Return an expression as a sentence. Raises InvalidExpression if it cannot be read."""
    text = parse(cron)
    form, opening, rest = text.partition("(")
    if not opening:
        return _sentence(_of_fields(text.split(" "), _WEEKDAY))
    inner = rest[:-1]
    if form == "rate":
        return f"Every {inner.removeprefix('1 ')}, counted from when the schedule is made."
    if form == "at":
        return _say_once(inner)
    if form == "days":
        said = "; ".join(_of_target(part) for part in inner.split("; "))
        return f"{said}." if ": " in inner else _sentence(said)
    *fields, year = inner.split(" ")
    said = _of_fields(["*" if field == "?" else field for field in fields], _AWS_WEEKDAY)
    return _sentence(said if year == "*" else f"{said}, in {_list(_items(year, _YEAR))}")


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."


def _list(parts: Sequence[str], word: str = "and") -> str:
    if not parts[1:]:
        return parts[0]
    return f"{', '.join(parts[:-1])} {word} {parts[-1]}"


def _say_once(local: str) -> str:
    date, _, clock = local.partition("T")
    year, month, day = map(int, date.split("-"))
    return f"Once, on {day} {MONTHS[month - 1]} {year} at {clock.removesuffix(':00')}."


def _of_target(part: str) -> str:
    """Say the days of a target, those of one time together."""
    name, colon, days = part.partition(": ")
    by_time: dict[str, list[str]] = {}
    for item in (days if colon else part).split(", "):
        day, time = item.split(" ")
        by_time.setdefault(time, []).append(SHORT[day])
    said = _list([f"at {time} on {_list(named)}" for time, named in by_time.items()])
    return f"{name}: {said}" if colon else said


def _of_fields(fields: Sequence[str], weekday: _Unit) -> str:
    minute, hour, date, month, on = fields
    said = [_clock(minute, hour)]
    days = _days(date, on, weekday) or ("every day" if said[0].startswith("at ") else "")
    if days:
        said.append(days)
    if month != "*":
        said.append(f"in {_list(_items(month, _MONTH))}")
    return ", ".join(said)


def _clock(minute: str, hour: str) -> str:
    minutes, hours = _numbers(minute), _numbers(hour)
    if minutes and hours and len(minutes) * len(hours) <= MOST_TIMES:
        return f"at {_list([f'{h:02}:{m:02}' for h in hours for m in minutes])}"
    each_hour = hour == "*"
    if minute == "*":
        return "every minute" if each_hour else f"every minute, in {_in_hours(hour)}"
    if minutes:
        of = "of every hour" if each_hour else f"of {_in_hours(hour)}"
        return f"at {_say_numbers('minute', minutes)} {of}"
    said = f"at {_list(_items(minute, _MINUTE))}"
    start, _, step = minute.partition("/")
    if start == "*" and step.isdigit() and 60 % int(step) == 0:
        said = f"every {step} minutes" if int(step) > 1 else "every minute"
    return said if each_hour else f"{said}, in {_in_hours(hour)}"


def _in_hours(hour: str) -> str:
    hours = _numbers(hour)
    return f"the {_say_numbers('hour', hours)}" if hours else _list(_items(hour, _HOUR))


def _say_numbers(unit: str, numbers: Sequence[int]) -> str:
    return f"{unit}{'s' if numbers[1:] else ''} {_list(list(map(str, numbers)))}"


def _numbers(field: str) -> list[int]:
    """Return the values of a field that is a list of numbers; none if it is anything else."""
    items = field.split(",")
    return list(map(int, items)) if all(item.isdigit() for item in items) else []


def _days(date: str, weekday: str, unit: _Unit) -> str:
    dates = "" if date == "*" else f"on {_list(_dates(date))}"
    weekdays = "" if weekday == "*" else f"on {_list(_weekdays(weekday, unit))}"
    if not (dates and weekdays):
        return dates or weekdays
    both = date.startswith("*") or weekday.startswith("*")
    if both:
        return f"{dates}, if that day is {weekdays.removeprefix('on ')} too"
    return f"{dates}, and also {weekdays} (either is enough)"


def _dates(field: str) -> list[str]:
    items = field.split(",")
    said = [one for item in items for one in (_special_date(item) or _items(item, _DATE))]
    return [*said[:-1], f"{said[-1]} of the month"] if said[-1].startswith("the") else said


def _special_date(item: str) -> list[str]:
    if item == "L":
        return ["the last day"]
    if item == "LW":
        return ["the last working day"]
    if item.endswith("W"):
        return [f"the working day nearest to the {_ordinal(int(item[:-1]))}"]
    return []


def _weekdays(field: str, unit: _Unit) -> list[str]:
    return [
        one for item in field.split(",") for one in (_special_day(item, unit) or _items(item, unit))
    ]


def _special_day(item: str, unit: _Unit) -> list[str]:
    day, nth, number = item.partition("#")
    if nth:
        return [f"the {_ordinal(int(number))} {unit.say(int(day))} of the month"]
    if item.endswith("L"):
        return [f"the last {unit.say(int(item[:-1]))} of the month"]
    return []


def _items(field: str, unit: _Unit) -> list[str]:
    return [_item(item, unit) for item in field.split(",")]


def _item(item: str, unit: _Unit) -> str:
    """Say one item of a list: a star, a value, a range, each perhaps with a step."""
    body, slash, step = item.partition("/")
    low, dash, high = body.partition("-")
    if body == "*":
        first, last = unit.low, unit.high
    else:
        first = int(low)
        last = int(high) if dash else unit.high if slash else first
    if not slash:
        if body == "*":
            return f"every {unit.name}"
        if not dash:
            return f"{unit.several}{unit.say(first)}"
        return f"{unit.several}{unit.say(first)} to {unit.say(last)}"
    until = f" to {unit.say(last)}" if dash else " on"
    nth = f"every {_ordinal(int(step))} {unit.name}" if int(step) > 1 else f"every {unit.name}"
    return f"{nth} from {unit.say(first)}{until}"

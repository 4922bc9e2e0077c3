"""The fields of APScheduler's cron as an expression of five fields, or of EventBridge's for years.

All fields have to match, and Monday is day 0. A field that is not given is a star if a finer one is
given, else its least value; the stores keep it written out.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from duetick.cli.transfer.items import NotReadable, unreadable
from duetick.cli.transfer.pickles import StandIn
from duetick.domain.expression import InvalidExpression, parse
from duetick.domain.expression.spelling import WEEKDAYS as DAYS
from duetick.domain.expression.spelling import spell

NAMES: Final = ("year", "month", "day", "week", "day_of_week", "hour", "minute", "second")
BOUNDS: Final[Mapping[str, tuple[int, int]]] = {
    "year": (1970, 2199),
    "month": (1, 12),
    "day": (1, 31),
    "week": (1, 53),
    "day_of_week": (0, 6),
    "hour": (0, 23),
    "minute": (0, 59),
    "second": (0, 59),
}
WEEKDAYS: Final = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
MONTHS: Final = (
    *("jan", "feb", "mar", "apr", "may", "jun"),
    *("jul", "aug", "sep", "oct", "nov", "dec"),
)
POSITIONS: Final = ("1st", "2nd", "3rd", "4th", "5th", "last")
POSITION: Final = re.compile(rf"({'|'.join(POSITIONS)}) +(\w+)", re.IGNORECASE)
PART: Final = re.compile(r"(\*|\w+)(?:-(\w+))?(?:/(\d+))?")
WEEKS: Final = (range(1, 8), range(8, 15), range(15, 22), range(22, 29))
"""The days of a month in which a weekday is its first, second, third, fourth."""


class CronFields(NamedTuple):
    """The parts of a cron trigger: values by field, and the days of a month that a position names.

    `starred` are the fields that begin with a star as written.
    """

    values: Mapping[str, frozenset[int]]
    positions: Sequence[str]
    starred: frozenset[str]


def text_of(field: object) -> str:
    """Return a field as text: of version 4 it is that; of version 3 it is made of expressions."""
    if isinstance(field, str):
        return field
    if not isinstance(field, StandIn):
        raise NotReadable("a field of its trigger cannot be read", "a trigger of APScheduler")
    return ",".join(_text_of_expression(one) for one in field.state["expressions"])


def _text_of_expression(one: object) -> str:
    state = one.state if isinstance(one, StandIn) else {}
    if "option_num" in state:
        return f"{POSITIONS[state['option_num']]} {WEEKDAYS[state['weekday']]}"
    if isinstance(one, StandIn) and one.ref.endswith("LastDayOfMonthExpression"):
        return "last"
    step = f"/{state['step']}" if state.get("step") else ""
    if "first" not in state:
        return f"*{step}"
    last = "" if state.get("last") in (None, state["first"]) else f"-{state['last']}"
    return f"{state['first']}{last}{step}"


def read_fields(texts: Mapping[str, str]) -> CronFields:
    values: dict[str, frozenset[int]] = {}
    positions: list[str] = []
    for name, text in texts.items():
        found: set[int] = set()
        for part in re.split(r" *, *", text.strip()):
            position = _position(part) if name == "day" else None
            if position:
                positions.append(position)
            else:
                found |= _values(name, part)
        values[name] = frozenset(found)
    starred = frozenset(name for name, text in texts.items() if text.startswith("*"))
    return CronFields(values, positions, starred)


def _position(part: str) -> str | None:
    """Return the last day, or a weekday by its place in the month, as cron writes it."""
    if part.lower() == "last":
        return "L"
    found = POSITION.fullmatch(part)
    if not found:
        return None
    day = DAYS[(_number("day_of_week", found[2]) + 1) % 7]
    place = POSITIONS.index(found[1].lower())
    return f"{day}L" if place == len(POSITIONS) - 1 else f"{day}#{place + 1}"


def _values(name: str, part: str) -> set[int]:
    low, high = BOUNDS[name]
    found = PART.fullmatch(part)
    if not found:
        raise NotReadable(f"{name}={part} cannot be read", "a field as APScheduler writes it")
    first, last, step = found.groups()
    if first != "*":
        low = _number(name, first)
        high = _number(name, last) if last else (high if step else low)
    return set(range(low, high + 1, int(step or 1)))


def _number(name: str, text: str) -> int:
    names = {"day_of_week": WEEKDAYS, "month": MONTHS}.get(name, ())
    if text.lower() in names:
        return names.index(text.lower()) + BOUNDS[name][0]
    if not text.isdigit():
        raise NotReadable(f"{name}={text} cannot be read", "a number, or a name of APScheduler")
    return int(text)


def expression_of(read: CronFields, notes: list[str]) -> str:
    """Return the expression that names the same minutes. Raises NotReadable if there is none."""
    _check_week(read)
    _check_second(read, notes)
    years = read.values["year"]
    minute, hour = _clock(read)
    month = spell(read.values["month"], *BOUNDS["month"])
    day, weekday = _days(read)
    if years == frozenset(range(1970, 2200)):
        return _parse(f"{minute} {hour} {day} {month} {weekday}")
    if day != "*" and weekday != "*":
        raise NotReadable(
            "it names years, days of the month and of the week together",
            "two schedules, or an action that looks at the date",
        )
    parts = ("*", _days_of_aws(weekday)) if weekday != "*" else (day, "?")
    days = ("?", parts[1]) if weekday != "*" else parts
    return _parse(f"cron({minute} {hour} {days[0]} {month} {days[1]} {_years(years)})")


def _parse(text: str) -> str:
    try:
        return parse(text)
    except InvalidExpression as problem:
        raise unreadable(problem, "another time") from None


def _check_week(read: CronFields) -> None:
    if read.values["week"] != frozenset(range(1, 54)):
        raise NotReadable(
            "it names weeks of the year, which no expression here does",
            "the dates of those weeks, or an action that looks at the week",
        )


def _check_second(read: CronFields, notes: list[str]) -> None:
    seconds = read.values["second"]
    if len(seconds) > 1:
        raise NotReadable(
            "it fires within a minute, and cron here resolves to the minute",
            "rate(30 seconds) in a deployment with look-ahead, or each minute",
        )
    if seconds != {0}:
        notes.append(f"it fires at the full minute here, not at second {min(seconds)}")


def _clock(read: CronFields) -> tuple[str, str]:
    """Return minute and hour. A star keeps real time when clocks change, as it does there."""
    hours, minutes = read.values["hour"], read.values["minute"]
    hour = spell(hours, *BOUNDS["hour"])
    step = _step(minutes) if "minute" in read.starred else None
    return step or spell(minutes, *BOUNDS["minute"]), hour


def _step(minutes: frozenset[int]) -> str | None:
    """Return the star with a step that names these minutes, or None."""
    for step in range(1, 60):
        if minutes == frozenset(range(0, 60, step)):
            return "*" if step == 1 else f"*/{step}"
    return None


def _days(read: CronFields) -> tuple[str, str]:
    """Return day of month and day of week, so that both have to match."""
    dates = read.values["day"]
    weekdays = frozenset((day + 1) % 7 for day in read.values["day_of_week"])
    day = spell(dates, *BOUNDS["day"]) if dates else ""
    weekday = spell(weekdays, 0, 6)
    if read.positions:
        return _days_by_position(read.positions, day, weekday)
    if day == "*" or weekday == "*":
        return day, weekday
    weeks = [number for number, week in enumerate(WEEKS, 1) if dates >= set(week)]
    if weeks and len(dates) == 7 * len(weeks):
        return "*", ",".join(f"{DAYS[on]}#{week}" for on in sorted(weekdays) for week in weeks)
    if 1 in dates:
        return ",".join(filter(None, ["*/31", _others(dates, 1, "day")])), weekday
    if 0 in weekdays:
        return day, ",".join(filter(None, ["*/7", _others(weekdays, 0, "day_of_week")]))
    raise NotReadable(
        "both the day of the month and the day of the week have to match, which no expression "
        f"here says of {day} and {weekday}",
        "one of the two, and an action that looks at the other",
    )


def _others(values: frozenset[int], besides: int, name: str) -> str:
    """Return the values but one, as a field; a field that begins with a star has that one."""
    rest = values - {besides}
    return spell(rest, *BOUNDS[name]) if rest else ""


def _days_by_position(positions: Sequence[str], day: str, weekday: str) -> tuple[str, str]:
    if weekday != "*":
        raise NotReadable(
            "it names places in the month and days of the week together",
            "one of the two, and an action that looks at the other",
        )
    last = [one for one in positions if one == "L"]
    nth = [one for one in positions if one != "L"]
    dates = ",".join(filter(None, [day, *last]))
    return dates or "*", ",".join(nth) or "*"


def _days_of_aws(weekday: str) -> str:
    """Return days of the week as EventBridge counts them: by their names."""
    return re.sub(r"(?<![#/])\d", lambda found: DAYS[int(found[0]) % 7], weekday)


def _years(years: frozenset[int]) -> str:
    return spell(years, 1970, 2199)

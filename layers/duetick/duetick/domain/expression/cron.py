"""Five fields, macros, and EventBridge's cron(…): from text to an almanac and a canonical text."""

from __future__ import annotations

from duetick.domain.expression import fields
from duetick.domain.expression.almanac import Almanac, DateFields, Dates, day_minutes
from duetick.domain.expression.errors import InvalidExpression, quoted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from duetick.domain.expression.fields import Reading

_MACROS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_FIVE = (fields.MINUTE, fields.HOUR, fields.DAY_OF_MONTH, fields.MONTH, fields.DAY_OF_WEEK)
_AWS = (*_FIVE[:4], fields.AWS_DAY_OF_WEEK, fields.YEAR)
_ALL_MONTHS = frozenset(range(1, 13))
_ALL_DATES = frozenset(range(1, 32))


def read_macro(text: str) -> tuple[str, Almanac]:
    """Read @daily and the like, which stand for five fields."""
    name = text.lower()
    if name == "@reboot":
        raise InvalidExpression(
            "@reboot names no time: nothing here boots; for one run now, run the schedule by hand, "
            "for one run later write, for example: at(2030-12-01T09:00:00)"
        )
    if name.startswith("@every"):
        raise InvalidExpression("@every is not read; for example: rate(5 minutes)")
    if name not in _MACROS:
        raise InvalidExpression(f"{quoted(text)} is no macro; there are {', '.join(_MACROS)}")
    return read_five(_MACROS[name])


def read_five(text: str) -> tuple[str, Almanac]:
    """Read plain cron: minute, hour, day of month, month, day of week."""
    parts = text.upper().split()
    if len(parts) != 5:
        raise InvalidExpression(_not_five(text, parts))
    minute, hour, date, month, weekday = (
        fields.read(field, part) for field, part in zip(_FIVE, parts, strict=True)
    )
    canonical = " ".join(each.text for each in (minute, hour, date, month, weekday))
    either = not (date.starred or weekday.starred)
    return canonical, _almanac(canonical, (minute, hour, date, month, weekday), either=either)


def _not_five(text: str, parts: list[str]) -> str:
    right = "minute hour day-of-month month day-of-week; for example: 0 9 * * MON-FRI"
    if len(parts) < 5:
        return f"{quoted(text)} has {len(parts)} fields, and cron has five: {right}"
    year = parts[5] if len(parts[5]) == 4 and parts[5].isdigit() else "2030"
    five = parts[:5] if parts[5] == year else parts[1:6]
    return (
        f"{quoted(text)} has {len(parts)} fields, and cron has five: {right}. Neither seconds nor "
        f"years are read here: in five fields it may be {quoted(' '.join(five))}; a year goes into "
        f"cron(0 9 1 1 ? {year}), seconds into rate(30 seconds)"
    )


def read_aws(inner: str) -> tuple[str, Almanac]:
    """Read EventBridge's six fields: Sunday is 1, exactly one `?`, and a year at the end."""
    parts = inner.upper().split()
    if len(parts) != 6:
        raise InvalidExpression(
            f"cron({quoted(inner)[1:-1]}) has {len(parts)} fields, and EventBridge's cron has six: "
            "minute hour day-of-month month day-of-week year; "
            "for example: cron(0 9 ? * MON-FRI *)"
        )
    if (parts[2] == "?") == (parts[4] == "?"):
        raise InvalidExpression(
            "cron(…) takes ? in exactly one of day-of-month and day-of-week, * or a value in the "
            "other; for example: cron(0 9 ? * MON-FRI *) or cron(0 9 1 * ? *)"
        )
    readings = tuple(
        fields.read(field, "*" if part == "?" and field.name.startswith("day") else part)
        for field, part in zip(_AWS, parts, strict=True)
    )
    texts = ["?" if part == "?" else each.text for part, each in zip(parts, readings, strict=True)]
    canonical = f"cron({' '.join(texts)})"
    years = None if parts[5] == "*" else readings[5].values
    return canonical, _almanac(canonical, readings[:5], years=years)


def _almanac(
    canonical: str,
    readings: tuple[Reading, ...],
    *,
    either: bool = False,
    years: frozenset[int] | None = None,
) -> Almanac:
    minute, hour, date, month, weekday = readings
    minutes = day_minutes(minute.values, hour.values)
    fixed = not (minute.starred or hour.starred)
    by_week = date.values == _ALL_DATES and date.starred and not weekday.in_month
    if by_week and month.values == _ALL_MONTHS and years is None:
        week = tuple(minutes if day in weekday.values else b"" for day in range(7))
        return Almanac(week, None, fixed=fixed)
    dates = Dates(DateFields(date, month, weekday, either=either), years)
    if not dates.ever():
        raise InvalidExpression(
            f"{quoted(canonical)} can never fire: no such day ever comes (day-of-month "
            f"{quoted(date.text)}, month {quoted(month.text)}, day-of-week "
            f"{quoted(weekday.text)}); for example, the last day of February: 0 0 L 2 *"
        )
    return Almanac((minutes,) * 7, dates, fixed=fixed)

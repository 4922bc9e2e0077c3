"""Five fields, macros, and EventBridge's cron(…): from text to an almanac and a canonical text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from duetick.domain.errors import say_count
from duetick.domain.expression import fields
from duetick.domain.expression.almanac import Almanac, DateFields, Dates, day_minutes
from duetick.domain.expression.errors import InvalidExpression, quote

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

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
_AWS = (
    *(fields.AWS_MINUTE, fields.AWS_HOUR, fields.AWS_DAY_OF_MONTH, fields.AWS_MONTH),
    *(fields.AWS_DAY_OF_WEEK, fields.YEAR),
)
_ALL_MONTHS = frozenset(range(1, 13))
_ALL_DATES = frozenset(range(1, 32))


def read_macro(text: str) -> tuple[str, Almanac]:
    """Read @daily and the other macros. Each stands for five fields."""
    name = text.lower()
    if name == "@reboot":
        raise InvalidExpression(
            "@reboot names no time: nothing here boots; for one run now, run the schedule by hand, "
            "for one run later write, for example: at(2030-12-01T09:00:00)"
        )
    if name.startswith("@every"):
        raise InvalidExpression("@every is not read; for example: rate(5 minutes)")
    if name not in _MACROS:
        raise InvalidExpression(f"{quote(text)} is no macro; there are {', '.join(_MACROS)}")
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
        has = say_count(len(parts), "field")
        return f"{quote(text)} has {has}, and cron has five: {right}"
    readings = ", or ".join(_readings(parts))
    year = parts[-1] if parts[-1].isdigit() and _is_year(parts[-1]) else "2030"
    advice = f"it may be written {readings}; " if readings else ""
    return (
        f"{quote(text)} has {len(parts)} fields, and cron has five: {right}. Neither seconds nor "
        f"years are read here: {advice}a year goes into cron(0 9 1 1 ? {year}), seconds "
        "into rate(30 seconds) where ticks look ahead"
    )


def _readings(parts: list[str]) -> Iterator[str]:
    """Yield the valid readings of six or seven fields."""
    if len(parts) == 6 and _readable(read_aws, " ".join(parts)):
        yield f"'cron({' '.join(parts)})'"
    plain = ["*" if part == "?" else part for part in parts]
    seconds, years = _readable(_read_seconds, plain[0]), _is_year(plain[-1])
    if len(parts) == 7 and seconds and years and _readable(read_five, " ".join(plain[1:6])):
        yield f"'{' '.join(plain[1:6])}', without the seconds at its beginning and its year"
    if len(parts) == 6 and seconds and _readable(read_five, " ".join(plain[1:])):
        yield f"'{' '.join(plain[1:])}', without the seconds at its beginning"
    if len(parts) == 6 and years and _readable(read_five, " ".join(plain[:5])):
        yield f"'{' '.join(plain[:5])}', without the year at its end"


def _readable(read: Callable[[str], object], text: str) -> bool:
    try:
        read(text)
    except InvalidExpression:
        return False
    return len(text) <= 80


def _read_seconds(text: str) -> Reading:
    return fields.read(fields.MINUTE, text)


def _is_year(text: str) -> bool:
    return _readable(lambda years: fields.read(fields.YEAR, years), text)


def read_aws(inner: str) -> tuple[str, Almanac]:
    """Read the six fields of EventBridge: Sunday is 1, one field is `?`, the last is the year."""
    parts = inner.upper().split()
    if len(parts) != 6:
        has = say_count(len(parts), "field")
        raise InvalidExpression(
            f"cron({quote(inner)[1:-1]}) has {has}, and EventBridge's cron has six: "
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
        example = "cron(0 0 L 2 ? *)" if canonical.startswith("cron(") else "0 0 L 2 *"
        raise InvalidExpression(
            f"{quote(canonical)} can never fire: no such day ever comes (day-of-month "
            f"{quote(date.text)}, month {quote(month.text)}, day-of-week "
            f"{quote(weekday.text)}); for example, the last day of February: {example}",
            "never_fires",
        )
    return Almanac((minutes,) * 7, dates, fixed=fixed)

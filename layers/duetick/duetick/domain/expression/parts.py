"""An expression in parts, so that other schedulers can be told it in their own words."""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass
from typing import TYPE_CHECKING

from duetick.domain.expression import fields
from duetick.domain.expression.daymap import DAYS
from duetick.domain.expression.errors import InvalidExpression
from duetick.domain.expression.spelling import WEEKDAYS, spell, spell_from, spell_out
from duetick.domain.expression.texts import parse
from duetick.domain.expression.zones import ZONES

if TYPE_CHECKING:
    from duetick.domain.expression.fields import Reading

_FIVE = (*(fields.MINUTE, fields.HOUR, fields.DAY_OF_MONTH, fields.MONTH, fields.DAY_OF_WEEK),)
_AWS = (
    *(fields.AWS_MINUTE, fields.AWS_HOUR, fields.AWS_DAY_OF_MONTH, fields.AWS_MONTH),
    *(fields.AWS_DAY_OF_WEEK, fields.YEAR),
)
_TIME = re.compile(r"(\w{3}) (\d\d):(\d\d)")
_ALL_DATES = frozenset(range(1, 32))
_ALL_WEEKDAYS = frozenset(range(7))
_ALL_MONTHS = frozenset(range(1, 13))
LONGEST_AWS = 256


class CannotSay(InvalidExpression):
    """An expression that the words of another scheduler cannot say."""


@dataclass(frozen=True, slots=True)
class ExpressionParts:
    """The parts of an expression that recurs. Sunday is 0.

    `minute` and `hour` are as written: a star there keeps real time when clocks change. `dates` and
    `weekdays` are the plain values; `special_dates` (`L`, `LW`, `15W`) and `special_weekdays`
    (`5L`, `1#2`) are as five fields write them. With `either`, one of the two is enough. `years` is
    None for all of them.
    """

    minute: str
    hour: str
    minutes: frozenset[int]
    hours: frozenset[int]
    dates: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    special_dates: tuple[str, ...] = ()
    special_weekdays: tuple[str, ...] = ()
    either: bool = False
    years: frozenset[int] | None = None

    @property
    def any_date(self) -> bool:
        """True if each day of the month fits."""
        return self.dates == _ALL_DATES

    @property
    def any_weekday(self) -> bool:
        """True if each day of the week fits."""
        return self.weekdays == _ALL_WEEKDAYS

    @property
    def names_each_hour(self) -> bool:
        """True if it restricts nothing but the minutes."""
        each = self.any_date and self.any_weekday and self.months == _ALL_MONTHS
        return each and len(self.hours) == 24 and self.years is None

    @property
    def is_fixed(self) -> bool:
        """True if neither minute nor hour begins with a star."""
        return not self.minute.startswith("*") and not self.hour.startswith("*")


def parts_of(text: str) -> ExpressionParts | None:
    """Return the parts of an expression; None for a rate and an `at`.

    Raises CannotSay for a day map whose days have times that no single expression names.
    """
    canonical = parse(text)
    head, _, inner = canonical.partition("(")
    if head in ("rate", "at"):
        return None
    if head == "days":
        return _of_days(canonical)
    if head == "cron":
        return _of_aws(inner.removesuffix(")").split())
    return _of_five(canonical.split())


def _of_five(texts: list[str]) -> ExpressionParts:
    read = [fields.read(one, text) for one, text in zip(_FIVE, texts, strict=True)]
    either = not (read[2].starred or read[4].starred)
    return _parts(read, _special(read[2]), _special(read[4]), either=either)


def _of_aws(texts: list[str]) -> ExpressionParts:
    plain = ["*" if text == "?" else text for text in texts]
    read = [fields.read(one, text) for one, text in zip(_AWS, plain, strict=True)]
    years = None if texts[5] == "*" else read[5].values
    weekdays = tuple(_from_aws(one) for one in _special(read[4]) if one != "L")
    return _parts(read[:5], _special(read[2]), weekdays, years=years)


def _parts(
    read: list[Reading],
    dates: tuple[str, ...],
    weekdays: tuple[str, ...],
    *,
    either: bool = False,
    years: frozenset[int] | None = None,
) -> ExpressionParts:
    minute, hour, date, month, weekday = read
    values = (minute.values, hour.values, date.values, month.values, weekday.values)
    return ExpressionParts(minute.text, hour.text, *values, dates, weekdays, either, years)


def _special(read: Reading) -> tuple[str, ...]:
    """Return the items of a field that depend on the month."""
    return tuple(item for item in read.text.split(",") if set(item) & set("LW#"))


def _from_aws(item: str) -> str:
    """Return a special weekday as five fields write it: there Sunday is 1."""
    return f"{int(item[0]) - 1}{item[1:]}"


def _of_days(text: str) -> ExpressionParts:
    named = {(DAYS.index(day), int(hour), int(minute)) for day, hour, minute in _TIME.findall(text)}
    weekdays, hours, minutes = (frozenset(part) for part in zip(*named, strict=True))
    if len(named) != len(weekdays) * len(hours) * len(minutes):
        raise CannotSay(
            "its days have different times, which no single expression of another scheduler names; "
            "for example, one schedule for each time: days(mon 09:00, tue 09:00)"
        )
    clock = (spell_out(minutes), spell_out(hours))
    return ExpressionParts(*clock, minutes, hours, _ALL_DATES, _ALL_MONTHS, weekdays)


def offsets_within(timezone: str | None, since: int, until: int) -> frozenset[int]:
    """Return the offsets that a zone's clock has in a span of time, in milliseconds."""
    zone = ZONES[timezone]
    first, last = bisect_right(zone.starts, since), bisect_right(zone.starts, until)
    return frozenset(zone.offsets[first : last + 1])


def as_five(text: str) -> str:
    """Return an expression as five fields. Raises CannotSay if these cannot say it."""
    parts = parts_of(text)
    if parts is None:
        raise CannotSay(f"{parse(text)} has no five fields; for example: 0 9 * * 1-5")
    if parts.years is not None:
        raise CannotSay("five fields have no year; for example: 0 9 1 1 *")
    date = _join("" if not parts.dates else spell(parts.dates, 1, 31), parts.special_dates)
    weekday = _join(
        "" if not parts.weekdays else spell(parts.weekdays, 0, 6), parts.special_weekdays
    )
    canonical = parse(text)
    if "(" not in canonical:
        return canonical
    month = spell(parts.months, 1, 12)
    return f"{parts.minute} {parts.hour} {date} {month} {weekday}"


def _join(plain: str, special: tuple[str, ...]) -> str:
    return ",".join(filter(None, [plain, *special]))


def as_aws(text: str) -> str:
    """Return an expression as EventBridge writes it. Raises CannotSay if it cannot say it.

    Only the named times are compared, and not their instants when clocks change.
    """
    canonical = parse(text)
    parts = None if canonical.startswith("cron(") else parts_of(canonical)
    if parts is None:
        return _check_rate(canonical)
    date, weekday = _days_of_aws(parts)
    minute, hour = spell_from(parts.minutes, 0, 59), spell_from(parts.hours, 0, 23)
    said = f"cron({minute} {hour} {date} {spell_from(parts.months, 1, 12)} {weekday} *)"
    if len(said) > LONGEST_AWS:
        raise CannotSay(
            f"as EventBridge writes it, it has {len(said)} characters, and {LONGEST_AWS} are the "
            "most; for example: 0 9-17 * * *"
        )
    return said


def _check_rate(canonical: str) -> str:
    if canonical.startswith("rate(") and "second" in canonical:
        seconds = int(canonical[5:].partition(" ")[0])
        if seconds % 60:
            raise CannotSay(f"{canonical}: EventBridge counts minutes; for example: rate(1 minute)")
        return f"rate({seconds // 60} minute{'s' if seconds > 60 else ''})"
    return canonical


def _days_of_aws(parts: ExpressionParts) -> tuple[str, str]:
    """Return day of month and day of week, of which EventBridge takes one alone."""
    restricts_dates = not parts.any_date or bool(parts.special_dates)
    restricts_weekdays = not parts.any_weekday or bool(parts.special_weekdays)
    if restricts_dates and restricts_weekdays:
        how = "one of them is enough" if parts.either else "both must match"
        raise CannotSay(
            f"it names days of the month and of the week ({how}), and EventBridge takes one of the "
            "two; for example: 0 9 * * 1-5"
        )
    if restricts_weekdays:
        return "?", _weekday_of_aws(parts)
    if not parts.special_dates:
        return spell_from(parts.dates, 1, 31), "?"
    if parts.dates or len(parts.special_dates) > 1:
        raise CannotSay("EventBridge takes L, LW and 15W alone; for example: 0 9 L * *")
    return parts.special_dates[0], "?"


def _weekday_of_aws(parts: ExpressionParts) -> str:
    if not parts.special_weekdays:
        return ",".join(map(_name_day, spell_out(parts.weekdays).split(",")))
    if parts.weekdays or len(parts.special_weekdays) > 1:
        raise CannotSay("EventBridge takes FRIL and MON#2 alone; for example: 0 9 * * MON#2")
    (item,) = parts.special_weekdays
    return f"{int(item[0]) + 1}{item[1:]}"


def _name_day(item: str) -> str:
    """Return a range of weekdays by names, which count alike everywhere; a step stays."""
    days, slash, step = item.partition("/")
    return "-".join(WEEKDAYS[int(day)] for day in days.split("-")) + slash + step

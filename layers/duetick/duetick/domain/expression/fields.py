"""One field of a cron expression: from a text to its values, or a helpful refusal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from duetick.domain.expression.errors import InvalidExpression, quote
from duetick.domain.expression.monthdays import (
    last_day,
    last_weekday,
    last_working_day,
    nearest_working_day,
    nth_weekday,
)

if TYPE_CHECKING:
    from duetick.domain.expression.monthdays import InMonth

_MONTHS = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
_DAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")


class Field:
    """A field of cron: its bounds, its names, and an example of an expression."""

    __slots__ = ("aws", "example", "high", "low", "name", "names", "sunday", "top")

    def __init__(
        self,
        name: str,
        low: int,
        high: int,
        example: str,
        *,
        names: tuple[str, ...] = (),
        sunday: int | None = None,
    ) -> None:
        """Take the bounds. In a field of weekdays, `sunday` is the number of Sunday.

        If the example is a cron(…), the field belongs to EventBridge's cron.
        """
        self.name: Final = name
        self.low: Final = low
        self.high: Final = high
        self.top: Final = (
            6 if sunday == 0 else high
        )  # 7 is Sunday again: `*` must not count it twice
        self.names: Final = names
        self.sunday: Final = sunday
        self.example: Final = example
        self.aws: Final = example.startswith("cron(")

    def refusal(self, piece: str, why: str) -> InvalidExpression:
        """Return the refusal of a piece, with the reason and the example."""
        return InvalidExpression(f"{self.name}: {quote(piece)} {why}; for example: {self.example}")


class Reading:
    """A field that was read: its canonical text, its values, and its days of L, W and #."""

    __slots__ = ("in_month", "text", "values")

    def __init__(self, text: str, values: frozenset[int], in_month: tuple[InMonth, ...]) -> None:
        """Take text, values and days."""
        self.text: Final = text
        self.values: Final = values
        self.in_month: Final = in_month

    @property
    def starred(self) -> bool:
        """True if the field begins with a star as written (`*/2` does): C-01 depends on it."""
        return self.text[0] == "*"


MINUTE = Field("minute", 0, 59, "30 9 * * *")
HOUR = Field("hour", 0, 23, "0 9-17 * * *")
DAY_OF_MONTH = Field("day-of-month", 1, 31, "0 9 1,15 * *")
MONTH = Field("month", 1, 12, "0 9 1 JAN-JUN *", names=_MONTHS)
DAY_OF_WEEK = Field("day-of-week", 0, 7, "0 9 * * MON-FRI", names=_DAYS, sunday=0)
AWS_MINUTE = Field("minute", 0, 59, "cron(30 9 * * ? *)")
AWS_HOUR = Field("hour", 0, 23, "cron(0 9-17 * * ? *)")
AWS_DAY_OF_MONTH = Field("day-of-month", 1, 31, "cron(0 9 1,15 * ? *)")
AWS_MONTH = Field("month", 1, 12, "cron(0 9 1 JAN-JUN ? *)", names=_MONTHS)
AWS_DAY_OF_WEEK = Field("day-of-week", 1, 7, "cron(0 9 ? * MON-FRI *)", names=_DAYS, sunday=1)
YEAR = Field("year", 1970, 2199, "cron(0 9 1 1 ? 2027-2030)")


READINGS: dict[tuple[Field, str], Reading] = {}  # a cache: short fields come again and again
_LONGEST_KEPT, _MOST_KEPT = 12, 1024


def read(field: Field, text: str) -> Reading:
    """Read a comma-separated list of items. Names become numbers; the order stays."""
    known = READINGS.get((field, text))
    if known is not None:
        return known
    reading = _read(field, text)
    if len(text) <= _LONGEST_KEPT:
        if len(READINGS) >= _MOST_KEPT:
            READINGS.clear()
        READINGS[field, text] = reading
    return reading


def _read(field: Field, text: str) -> Reading:
    texts: list[str] = []
    values: set[int] = set()
    in_month: list[InMonth] = []
    for item in text.split(","):
        special = _special(field, item)
        if special is None:
            canonical, named = _plain(field, item)
            values.update(named)
        else:
            canonical, day = special
            in_month.append(day)
        texts.append(canonical)
    return Reading(",".join(texts), _weekdays(field, values), tuple(in_month))


def _weekdays(field: Field, values: set[int]) -> frozenset[int]:
    if field.sunday is None:
        return frozenset(values)
    return frozenset((value - field.sunday) % 7 for value in values)


def _plain(field: Field, item: str) -> tuple[str, range]:
    """Read `*`, `5`, `5-9`, `MON`, and each of them with a `/step`."""
    body, slash, pace = item.partition("/")
    first, dash, last = body.partition("-")
    step = 1
    if item == "L" and field is AWS_DAY_OF_WEEK:
        return item, range(7, 8)  # alone in day-of-week, L is the last day of the week
    if body == "*":
        text, low, high = "*", field.low, field.top
    elif dash:
        low = _number(field, first, item)
        high = _range_end(field, low, last, item)
        text = f"{low}-{high}"
    else:
        low = _number(field, first, item)
        low = low % 7 if field.sunday == 0 else low
        text, high = str(low), field.top if slash else low
    if slash:
        step = _step(field, pace, item)
    if high < low:
        raise field.refusal(item, f"runs backwards; write {_forwards(field, low, high, step)}")
    return f"{text}/{step}" if slash else text, range(low, high + 1, step)


def _range_end(field: Field, low: int, last: str, item: str) -> int:
    end = _number(field, last, item)
    if last == "SUN" and field.sunday == 0 and low:
        return 7  # FRI-SUN has one meaning; cron(…), where Sunday is 1, refuses it
    return end


def _forwards(field: Field, low: int, high: int, step: int) -> str:
    """Write a range that runs over the end of its field as two that do not."""
    if field is YEAR:
        return _range(high, low, step)
    if low > field.top:
        return _range(field.low, high, step)
    span = field.top - field.low + 1
    again = low + -(-(field.top + 1 - low) // step) * step - span
    before = _range(low, field.top, step)
    return f"{before},{_range(again, high, step)}" if again <= high else before


def _range(low: int, high: int, step: int) -> str:
    if low + step > high:
        return str(low)
    return f"{low}-{high}" + (f"/{step}" if step > 1 else "")


def _step(field: Field, text: str, item: str) -> int:
    most = field.top - field.low + 1
    step = _digits(text)
    if step is None or not 1 <= step <= most:
        raise field.refusal(
            item,
            f"has the step {quote(text)}, which must be 1 to {most} (longer: rate(90 minutes))",
        )
    return step


def _digits(text: str) -> int | None:
    return int(text) if text.isdigit() and text.isascii() and len(text) <= 9 else None


def _number(field: Field, text: str, item: str) -> int:
    if text in field.names:
        return field.names.index(text) + (field.low if field.sunday is None else field.sunday)
    number = _digits(text)
    if number is None:
        raise field.refusal(item, _not_a_number(field, text))
    if not field.low <= number <= field.high:
        raise field.refusal(item, f"is outside {field.low}-{field.high}")
    return number


def _not_a_number(field: Field, text: str) -> str:
    if text == "?":
        alone = "takes no ?, which stands alone in day-of-month or day-of-week"
        return alone if field.aws else "belongs in EventBridge's cron(…) only; write * here"
    if text[:2] in ("H", "R", "H(", "R("):
        return f"leaves the time to chance ({text[:1]}); name one, and let `spread` move it"
    if text == "W":
        return "needs its day, as in 15W; weekdays as such are MON-FRI in day-of-week"
    if text in ("L", "LW"):
        if field.name == "day-of-month":
            return "has an L, which takes no range and no step"
        return "means a last day: L and LW go in day-of-month, FRIL in day-of-week"
    expected = f"a number from {field.low} to {field.high}"
    names = f" or one of {' '.join(field.names)}" if field.names else ""
    return f"is empty where {expected}{names} belongs" if not text else f"is not {expected}{names}"


def _special(field: Field, item: str) -> tuple[str, InMonth] | None:
    """Read L, LW and 15W in day-of-month, or FRIL and MON#2 in day-of-week, else return None."""
    if field.name == "day-of-month":
        return _special_date(field, item)
    if field.sunday is None:
        return None
    name, hash_, nth = item.partition("#")
    if hash_:
        return _nth(field, name, nth, item)
    if item.endswith("L") and len(item) > 1:
        number, on = _weekday(field, item[:-1], item)
        return f"{number}L", last_weekday(on)
    return None


def _special_date(field: Field, item: str) -> tuple[str, InMonth] | None:
    if item == "L":
        return item, last_day
    if item == "LW":
        return item, last_working_day
    if item.endswith("W") and len(item) > 1:
        day = _number(field, item[:-1], item)
        return f"{day}W", nearest_working_day(day)
    return None


def _nth(field: Field, name: str, text: str, item: str) -> tuple[str, InMonth]:
    number, on = _weekday(field, name, item)
    nth = _digits(text)
    if nth is None or not 1 <= nth <= 5:
        raise field.refusal(item, "must count from #1 to #5, as in MON#2, the second Monday")
    return f"{number}#{nth}", nth_weekday(on, nth)


def _weekday(field: Field, text: str, item: str) -> tuple[int, int]:
    """Return the number of a weekday in this field, and its number with Sunday as 0."""
    number = _number(field, text, item)
    on = (number - (field.sunday or 0)) % 7
    return on + (field.sunday or 0), on

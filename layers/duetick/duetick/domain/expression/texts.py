"""The reader of expressions: from a text to its form, its plan and its canonical text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from duetick.domain.errors import kind_of
from duetick.domain.expression import cron
from duetick.domain.expression.almanac import day_of
from duetick.domain.expression.daymap import read_days
from duetick.domain.expression.errors import InvalidExpression, quote
from duetick.domain.expression.firing import HORIZON, Interval, Once, Recurring

if TYPE_CHECKING:
    from collections.abc import Mapping

    from duetick.domain.expression.almanac import Almanac

LONGEST_TEXT = 1024
_MOST_TEXTS = 4096
_EXAMPLES = {
    "rate": "rate(5 minutes)",
    "at": "at(2030-12-01T09:00:00)",
    "cron": "cron(0 9 ? * MON-FRI *)",
    "days": "days(mon 09:00, thu 17:30)",
}
_FORMS = (
    "write five fields (0 9 * * MON-FRI), a macro (@daily), or as in "
    f"{', '.join(_EXAMPLES.values())}"
)
_UNITS = {"second": 1_000, "minute": 60_000, "hour": 3_600_000, "day": 86_400_000}

Plan = Recurring | Interval | Once


class Expression:
    """An expression that was read: its canonical text, and the plan of its fire times."""

    __slots__ = ("plan", "text")

    def __init__(self, text: str, plan: Plan) -> None:
        """Take text and plan."""
        self.text: Final = text
        self.plan: Final = plan


def parse(text: str) -> str:
    """Return the canonical form of an expression. Raises InvalidExpression with the mistake.

    Names become numbers, and macros become fields. Everything else stays as written, stars above
    all: C-01 depends on them. The canonical form of a canonical form is the form itself.
    """
    return EXPRESSIONS[_check_text(text)].text


def from_day_map(mapping: Mapping[str, object]) -> str:
    """Return the canonical form of {"mon": "09:00", "tue": None}, or of such a map per target."""
    from duetick.domain.expression.mapped import day_map_text  # only writes need this import

    return parse(day_map_text(mapping))


def plan_of(text: str) -> Plan:
    """Return the plan of an expression."""
    try:
        return EXPRESSIONS[text].plan
    except TypeError:  # the value is not hashable
        _check_text(text)
        raise


def sub_minute(text: str) -> bool:
    """Return True if the text is a rate below a minute. It needs look-ahead (C-05)."""
    plan = plan_of(text)
    return isinstance(plan, Interval) and plan.step < 60_000


def step_of(text: str) -> int | None:
    """Return the milliseconds between two fires of a rate; None if the text is of another form."""
    plan = plan_of(text)
    return plan.step if isinstance(plan, Interval) else None


class _Memory(dict[str, Expression]):
    """The cache of expressions: a dict, because functools would double the import time."""

    def __missing__(self, text: str) -> Expression:
        expression = _read(text)
        if len(self) >= _MOST_TEXTS:
            self._thin()
        self[text] = expression
        return expression

    def _thin(self) -> None:
        """Forget every eighth text: without the oldest, rows read in turn would all be missed."""
        for text in tuple(self)[::8]:
            self.pop(text, None)


def _read(text: str) -> Expression:
    text = _check_length(text)
    if text.startswith("@"):
        return _recurring(*cron.read_macro(text))
    head, opening, rest = text.partition("(")
    name = head.strip().lower()
    if opening and name in _EXAMPLES and not rest.endswith(")"):
        after = "goes on after its closing bracket" if ")" in rest else "has no closing bracket"
        raise InvalidExpression(f"{quote(text)} {after}; for example: {_EXAMPLES[name]}")
    if not opening or not name.isalpha() or not rest.endswith(")"):
        return _recurring(*cron.read_five(text))
    return _form(name, rest[:-1])


def _check_text(text: str) -> str:
    if not isinstance(text, str):
        raise InvalidExpression(f"an expression is text, not {kind_of(text)}; {_FORMS}")
    return text


def _check_length(text: str) -> str:
    if len(_check_text(text)) > LONGEST_TEXT:
        raise InvalidExpression(
            f"the text has {len(text)} characters, and {LONGEST_TEXT} are the most; {_FORMS}"
        )
    if not (text.isascii() and text.isprintable()):
        _check_letters(text)
    if not text.strip():
        raise InvalidExpression(f"the text is empty; {_FORMS}")
    return text.strip()


def _check_letters(text: str) -> None:
    for at, letter in enumerate(text, 1):
        if letter not in "\t\r\n" and not (letter.isascii() and letter.isprintable()):
            raise InvalidExpression(
                f"{quote(letter)}, character {at}, {_foreign(letter)}; {_FORMS}"
            )


def _foreign(letter: str) -> str:
    if letter.isascii():
        return "is a control character; of white space, there are blank, tab and line end"
    digit = letter.isdigit()
    return "is a digit, but not one of ASCII's 0 to 9" if digit else "is not ASCII text"


def _recurring(text: str, almanac: Almanac) -> Expression:
    return Expression(text, Recurring(almanac))


def _form(name: str, inner: str) -> Expression:
    if name == "cron":
        return _recurring(*cron.read_aws(inner))
    if name == "rate":
        return _rate(inner)
    if name == "at":
        return _at(inner)
    if name == "days":
        return Expression(*read_days(inner))
    raise InvalidExpression(f"{quote(name)}(…) is not a form that is read; {_FORMS}")


def _rate(inner: str) -> Expression:
    number, _, unit = " ".join(inner.lower().split()).partition(" ")
    unit = unit.removesuffix("s")
    if not number.isdigit() or unit not in _UNITS:
        raise InvalidExpression(
            f"rate({quote(inner)[1:-1]}) is not a whole number and one of seconds, minutes, "
            "hours, days; for example: rate(5 minutes) or rate(1 hour)"
        )
    step = int(number) * _UNITS[unit]
    if not 0 < step < HORIZON:
        raise InvalidExpression(
            f"rate({quote(inner)[1:-1]}) must be more than nothing and less than 230 years; "
            "for example: rate(5 minutes)"
        )
    count = step // _UNITS[unit]
    return Expression(f"rate({count} {unit}{'s' if count > 1 else ''})", Interval(step))


def _at(inner: str) -> Expression:
    """Read yyyy-mm-ddThh:mm:ss, a local time. The zone is the schedule's."""
    text = inner.strip().upper()
    shape = "".join("9" if letter.isdigit() else letter for letter in text)
    if shape != "9999-99-99T99:99:99":
        raise _bad_at(inner, "is not yyyy-mm-ddThh:mm:ss, local time in the schedule's timezone")
    day = day_of(int(text[:4]), int(text[5:7]), int(text[8:10]))
    hour, minute, second = int(text[11:13]), int(text[14:16]), int(text[17:])
    if day is None or not 1970 <= int(text[:4]) <= 2199:
        raise _bad_at(inner, "is no day from 1970 to 2199")
    if hour > 23 or minute > 59 or second > 59:
        raise _bad_at(inner, "has no time from 00:00:00 to 23:59:59")
    seconds = hour * 3600 + minute * 60 + second
    return Expression(f"at({text})", Once(day * 86_400_000 + seconds * 1000))


def _bad_at(inner: str, why: str) -> InvalidExpression:
    return InvalidExpression(
        f"at({quote(inner)[1:-1]}) {why}; for example: at(2030-12-01T09:00:00)"
    )


# The lookup returns the Expression of any text, or raises InvalidExpression.
EXPRESSIONS = _Memory()

"""The words for an input that does not fit: at the right field, and without jargon."""

import logging
import re
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from datetime import time as time_of_day
from decimal import Decimal
from enum import Enum
from operator import attrgetter, itemgetter
from typing import Annotated, Final, Literal, NoReturn, get_args

import pytest
from duetick.core.authors import UNFIT
from duetick.core.inputs import InputType
from duetick.core.shapes import flaws_of
from duetick.domain.errors import InvalidSchedule
from duetick.domain.schedule import Json
from pydantic import AwareDatetime, BaseModel, Field, HttpUrl, field_validator
from pydantic_core import PydanticCustomError
from pydantic_core.core_schema import ErrorType

from tests.integration.api.problems import PYTHONS

HUGE: Final = 10**400


@dataclass(frozen=True, slots=True)
class Cat:
    """One of two."""

    kind: Literal["cat"]
    name: str


@dataclass(frozen=True, slots=True)
class Dog:
    """The other."""

    kind: Literal["dog"]
    bark: int


class Whiskers(BaseModel):
    """The same as a model."""

    kind: Literal["cat"]
    name: str


class Rover(BaseModel):
    """The same as a model."""

    kind: Literal["dog"]
    bark: int


class Colour(Enum):
    """Two of them."""

    RED = "red"
    NONE = None


class Everything(BaseModel):
    """A field of each kind."""

    either: Whiskers | Rover | None = None
    tagged: Annotated[Whiskers | Rover | None, Field(discriminator="kind")] = None
    number: int | bool | None = None
    pair: tuple[int, str] | None = None
    several: set[int] | None = None
    named: dict[int, str] | None = None
    whole: int | None = None
    real: float | None = None
    money: Annotated[Decimal, Field(max_digits=3, decimal_places=1)] | None = None
    name: uuid.UUID | None = None
    raw: bytes | None = None
    day: date | None = None
    at: datetime | None = None
    aware: AwareDatetime | None = None
    hour: time_of_day | None = None
    span: timedelta | None = None
    link: HttpUrl | None = None
    formed: Annotated[str, Field(pattern="^a$")] | None = None
    long: Annotated[str, Field(max_length=1)] | None = None
    one: Annotated[list[int], Field(min_length=1)] | None = None
    even: Annotated[int, Field(multiple_of=2)] | None = None
    colour: Colour | None = None
    yes: Literal[True, "often"] = True


def told(wanted: object, value: Json) -> Sequence[tuple[str, str, str]]:
    """Return path, kind and words; nothing of Python's, and each field once."""
    with pytest.raises(InvalidSchedule) as refused:
        InputType(wanted).read(value)
    found = [(flaw.name, flaw.code, flaw.problem) for flaw in refused.value.flaws]
    assert len({name for name, _, _ in found}) == len(found)
    assert not [said for _, _, said in found if PYTHONS.search(said)]
    return found


TOLD: list[tuple[Mapping[str, Json], str, str, str]] = [
    ({"number": "x"}, "number", "wrong_type",
     "expected a whole number, got text; or expected true or false, got text."),
    ({"whole": 5.5}, "whole", "wrong_type",
     "expected a whole number, got a number with a fraction."),
    ({"whole": "5.5"}, "whole", "wrong_type", "expected a whole number, got text."),
    ({"real": HUGE}, "real", "out_of_range", "is too large for a number."),
    ({"pair": [1]}, "pair[1]", "missing", "is missing."),
    ({"pair": [1, "a", 3]}, "pair", "too_long", "expected at most 2 items."),
    ({"pair": 5}, "pair", "wrong_type", "expected a list, got a number."),
    ({"several": {"a": 1}}, "several", "wrong_type", "expected a list, got an object."),
    ({"named": {"x": 5}}, "named.x", "wrong_type", "expected a whole number, got text."),
    ({"money": "12.345"}, "money", "too_long", "expected at most 3 digits."),
    ({"money": "x"}, "money", "wrong_type", "expected a number, got text."),
    ({"name": 5}, "name", "wrong_type", "expected a UUID, got a number."),
    ({"name": "x"}, "name", "wrong_type", "expected a UUID, got text."),
    ({"raw": 5}, "raw", "wrong_type", "expected text, got a number."),
    ({"day": "x"}, "day", "wrong_type", "expected a date such as 2026-12-01, got text."),
    ({"at": "x"}, "at", "wrong_type", "expected a time such as 2026-12-01T09:00:00Z, got text."),
    ({"at": []}, "at", "wrong_type", "expected a time such as 2026-12-01T09:00:00Z, got a list."),
    ({"aware": "2026-12-01T09:00:00"}, "aware", "invalid",
     "expected a time with its zone: 2026-12-01T09:00:00Z."),
    ({"hour": "x"}, "hour", "wrong_type", "expected a time of day such as 09:00:00, got text."),
    ({"span": "x"}, "span", "wrong_type", "expected a duration such as PT15M, got text."),
    ({"link": "x"}, "link", "wrong_type",
     "expected an address such as https://example.org, got text."),
    ({"formed": "x"}, "formed", "invalid", "does not have the form that is expected here."),
    ({"long": "xy"}, "long", "too_long", "has 2 characters; the most is 1."),
    ({"one": []}, "one", "too_short", "expected at least 1 item."),
    ({"even": 3}, "even", "out_of_range", "expected a multiple of 2."),
    ({"colour": "blue"}, "colour", "not_one_of", "expected 'red' or null."),
    ({"yes": False}, "yes", "not_one_of", "expected true or 'often'."),
    ({"tagged": {"kind": "cow"}}, "tagged.kind", "not_one_of", "expected 'cat', 'dog'."),
    ({"tagged": {}}, "tagged.kind", "missing", "is missing."),
    ({"tagged": {"kind": "cat"}}, "tagged.name", "missing", "is missing."),
    ({"tagged": 5}, "tagged", "wrong_type", "expected an object, got a number."),
]  # fmt: skip


@pytest.mark.parametrize(("given", "name", "code", "said"), TOLD)
def test_what_does_not_fit_a_model_is_told_at_its_field_in_plain_words(
    given: Mapping[str, Json], name: str, code: str, said: str
) -> None:
    assert told(Everything, dict(given)) == [(f"input.{name}", code, said)]


def test_a_text_among_literals_stays_what_it_is() -> None:
    class Choosing(BaseModel):
        one: Literal[None, True, "None", 'it\'s "True"']

    with pytest.raises(InvalidSchedule) as refused:
        InputType(Choosing).read({"one": 5})
    (flaw,) = refused.value.flaws
    assert flaw.problem == "expected null, true, 'None' or 'it\\'s \"True\"'."


EITHER: Final = "kind: expected {cat}, name: is missing; or kind: expected {dog}, bark: is missing."


@pytest.mark.parametrize(
    ("wanted", "given", "name", "cat", "dog"),
    [
        (Everything, {"either": {"kind": "cow"}}, "input.either", "'cat'", "'dog'"),
        (list[Cat | Dog], [{"kind": "cow"}], "input[0]", 'one of "cat", got text',
         'one of "dog", got text'),
    ],
)  # fmt: skip
def test_what_fits_none_of_several_kinds_is_one_problem_that_tells_each(
    wanted: object, given: Json, name: str, cat: str, dog: str
) -> None:
    ((where, code, said),) = told(wanted, given)
    assert (where, code) == (name, "wrong_type")
    for part in re.split(r", |; or ", EITHER.rstrip(".")):
        assert part.format(cat=cat, dog=dog) in said


def test_a_number_that_no_float_holds_is_told() -> None:
    assert told(float, HUGE) == [("input", "out_of_range", "is too large for a number.")]


def words(text: str) -> NoReturn:
    """Return the words as an author says them."""
    raise ValueError(text)


def insists(_value: str) -> NoReturn:
    """Raise as an author's `assert` does: pytest would lengthen the words of a real one."""
    raise AssertionError("write 'right'.")


RAISES: list[tuple[Callable[[str], object], str]] = [
    (lambda value: words(f"cannot use {value!r}"), "cannot use 'x'."),
    (insists, "write 'right'."),
    (int, UNFIT),
    (lambda value: words(value[1:]), UNFIT),
    (itemgetter("no such place"), UNFIT),
    (lambda value: dict[str, str]()[value], UNFIT),
    (lambda value: f"{value:d}", UNFIT),
    (uuid.UUID, UNFIT),
    (Colour, UNFIT),
    (attrgetter("no_such_thing"), UNFIT),
]


@pytest.mark.parametrize("model", [False, True])
@pytest.mark.parametrize(("check", "said"), RAISES)
def test_an_authors_words_are_told_and_pythons_are_not(
    check: Callable[[str], object], said: str, model: bool, caplog: pytest.LogCaptureFixture
) -> None:
    @dataclass
    class Checked:
        title: str

        def __post_init__(self) -> None:
            check(self.title)

    class Validated(BaseModel):
        title: str

        @field_validator("title")
        @classmethod
        def checked(cls, value: str) -> str:
            check(value)
            return value

    with caplog.at_level(logging.WARNING, "duetick"):
        ((_, code, problem),) = told(Validated if model else Checked, {"title": "x"})
    assert (code, problem) == ("invalid", said)
    lines = [vars(one) for one in caplog.records if vars(one).get("action") == "input_failed"]
    assert len(lines) == (said == UNFIT)
    assert all(re.search(r"Error at .+/test_input_words\.py:\d+", one["why"]) for one in lines)


def test_an_authors_own_kind_of_error_is_told() -> None:
    class Own(BaseModel):
        title: str

        @field_validator("title")
        @classmethod
        def checked(cls, value: str) -> str:
            raise PydanticCustomError("missing", "no bird is called {name}", {"name": value})

    assert told(Own, {"title": "x"}) == [("input.title", "invalid", "no bird is called x.")]


def context() -> dict[str, object]:
    """Return all fields that an error of pydantic's may have beside its kind."""
    numbers = ("ge", "le", "gt", "lt", "multiple_of", "min_length", "max_length", "max_digits")
    more = ("decimal_places", "whole_digits", "actual_length")
    return {
        **dict.fromkeys([*numbers, *more], 1),
        "expected": "'a'",
        "expected_tags": "'a'",
        "discriminator": "'kind'",
        "error": ValueError("invalid literal"),
    }


@pytest.mark.parametrize("kind", get_args(ErrorType))
@pytest.mark.parametrize("value", ["x", ["x"]])
def test_no_kind_of_pydantics_speaks_of_python(kind: str, value: Sequence[str]) -> None:
    detail = {
        "type": kind,
        "loc": ("title",),
        "msg": "Input should be a valid frozenset of dictionaries",
        "input": value,
        "ctx": context(),
        "url": "https://errors.pydantic.dev/",
    }
    (flaw,) = flaws_of([detail], {"title": value})
    assert flaw.problem.endswith(".")
    assert not PYTHONS.search(flaw.problem)

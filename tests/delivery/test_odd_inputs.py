"""Input types that no JSON can ever become: the registration of an action refuses them.

Annotations are read as texts here, as in any module that asks for that.
"""

from __future__ import annotations

from dataclasses import InitVar, dataclass, field
from datetime import UTC, datetime
from enum import Enum
from typing import TYPE_CHECKING, Literal, NewType

import pytest
from duetick.core.flows import Flow
from duetick.domain.errors import InvalidSchedule
from duetick.domain.schedule import Json
from pydantic import BaseModel

if TYPE_CHECKING:
    from collections.abc import Callable

    from duetick.core.context import Context

Name = NewType("Name", str)


class Colour(Enum):
    """Not JSON's."""

    RED = "red"


@dataclass(frozen=True)
class Visit:
    """Its time is no JSON."""

    name: str
    at: datetime | None = None


@dataclass(frozen=True)
class Plan:
    """Visits, and plans within it."""

    visits: dict[str, list[Visit]]
    within: Plan | None = None


@dataclass(frozen=True)
class Bed:
    """It has beds beside it, a field that no one gives, and anything else."""

    beside: list[Bed]
    wet: Literal["yes", 1]
    more: Json = None
    made: datetime = field(init=False, default=datetime(2026, 12, 1, tzinfo=UTC))


@dataclass(frozen=True)
class Salted:
    """Its salt is no field."""

    name: str
    salt: InitVar[str]


@dataclass(init=False)
class Own:
    """Its constructor takes an argument that is no field."""

    name: str

    def __init__(self, given: str) -> None:
        self.name = given


class Model(BaseModel):
    """It converts."""

    at: datetime


@dataclass(frozen=True)
class Early:
    """It names a type that only a type checker knows."""

    late: Context


def takes(annotation: object) -> Callable[..., None]:
    """An action with that input, and a context that a type checker alone knows."""

    def act(given: object, ctx: Context) -> None:
        raise AssertionError((given, ctx))

    act.__annotations__["given"] = annotation
    return act


@pytest.mark.parametrize(
    ("annotation", "says"),
    [
        (datetime, "garden.act: input: no JSON can become datetime. Take text"),
        (Visit, "garden.act: input.at: no JSON can become datetime. Take text"),
        ("Plan", "garden.act: input.visits.at: no JSON can become datetime. Take text"),
        (Colour, "input: no JSON can become Colour"),
        (Name, "input: no JSON can become .*Name"),
        (tuple[int, ...], r"input: no JSON can become tuple\[int, ...\]"),
        (dict[int, str], r"input: no JSON can become dict\[int, str\]"),
        (list[set[str]], r"input: no JSON can become set\[str\]"),
        (Literal[Colour.RED], "input: no JSON can become .*Literal"),
        (Salted, "input: no Salted can be made of its fields .*'salt'"),
        (list[Own], "input: no Own can be made of its fields .*'given'"),
        ("Missing", "input: its type needs 'Missing'.* Define or import it above"),
        ("Early", "input: its type needs 'Context'.* Define or import it above"),
    ],
)
def test_an_input_that_can_never_be_is_refused_when_its_action_is_registered(
    annotation: object, says: str
) -> None:
    flow = Flow("garden")
    with pytest.raises(InvalidSchedule, match=says):
        flow.action("act")(takes(annotation))
    assert flow.actions == {}


NESTED: Json = {"a": [{"b": [[{"c": None}]]}]}


@pytest.mark.parametrize(
    ("annotation", "given"),
    [
        ("Bed", {"beside": [{"beside": [], "wet": "yes"}], "wet": 1, "more": NESTED}),
        (Json, NESTED),
        (list, [NESTED]),
        ("Model | None", {"at": "2026-12-01T09:00:00Z"}),
        ("dict[str, int | None]", {"a": 1, "b": None}),
    ],
)
def test_an_input_that_can_be_is_taken_and_the_context_is_nobodys_business(
    annotation: object, given: Json
) -> None:
    flow = Flow("garden")
    flow.action("act")(takes(annotation))
    assert flow.actions["act"].read(given)


@pytest.mark.parametrize("given", [True, 1.0, "no", None])
def test_a_literal_is_not_taken_for_what_is_equal_to_it_in_python_alone(given: Json) -> None:
    flow = Flow("garden")
    flow.action("act")(takes(Literal["yes", 1]))
    with pytest.raises(InvalidSchedule, match="one of"):
        flow.actions["act"].read(given)

"""Stores side by side: each is asked the same, and has to answer the same."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from difflib import unified_diff
from typing import Any, TypeAlias

from duetick.core.store import Page, Store
from duetick.domain.attempts import Begun
from duetick.domain.errors import DuetickError
from duetick.domain.occurrence import Death
from duetick.domain.schedule import Occurrence, Record

Ask: TypeAlias = Callable[[Store, str], object]
"""A question to a store, which is called by that name."""
Answers: TypeAlias = Mapping[str, object]
"""By the names of the stores."""

LAST_STEPS = 30
MOST_LINES = 60


class Differs(AssertionError):
    """Two stores answered differently."""


class Sides:
    """The stores by their names; the first is the one that the others are compared with."""

    def __init__(self, stores: Mapping[str, Store]) -> None:
        self._stores = stores
        self._steps: list[str] = []

    def tell(self, step: str) -> None:
        """Note the next step for the message of a failure."""
        self._steps.append(step)

    @property
    def last_steps(self) -> str:
        """The last steps, as text."""
        return "\n".join(["the last steps:", *self._steps[-LAST_STEPS:]])

    def each(self, question: str, ask: Ask) -> Answers:
        """Return the answers of all stores. A refusal is an answer too. Raises Differs."""
        answers = {name: _answer(ask, store, name) for name, store in self._stores.items()}
        first, *others = ((name, list(lines(answer))) for name, answer in answers.items())
        for other in others:
            if other[1] != first[1]:
                raise Differs(_difference(question, first, other))
        return answers


def _answer(ask: Ask, store: Store, name: str) -> object:
    try:
        return ask(store, name)
    except DuetickError as refused:
        return refused


def lines(answer: object) -> Iterator[str]:
    """Yield a line for each field of an answer, without the parts that each store makes up.

    These are the ids of occurrences, the cursors of pages, and the words of a refusal.
    """
    match answer:
        case Occurrence():
            yield from _fields(f"{answer.key} {answer.nominal_at} {answer.origin}", answer)
        case Record():
            yield from _fields(answer.id, answer)
        case Begun():
            yield "begun"
            yield from lines([answer.occurrence, answer.schedule])
        case Page():
            yield f"more pages: {answer.cursor is not None}"
            yield from lines(answer.schedules)
        case list() | tuple():
            yield f"{len(answer)}:"
            for one in answer:
                yield from lines(one)
        case DuetickError():
            yield type(answer).__name__
        case _:
            yield repr(answer)


def _fields(name: str, answer: Occurrence | Record) -> Iterator[str]:
    yield name
    for field in fields(answer):
        value = getattr(answer, field.name)
        if field.name == "labels":
            value = sorted(value.items())
        if field.name == "death" and isinstance(value, Death):
            value = value._replace(occurrence="")
        if field.name != "id":
            yield f"{name}: {field.name} = {value!r}"


def _difference(question: str, one: tuple[str, list[str]], other: tuple[str, list[str]]) -> str:
    found = list(unified_diff(one[1], other[1], one[0], other[0], n=0, lineterm=""))
    left_out = len(found) - MOST_LINES
    more = [f"… and {left_out} lines more"] if left_out > 0 else []
    title = f"{one[0]} and {other[0]} answer {question!r} differently:"
    return "\n".join([title, *found[:MOST_LINES], *more])


def brief(value: object) -> str:
    """Return a value in short, for the reader of a report: of a dataclass only the unusual
    fields.
    """
    if not is_dataclass(value):
        return str(value)
    said = {field.name: getattr(value, field.name) for field in fields(value)}
    usual = {field.name: _usual(field) for field in fields(value)}
    parts = [f"{name}={brief(said[name])}" for name in said if said[name] != usual[name]]
    return f"{type(value).__name__}({', '.join(parts)})"


def _usual(field: Field[Any]) -> object:
    return field.default if field.default_factory is MISSING else field.default_factory()

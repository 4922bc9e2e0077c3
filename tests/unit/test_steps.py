"""The steps of an input grow with its length: twice as much takes at most twice the steps."""

import json
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from types import FrameType

import pytest
from duetick import Context, Flow
from duetick.api.checking import check_shape
from duetick.api.models import NewSchedule
from duetick.core.accepting import Quotas, find_refusals
from duetick.core.flows import Flows
from duetick.core.wire import require_object
from duetick.domain.errors import MOST_TOLD, DuetickError, InvalidSchedule
from duetick.domain.redaction import (
    DEEPEST,
    LONGEST_TEXT,
    MOST_CHARACTERS,
    WITHHELD,
    Secrets,
    redact,
    redact_text,
)
from duetick.domain.schedule import Json, Schedule

NOW = 1_796_115_600_000


@dataclass(frozen=True, slots=True)
class Digest:
    """The input of an action."""

    to: str = ""
    more: list[dict[str, int]] | None = None


flow = Flow("mail")


@flow.action("send")
def send(given: Digest, ctx: Context) -> None:
    """Never called."""


ACTION = flow.actions["send"]


class Lines:
    """The lines of Python that were run."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, _frame: FrameType, event: str, _given: object) -> "Lines":
        """Count one more line, maybe."""
        self.count += event == "line"
        return self


def steps(call: Callable[[], object]) -> int:
    """Return the number of Python's lines that a call runs. A refusal does not matter."""
    lines, before = Lines(), sys.gettrace()
    sys.settrace(lines)
    try:
        with suppress(DuetickError):
            call()
    finally:
        sys.settrace(before)
    return lines.count


def quoted(levels: int) -> str:
    """Return a text of few characters that is a quote after `levels` readings of JSON."""
    return "\\" + "u005c" * (levels - 1) + "u0022" if levels else '"'


def nested(levels: int, inner: str) -> str:
    """Return JSON in JSON, each level short, with a text in the innermost."""
    for level in range(levels - 1, -1, -1):
        inner = f"[{quoted(level)}{inner}{quoted(level)}]"
    return inner


def doubled(size: int) -> str:
    return '{"input":[' + ",".join(['{"a":1,"a":1}'] * size) + "]}"


def doubled_behind(size: int) -> str:
    keys = ",".join(f'"k{each}":1,"k{each}":1' for each in range(size))
    return f'{{"input":[{"[]," * size}{{{keys}}}]}}'


INPUTS: dict[str, Callable[[int], Json]] = {
    "names that are not known": lambda size: {f"f{each}": 1 for each in range(size)},
    "such with texts": lambda size: {f"f{each}": "token=x;" for each in range(size)},
    "such beside a text": lambda size: (
        {"to": "token=x;" * size} | {f"f{each}": 1 for each in range(size)}
    ),
    "parts of the wrong type": lambda size: {"more": [{"a": "b"}] * size},
    "levels": lambda size: {"more": json.loads("[" * (size // 4) + "]" * (size // 4))},
    "levels in a text": lambda size: {"to": "[" * size + "]" * size, "x": 1},
    "JSON in JSON": lambda size: {"to": nested(int(size**0.5), "a b. " * size), "x": 1},
    "JSON in JSON and flaws": lambda size: (
        {"to": nested(6, "token=x;" * size)} | {f"f{each}": 1 for each in range(size)}
    ),
}


TEXTS: dict[str, Callable[[int], str]] = {
    "lines": lambda size: "no way in\n" * size,
    "names": lambda size: "token=x;" * size,
    "shortened": lambda size: "canary-canary..." * size,
}
BODIES: dict[str, Callable[[int], str]] = {
    "names that come twice": doubled,
    "names that come twice behind others": doubled_behind,
    "a deep name that comes twice": lambda size: (
        '{"a":' * (size // 4) + '{"b":1,"b":1}' + "}" * (size // 4)
    ),
}
SHAPES: dict[str, Callable[[int], dict[str, Json]]] = {
    "fields": lambda size: {f"f{each}": 1 for each in range(size)},
    "policies": lambda size: {"policies": {f"f{each}": 1 for each in range(size)}},
    "labels": lambda size: {"labels": {f"f{each}": 1 for each in range(size)}},
}


def grows(call: Callable[[int], Callable[[], object]]) -> bool:
    """Return True if twice as much takes more than twice the steps, and a little."""
    few, many = steps(call(200)), steps(call(400))
    return many > 2.3 * few + 2_000


@pytest.mark.slow
@pytest.mark.parametrize("made", INPUTS.values(), ids=INPUTS)
def test_j11_an_input_is_refused_in_steps_that_grow_with_it(made: Callable[[int], Json]) -> None:
    def call(size: int) -> Callable[[], object]:
        given = made(size)
        return lambda: ACTION.read(given)

    assert not grows(call)


@pytest.mark.slow
@pytest.mark.parametrize("made", INPUTS.values(), ids=INPUTS)
@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_j11_an_error_is_told_in_steps_that_grow_with_it_and_the_input(
    made: Callable[[int], Json], text: Callable[[int], str]
) -> None:
    def call(size: int) -> Callable[[], object]:
        given = {"a": made(size), "token": "canary-canary-canary"}
        return lambda: ACTION.secrets(given).without(text(size))

    assert not grows(call)


@pytest.mark.slow
@pytest.mark.parametrize("made", INPUTS.values(), ids=INPUTS)
def test_j11_an_input_is_shown_in_steps_that_grow_with_it(made: Callable[[int], Json]) -> None:
    def call(size: int) -> Callable[[], object]:
        given = made(size)
        return lambda: redact(given)

    assert not grows(call)


@pytest.mark.parametrize("made", BODIES.values(), ids=BODIES)
def test_a_body_is_refused_in_steps_that_grow_with_it(made: Callable[[int], str]) -> None:
    assert not grows(lambda size: lambda: require_object(made(size)))


@pytest.mark.parametrize("made", SHAPES.values(), ids=SHAPES)
def test_a_body_of_another_shape_is_refused_in_steps_that_grow_with_it(
    made: Callable[[int], dict[str, Json]],
) -> None:
    steps(lambda: check_shape(NewSchedule, made(1)))  # its schema is made once
    assert not grows(lambda size: lambda: check_shape(NewSchedule, made(size)))
    assert steps(lambda: check_shape(NewSchedule, made(400))) <= 60 * 400


@pytest.mark.parametrize(
    "refuse",
    [
        lambda: ACTION.read({f"f{each}": 1 for each in range(5 * MOST_TOLD)}),
        lambda: ACTION.read({"more": [{"a": "b"}] * (5 * MOST_TOLD)}),
        lambda: check_shape(NewSchedule, {f"f{each}": 1 for each in range(5 * MOST_TOLD)}),
        lambda: require_object(doubled(5 * MOST_TOLD)),
    ],
)
def test_no_more_is_told_than_anybody_reads(refuse: Callable[[], object]) -> None:
    with pytest.raises(InvalidSchedule, match=r"There are at least 92 more\.") as problem:
        refuse()
    assert len(problem.value.flaws) == MOST_TOLD


def test_nobody_looks_into_an_input_that_is_too_large() -> None:
    schedule = Schedule("ann", "k", "@daily", "mail", "send", input={"x" * 100: 1})
    found = find_refusals(schedule, Flows({"mail": flow}), Quotas(input_bytes=99), NOW)
    assert [flaw.code for refusal in found for flaw in refusal.flaws] == ["quota_exceeded"]


def deep(levels: int) -> Json:
    """Return a secret under its name, within `levels` lists."""
    value: Json = {"token": "canary"}
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize("levels", [DEEPEST + 1, 600, 5_000, 50_000])
def test_j11_what_is_deeper_than_is_looked_at_is_withheld(levels: int) -> None:
    shown = redact({"a": deep(levels), "b": 1})
    assert "canary" not in str(shown)
    assert WITHHELD in str(shown)
    assert isinstance(shown, dict)
    assert shown["b"] == 1
    assert Secrets.of({"a": deep(levels)}).without("canary, no") == WITHHELD


def test_j11_what_is_not_as_deep_is_shown() -> None:
    assert str(redact(deep(DEEPEST - 1))).count("[") == DEEPEST
    assert Secrets.of(deep(DEEPEST - 1)).without("canary, no") == f"{WITHHELD}, no"


@pytest.mark.parametrize("levels", [DEEPEST + 1, 1_500, 5_000, 50_000])
def test_j11_an_error_about_json_that_is_too_deep_is_withheld(levels: int) -> None:
    secrets = Secrets.of({"body": "[" * levels + "1" + "]" * levels})
    assert secrets.without("canary, no") == WITHHELD


def test_j11_of_more_than_is_looked_at_the_rest_is_withheld() -> None:
    texts: list[Json] = ["x" * LONGEST_TEXT] * (MOST_CHARACTERS // LONGEST_TEXT)
    assert redact([texts, "canary"]) == [[*texts[:-1], WITHHELD], WITHHELD]
    assert Secrets.of([texts, "canary"]).without("canary") == WITHHELD
    assert redact({"x" * MOST_CHARACTERS: 1}) == WITHHELD
    long = "x" * LONGEST_TEXT + " token=canary"
    assert redact([long, "a"]) == [WITHHELD, "a"]
    assert Secrets.of([long]).without("canary") == WITHHELD


@pytest.mark.slow
def test_j11_no_more_of_a_text_is_looked_at_than_is_shown() -> None:
    """That holds for any length. Only the place to cut is searched in all of it."""
    whole = "token=x;" * (LONGEST_TEXT // 8)
    assert steps(lambda: redact_text(whole * 3)) <= steps(lambda: redact_text(whole)) + 100
    secrets = Secrets.of({"token": "canary"})
    secrets.without("")  # gets ready
    few = steps(lambda: secrets.without(whole))
    assert steps(lambda: secrets.without(whole * 3)) <= few + 100


ACCEPTED = (
    "*/5 * * * *",
    "* * * * *",
    "5,17 0-23 * * *",
    "0 9 29 2 *",
    "0 0 * 2 1#5",
    "*/7 */3 */2 * 1",
    "days(mon 09:00, thu 17:30)",
    "rate(5 minutes)",
)
MOST_STEPS = 40_000
"""A walk along 10,000 fires takes 280,000. Most of these steps are croniter's, for a rare date."""


@pytest.mark.parametrize("cron", ACCEPTED)
def test_i17_a_put_is_accepted_without_a_walk_along_its_fires(cron: str) -> None:
    wanted = Schedule("ada", "k", cron, "mail", "send", "Europe/Berlin", input={"to": "x"})

    def accept() -> None:
        assert find_refusals(wanted, Flows({"mail": flow}), Quotas(), NOW) == []

    accept()  # imports, and what is read once
    assert steps(accept) < MOST_STEPS

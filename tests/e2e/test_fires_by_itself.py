"""The template as it is, on each backend: EventBridge ticks, and what was put fires by itself."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import Deployed, deploy, on_postgres
from tests.e2e.users import EACH_MINUTE, User, time_of, user
from tests.lab.emulated_aws import EmulatedAws
from tests.lab.sam import Sam
from tests.lab.waiting import wait

OPERATORS = "/api/users/cem/schedules/hello"

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def ticking(
    sam: Sam, emulated_aws: EmulatedAws, built: Path, parameters: dict[str, str]
) -> Iterator[list[Deployed]]:
    """A stack for each backend, which no test updates."""
    with on_postgres(emulated_aws, "ticking") as there:
        stacks = [
            deploy(sam, emulated_aws, built, "ticking", parameters),
            deploy(sam, emulated_aws, built, "ticking-postgres", {**parameters, **there}),
        ]
        yield stacks
        for stack in stacks:
            stack.stop_ticking()


@pytest.fixture(scope="module")
def put(ticking: list[Deployed]) -> list[tuple[User, User]]:
    """On each, what two users and an operator put: all of it waits for one minute to turn."""
    people = [(user(stack, "ann"), user(stack, "bea")) for stack in ticking]
    for ann, bea in people:
        assert [ann.put(EACH_MINUTE)[0], bea.put(EACH_MINUTE)[0]] == [201, 201]
        assert ann.stack.call("PUT", OPERATORS, EACH_MINUTE)[0] == 201
    return people


def said(stack: Deployed) -> bool:
    """Whether dispatch logged what the action says."""
    return any("good morning" in line for line in stack.lines("Dispatch"))


def a_minute(until: Callable[[], object]) -> None:
    """Wait for what a minute that turns brings."""
    wait(until, 200, pause=1)


def test_a_users_schedule_fires_by_itself_is_seen_and_stops_when_it_is_paused(
    put: list[tuple[User, User]],
) -> None:
    for ann, _ in put:
        a_minute(ann.fired)
        line = ann.fired()[-1]
        assert (line["reason"], line["origin"]) == ("fired", "schedule")
        a_minute(partial(said, ann.stack))
    assert [ann.pause() for ann, _ in put] == [200, 200]
    paused = datetime.now(UTC)
    for ann, bea in put:
        a_minute(partial(bea.fired, paused))
        assert [line for line in ann.history() if time_of(line) > paused] == []


def ended(stack: Deployed) -> list[dict[str, Any]]:
    """What became of the operator's schedule."""
    history = stack.call("GET", f"{OPERATORS}/history")[1]["history"]
    return [line for line in history if line["reason"]]


def test_what_an_operator_puts_fires_by_itself(put: list[tuple[User, User]]) -> None:
    for ann, _ in put:
        a_minute(partial(ended, ann.stack))
        found = {(line["state"], line["reason"]) for line in ended(ann.stack)}
        assert found == {("succeeded", "fired")}

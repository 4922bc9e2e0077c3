"""The template as it is, on each backend: EventBridge ticks, and schedules fire by themselves."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
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
    """Deploy a stack for each backend. No test updates it."""
    with on_postgres(emulated_aws, "ticking") as there:
        stacks = [
            deploy(sam, emulated_aws, built, "ticking", parameters),
            deploy(sam, emulated_aws, built, "ticking-postgres", {**parameters, **there}),
        ]
        yield stacks
        for stack in stacks:
            stack.stop_ticking()


@dataclass(frozen=True, slots=True)
class People:
    """The users of one stack: the schedules of ann and bea fire on, dan pauses his."""

    ann: User
    bea: User
    dan: User


@pytest.fixture(scope="module")
def put(ticking: list[Deployed]) -> list[People]:
    """Put the schedules of three users and an operator on each stack. All of them wait for one
    minute.
    """
    found = [People(user(one, "ann"), user(one, "bea"), user(one, "dan")) for one in ticking]
    for people in found:
        for each in (people.ann, people.bea, people.dan):
            assert each.put(EACH_MINUTE)[0] == 201
        assert people.ann.stack.call("PUT", OPERATORS, EACH_MINUTE)[0] == 201
    return found


def said(stack: Deployed) -> bool:
    """Return True if dispatch logged the text of the action."""
    return any("good morning" in line for line in stack.lines("Dispatch"))


def a_minute(until: Callable[[], object]) -> None:
    """Wait for the fires of a full minute. No test waits for more than one, so that none takes as
    long as one that hangs.
    """
    wait(until, 130, pause=1)


def test_a_users_schedule_fires_by_itself_and_is_seen(put: list[People]) -> None:
    for people in put:
        a_minute(people.ann.fired)
        line = people.ann.fired()[-1]
        assert (line["reason"], line["origin"]) == ("fired", "schedule")
        a_minute(partial(said, people.ann.stack))


def test_a_users_schedule_stops_when_it_is_paused(put: list[People]) -> None:
    assert [people.dan.pause() for people in put] == [200, 200]
    paused = datetime.now(UTC)
    for people in put:
        a_minute(partial(people.bea.fired, paused))
        assert [line for line in people.dan.history() if time_of(line) > paused] == []


def ended(stack: Deployed) -> list[dict[str, Any]]:
    """Return the states of the operator's schedule."""
    history = stack.call("GET", f"{OPERATORS}/history")[1]["history"]
    return [line for line in history if line["reason"]]


def test_what_an_operator_puts_fires_by_itself(put: list[People]) -> None:
    for people in put:
        a_minute(partial(ended, people.ann.stack))
        found = {(line["state"], line["reason"]) for line in ended(people.ann.stack)}
        assert found == {("succeeded", "fired")}

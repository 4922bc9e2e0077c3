"""S-01 on the emulated AWS: a stack for whose schedules EventBridge rings, and both of its
moves.
"""

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from duetick.core.managed.watched import Followers
from duetick.core.store import Store
from duetick.domain.bells import bell_name
from duetick.domain.schedule import Schedule
from duetick.stores import open_store

from tests.e2e.conftest import Deployed, deploy
from tests.lab.emulated_aws import REGION, EmulatedAws
from tests.lab.sam import Sam
from tests.lab.waiting import wait

TICK = {"Trigger": "tick", "TickMinutes": "1"}
MANAGED = {"Trigger": "managed", "TickMinutes": "60"}
ANN = "/api/users/ann/schedules"
WORKS = {"flow": "trials", "action": "works"}

pytestmark = pytest.mark.slow


@dataclass
class Stack:
    """A stack, and a view of its bells."""

    deployed: Deployed
    group: str
    keys: list[str] = field(default_factory=list)

    def put(self, key: str, **fields: object) -> tuple[int, Any]:
        """Put a schedule of ann's."""
        return self.deployed.call("PUT", f"{ANN}/{key}", {**WORKS, **fields})

    def put_soon(self, key: str, seconds: float = 3) -> None:
        """Put a schedule that fires once, in some seconds. A refused one does not count."""
        at = datetime.now(UTC) + timedelta(seconds=seconds)
        status, _ = self.put(key, cron=f"at({at:%Y-%m-%dT%H:%M:%S})")
        if status == 201:
            self.keys.append(key)

    def history(self, key: str) -> list[dict[str, Any]]:
        """Return the occurrences of a schedule of ann's."""
        found: list[dict[str, Any]] = self.deployed.call("GET", f"{ANN}/{key}/history")[1][
            "history"
        ]
        return found

    def has_fired(self, key: str) -> bool:
        """Return True if it came to a good end."""
        return [one["state"] for one in self.history(key)] == ["succeeded"]

    def bell(self, key: str, user: str = "ann") -> Mapping[str, Any] | None:
        """Return the bell of a schedule, or None."""
        client = self.deployed.aws.client("scheduler")
        try:
            found: dict[str, Any] = client.get_schedule(
                Name=bell_name(user, key), GroupName=self.group
            )
        except client.exceptions.ResourceNotFoundException:
            return None
        return found

    def names(self) -> list[str]:
        """Return the names of all schedules in the group."""
        client = self.deployed.aws.client("scheduler")
        listed = client.list_schedules(GroupName=self.group)["Schedules"]
        return [str(one["Name"]) for one in listed]

    @contextmanager
    def firing(self, name: str, *, ticks: bool) -> Iterator[None]:
        """Put schedules during the block, and let ticks come, as they do on AWS."""
        ended = threading.Event()

        def fire() -> None:
            number = 0
            while not ended.wait(0.5):
                self.put_soon(f"{name}{number:03}")
                number += 1
                if ticks:
                    self.deployed.invoke("TickFunction", {})

        thread = threading.Thread(target=fire)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()

    @contextmanager
    def store(self, followers: Followers | None = None) -> Iterator[Store]:
        """Yield the store as seen from outside."""
        table, endpoint = self.deployed.outputs["TableName"], self.deployed.aws.endpoint
        url = f"dynamodb://{table}?region={REGION}&endpoint={endpoint}"
        opened = open_store(url, followers=followers)
        try:
            yield opened
        finally:
            opened.close()


@dataclass
class Journey:
    """The observations of a stack that moved to bells and back, in the order of its fields."""

    moved_to: list[str]
    bell_of_static: Mapping[str, Any] | None
    once: list[dict[str, Any]]
    once_belled: tuple[bool, bool]
    bells_of_one: dict[str, Mapping[str, Any] | None]
    refused: tuple[int, Any]
    before_tick: Mapping[str, Any] | None
    after_tick: Mapping[str, Any] | None
    remade: Mapping[str, Any] | None
    stray: bool
    retrying: Mapping[str, Any]
    wakes: list[str]
    fired: dict[str, list[str]]
    verified: dict[str, Any]
    left: list[str]


@pytest.fixture(scope="module")
def journey(
    sam: Sam, emulated_aws: EmulatedAws, quiet: Path, parameters: dict[str, str]
) -> Journey:
    """A stack that begins with ticks, moves to bells and moves back, all while schedules fire."""
    made = deploy(sam, emulated_aws, quiet, "managed", {**parameters, **TICK})
    client = emulated_aws.client("cloudformation")
    unique = client.describe_stacks(StackName="managed")["Stacks"][0]["StackId"].split("/")[2]
    stack = Stack(made, f"duetick-{unique}")
    with stack.firing("to", ticks=True):
        move(stack, MANAGED)
    moved_to = [*stack.keys]
    static = stack.bell("digests/nightly", user="")
    stack.put_soon("once", 6)
    once_before = stack.bell("once")
    failing = replace_soon(stack)
    bells = changed(stack)
    refused = stack.put("refused", cron="0 9 1 * mon")
    before, after = crashed(stack)
    remade, stray = meddled(stack)
    wait(lambda: stack.has_fired("once"), 40, pause=0.5)
    wait(lambda: states(stack, failing) == ["retrying"], 40, pause=0.5)
    once, belled = stack.history("once"), (once_before is not None, stack.bell("once") is not None)
    retrying, wakes = stack.history(failing)[0], stack.names()
    with stack.firing("back", ticks=True):
        move(stack, TICK)
    wait(partial(ticked, stack), 40, pause=0.5)
    return Journey(
        *(moved_to, static, once, belled, bells, refused, before, after, remade, stray),
        *(retrying, wakes, {key: states(stack, key) for key in stack.keys}),
        *(made.invoke("MigrateFunction", {"Step": "verify"}), stack.names()),
    )


def move(stack: Stack, parameters: Mapping[str, str]) -> None:
    """Deploy the other trigger. However quick that is, schedules are put before it and after it."""
    for deploys in (True, False):
        wait(partial(has_put, stack, len(stack.keys) + 3), 60, pause=0.1)
        if deploys:
            stack.deployed.deploy(parameters=parameters)


def has_put(stack: Stack, count: int) -> bool:
    """Return True once a number of schedules were put."""
    return len(stack.keys) >= count


def states(stack: Stack, key: str) -> list[str]:
    """Return the states of a schedule's occurrences."""
    return [one["state"] for one in stack.history(key)]


def ticked(stack: Stack) -> bool:
    """Return True if all that was put has fired, after another tick."""
    stack.deployed.invoke("TickFunction", {})
    return all(map(stack.has_fired, stack.keys))


def replace_soon(stack: Stack) -> str:
    """Put a schedule whose action fails soon and is tried again. Return its key."""
    at = datetime.now(UTC) + timedelta(seconds=6)
    again = {"delivery": "at_least_once", "retry": {"backoff": "fixed", "attempts": 3, "first": 90}}
    status, answer = stack.put(
        "fails", cron=f"at({at:%Y-%m-%dT%H:%M:%S})", action="raises", policies=again
    )
    assert status == 201, answer
    return "fails"


def changed(stack: Stack) -> dict[str, Mapping[str, Any] | None]:
    """Return the bells of one schedule, after each of its changes."""
    found: dict[str, Mapping[str, Any] | None] = {}
    call, path = stack.deployed.call, f"{ANN}/daily"
    daily = {"cron": "0 9 * * mon-fri", "timezone": "Europe/Berlin"}
    assert stack.put("daily", **daily)[0] == 201
    found["put"] = stack.bell("daily")
    assert stack.put("daily", **{**daily, "cron": "30 10 * * mon-fri"})[0] == 200
    found["edited"] = stack.bell("daily")
    for done in ("pause", "resume"):
        assert call("POST", f"{path}/{done}", {})[0] == 200
        found[done] = stack.bell("daily")
    assert call("DELETE", path)[0] == 204
    found["deleted"] = stack.bell("daily")
    return found


def crashed(stack: Stack) -> tuple[Mapping[str, Any] | None, Mapping[str, Any] | None]:
    """Return a schedule's bell before and after a tick. The schedule's process died after the
    write.
    """
    with stack.store(Followers()) as store:
        store.schedules.put(Schedule("ann", "crashed", "0 9 * * *", "trials", "works"))
    before = stack.bell("crashed")
    stack.deployed.invoke("TickFunction", {})
    return before, stack.bell("crashed")


def meddled(stack: Stack) -> tuple[Mapping[str, Any] | None, bool]:
    """Return the deleted bell after the hourly count, and True if a bell without a row is still
    there.
    """
    client = stack.deployed.aws.client("scheduler")
    assert stack.put("kept", cron="0 9 * * *")[0] == 201
    kept = stack.bell("kept") or {}
    copied = ("ScheduleExpression", "FlexibleTimeWindow", "Target", "GroupName")
    target = {**kept["Target"], "Input": kept["Target"]["Input"].replace('"kept"', '"stray"')}
    stray = {**{name: kept[name] for name in copied}, "Target": target}
    client.create_schedule(Name=bell_name("ann", "stray"), **stray)
    client.delete_schedule(Name=bell_name("ann", "kept"), GroupName=stack.group)
    stack.deployed.invoke("MigrateFunction", {"Step": "audit"})
    return stack.bell("kept"), stack.bell("stray") is not None


def test_s01_a_move_to_bells_and_back_loses_and_doubles_nothing(journey: Journey) -> None:
    assert len(journey.moved_to) >= 3, "schedules fired during the move"
    assert len(journey.fired) > len(journey.moved_to) + 3, "and during the move back"
    assert {key: found for key, found in journey.fired.items() if found != ["succeeded"]} == {}
    assert (journey.verified["faults"], journey.verified["found"]) == (0, [])


def test_s01_a_move_makes_the_bells_of_what_was_there(journey: Journey) -> None:
    assert journey.bell_of_static is not None


def test_s01_no_bell_is_left_after_the_move_back(journey: Journey) -> None:
    assert journey.left == []


def test_s01_what_a_bell_brings_fires_by_itself_and_the_bell_of_a_single_time_goes(
    journey: Journey,
) -> None:
    [fired] = journey.once
    assert (fired["state"], fired["reason"], fired["origin"]) == ("succeeded", "fired", "schedule")
    assert journey.once_belled == (True, False)


def test_s01_each_change_moves_the_bell_at_once(journey: Journey) -> None:
    told = {
        done: bell and (bell["ScheduleExpression"], bell["ScheduleExpressionTimezone"])
        for done, bell in journey.bells_of_one.items()
    }
    edited = ("cron(30 10 ? * MON-FRI *)", "Europe/Berlin")
    assert told == {
        "put": ("cron(0 9 ? * MON-FRI *)", "Europe/Berlin"),
        "edited": edited,
        "pause": None,
        "resume": edited,
        "deleted": None,
    }


def test_s01_what_eventbridge_cannot_say_is_refused(journey: Journey) -> None:
    status, answer = journey.refused
    assert status == 400
    assert "EventBridge takes one of the two" in json.dumps(answer)


def test_s01_a_bell_whose_process_died_is_made_by_the_next_tick(journey: Journey) -> None:
    assert journey.before_tick is None
    assert journey.after_tick is not None


def test_s01_the_hourly_count_makes_what_is_missing_and_deletes_what_has_no_row(
    journey: Journey,
) -> None:
    assert journey.remade is not None
    assert not journey.stray


def test_s01_a_retry_asks_for_a_tick_in_its_minute(journey: Journey) -> None:
    """If the retry is due in a later hour, the hourly tick asks for its minute."""
    failed, due = (
        datetime.fromisoformat(journey.retrying[name]) for name in ("updatedAt", "nextAttemptAt")
    )
    minute = -(-int(due.timestamp()) // 60)
    hour = int(failed.timestamp()) // 3_600
    assert f"wake-{minute}" in journey.wakes or minute // 60 > hour

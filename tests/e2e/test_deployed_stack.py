"""The stack on each backend: a user's schedule, fired by EventBridge; updates; a rollback."""

import time
from dataclasses import dataclass
from typing import Any

import pytest

from tests.cloud import check
from tests.e2e.conftest import Deployed
from tests.lab.process import LabError

EACH_MINUTE = {
    "cron": "* * * * *",
    "flow": "reminders",
    "action": "remind",
    "input": {"text": "good morning"},
}
YEARLY = EACH_MINUTE | {"cron": "0 9 1 1 *"}
PATIENCE = 150

pytestmark = pytest.mark.slow


@dataclass(frozen=True, slots=True)
class User:
    """Somebody with a token, and one schedule."""

    stack: Deployed
    token: str
    path: str

    def put(self, schedule: object) -> tuple[int, Any]:
        """Create or replace it."""
        answer = self.stack.as_user(self.token, "PUT", self.path, schedule)
        return answer.status, answer.json()

    def pause(self) -> int:
        """Until it is resumed."""
        return self.stack.as_user(self.token, "POST", f"{self.path}/pause", {}).status

    def get(self) -> dict[str, Any]:
        """Read it."""
        return self.stack.as_user(self.token, "GET", self.path).json()

    def ended(self) -> list[dict[str, Any]]:
        """Its occurrences that ended, the newest first."""
        found = self.stack.as_user(self.token, "GET", f"{self.path}/history").json()["history"]
        return [line for line in found if line["state"] == "succeeded"]

    def wait_until_fired(self) -> list[dict[str, Any]]:
        """Those that ended, once there is one."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            if found := self.ended():
                return found
            time.sleep(1)
        raise AssertionError(f"nothing fired in {PATIENCE} seconds: {self.get()}")


def user(stack: Deployed, name: str, key: str = "hello") -> User:
    """A new user of the stack."""
    return User(stack, stack.user(name), f"/api/schedules/{key}")


def wait_for_the_next_tick() -> None:
    """Until some seconds after the next full minute."""
    time.sleep(60 - time.time() % 60 + 5)


def test_a_users_schedule_fires_by_itself_is_seen_and_stops_when_it_is_paused(
    deployed: Deployed, deployed_on_postgres: Deployed
) -> None:
    users = [user(stack, "ann") for stack in (deployed, deployed_on_postgres)]
    assert [ann.put(EACH_MINUTE)[0] for ann in users] == [201, 201]
    for ann in users:
        line = ann.wait_until_fired()[0]
        assert (line["reason"], line["origin"]) == ("fired", "schedule")
        assert any("good morning" in line for line in ann.stack.lines("Dispatch"))

    assert [ann.pause() for ann in users] == [200, 200]
    fired = [len(ann.ended()) for ann in users]
    wait_for_the_next_tick()
    assert [len(ann.ended()) for ann in users] == fired
    assert [ann.stack.invoke("TickFunction", {})["failed"] for ann in users] == [0, 0]


def test_nobody_comes_in_without_a_token_or_a_signature(stack: Deployed) -> None:
    dispatch = "/api/flows/reminders/schedules/ann~2Fhello/dispatch"
    assert stack.call("POST", dispatch, {}, signed=False)[0] == 403
    assert stack.call("GET", "/api/users/ann/schedules", signed=False)[0] == 403
    for token in (None, "no.such.token"):
        assert stack.as_user(token, "GET", "/api/schedules").status in (401, 403)


def test_one_users_token_sees_nothing_of_anothers(stack: Deployed) -> None:
    bea, cem = user(stack, "bea"), user(stack, "cem")
    assert bea.put(YEARLY)[0] == 201
    assert stack.as_user(cem.token, "GET", bea.path).status == 404


def test_an_update_of_the_stack_keeps_everything(stack: Deployed) -> None:
    dan = user(stack, "dan")
    dan.put(YEARLY)
    before = dan.get()
    stack.deploy(parameters={"LogRetentionDays": "7", "MemorySize": "640"})
    assert stack.status() == "UPDATE_COMPLETE"
    assert dan.get() == before


def test_a_deployment_that_fails_is_rolled_back_and_says_why(
    stack: Deployed,
) -> None:
    eve = user(stack, "eve")
    eve.put(YEARLY)
    before = eve.get()
    broken = stack.built.with_name("broken.yaml")
    broken.write_text(stack.built.read_text().replace("Step: schedules", "Step: nonsense"))
    with pytest.raises(LabError, match="nonsense"):
        stack.deploy(template=broken, parameters={"MemorySize": "768"})
    assert stack.status() == "UPDATE_ROLLBACK_COMPLETE"
    assert eve.get() == before
    assert stack.invoke("TickFunction", {})["failed"] == 0


def test_the_audit_counts_what_is_active(stack: Deployed) -> None:
    user(stack, "fay").put(YEARLY)
    counted = stack.invoke("MigrateFunction", {"Step": "audit"})
    assert counted["active"] >= 1
    assert counted["unindexed"] == 0


def test_what_is_checked_on_a_real_account_passes_where_it_can_be_tried(stack: Deployed) -> None:
    made = check.Stack(stack.name, stack.aws.session(), stack.aws.endpoint)
    can = (
        check.migrate_reaches_the_database,
        check.a_tick_claims_and_delivers,
        check.no_tick_was_given_up,
        check.the_endpoints_are_there,
    )
    assert all(one(made) for one in can)

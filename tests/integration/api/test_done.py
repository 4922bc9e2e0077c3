"""L-01 as users, agents and operators see it: over the API, at the command, in `ctx.schedules`."""

import pytest
from duetick.client import ApiError, Client, Fields
from duetick.core.agents import AgentSchedules
from duetick.core.flows import Flows
from duetick.core.purge import purge_within
from duetick.core.schedules import UserSchedules
from duetick.runtime import wiring
from flows.reminders import reminders

from tests.integration.api.asking import DAY, HELLO, HOUR, MINUTE, refused, states
from tests.integration.api.test_command import PUT, Terminal
from tests.integration.local_product import NINE, Product, set_again

ONCE: Fields = HELLO | {"cron": "at(2026-12-01T09:00:00)"}
KEPT = 30 * DAY


@pytest.fixture
def terminal(running: Product, capsys: pytest.CaptureFixture[str]) -> Terminal:
    """A terminal beside the local stack."""
    return Terminal(running, capsys)


@pytest.fixture
def fired(running: Product, client: Client) -> Product:
    """Return a product in which one schedule fired for good, and one goes on."""
    client.put("once", ONCE)
    client.put("daily", HELLO)
    running.clock.now = NINE
    assert running.tick()["delivered"] == 2
    return running


def keys(client: Client, **asked: object) -> list[object]:
    path = "&".join(f"{name}={value}" for name, value in asked.items())
    found = client.call("GET", f"/api/schedules?{path}").body["schedules"]
    return [one["key"] for one in found]


def test_l01_what_fired_for_good_is_shown_as_done(fired: Product, client: Client) -> None:
    shown = client.get("once").body
    assert (shown["state"], shown["doneAt"], shown["runs"]) == ("done", "2026-12-01T09:00:00Z", 1)
    assert (shown["nextFireAt"], shown["enabled"]) == (None, True)
    daily = client.get("daily").body
    assert (daily["state"], daily["doneAt"], daily["runs"]) == ("active", None, 1)
    assert client.upcoming("once") == {"upcoming": []}


def test_l01_a_list_leaves_out_what_is_done_unless_a_state_is_asked_for(
    fired: Product, client: Client
) -> None:
    client.put("paused", HELLO | {"enabled": False})
    assert keys(client) == ["daily", "paused"]
    assert keys(client, state="done") == ["once"]
    assert keys(client, state="active") == ["daily"]
    assert keys(client, state="paused") == ["paused"]
    assert [one["key"] for one in client.list(state="all", limit=1)] == ["daily", "once", "paused"]
    assert refused(client.call, "GET", "/api/schedules?state=over") == (400, "invalid_schedule")


def test_l01_the_command_lists_what_is_done(fired: Product, terminal: Terminal) -> None:
    assert [one["key"] for one in terminal.lines("list")] == ["daily"]
    assert [one["key"] for one in terminal.lines("list", "--state", "done")] == ["once"]
    assert len(terminal.lines("list", "--state", "all")) == 2


def test_l01_an_agent_lists_what_is_done(fired: Product) -> None:
    flows = Flows({"reminders": reminders})
    own = UserSchedules(fired.store, flows, "you", fired.clock, wiring.quotas())
    agent = AgentSchedules(own, "reminders")
    assert [one.key for one in agent.list()] == ["daily"]
    assert [one.key for one in agent.list("done")] == ["once"]
    assert len([*agent.list("all")]) == 2


def test_l01_what_fired_locks_its_user_out_of_nothing(
    running: Product, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_again(monkeypatch, "QUOTA_SCHEDULES", "2")
    for number in range(2):
        client.put(f"k{number}", ONCE)
    assert refused(client.put, "k2", ONCE) == (409, "quota_exceeded")
    running.clock.now = NINE
    running.tick()
    for number in range(2):
        client.put(f"m{number}", HELLO)
    assert refused(client.put, "m2", HELLO) == (409, "quota_exceeded")
    again = HELLO | {"cron": "at(2026-12-01T10:00:00)"}
    assert refused(client.put, "k0", again) == (409, "quota_exceeded")
    assert refused(client.change, "k0", {"cron": "0 10 * * *"}) == (409, "quota_exceeded")
    assert refused(client.pause, "k0") == (409, "quota_exceeded")
    client.delete("m0")
    assert client.put("k0", again).body["state"] == "active"


def test_l01_a_paused_schedule_is_not_done_and_a_resume_tells_what_it_is(
    fired: Product, client: Client
) -> None:
    assert client.pause("once", note="rain").body["state"] == "paused"
    assert keys(client, state="paused") == ["once"]
    resumed = client.resume("once").body
    assert (resumed["state"], resumed["paused"]) == ("done", None)


def test_l01_a_pause_with_an_end_shows_done_from_that_end_on(
    fired: Product, client: Client
) -> None:
    """Lists and quota know it from the hourly purge."""
    end = "2026-12-02T08:00:00Z"
    assert client.pause("once", until=end).body["state"] == "paused"
    fired.clock.now = NINE + DAY
    before = client.get("once").body
    assert (before["state"], before["doneAt"]) == ("done", end)
    assert (keys(client), keys(client, state="active")) == (["daily", "once"], ["daily"])
    purge_within(10.0, fired.store)
    assert (keys(client), keys(client, state="done")) == (["daily"], ["once"])
    assert client.get("once").body["state"] == "done"


def test_l01_after_completion_delete_leaves_the_history_alone(
    running: Product, client: Client
) -> None:
    client.put("once", ONCE | {"policies": {"afterCompletion": "delete"}})
    client.put("daily", HELLO)
    running.clock.now = NINE
    running.tick()
    assert refused(client.get, "once") == (404, "schedule_not_found")
    assert states(client, "once") == [("succeeded", "fired")]
    made = client.put("once", ONCE | {"cron": "at(2026-12-01T10:00:00)"}).body
    assert (made["version"], made["runs"]) == (1, 0)


def test_l01_what_is_done_leaves_after_thirty_days(fired: Product, client: Client) -> None:
    fired.clock.now = NINE + KEPT - HOUR
    purge_within(10.0, fired.store)
    assert client.get("once").body["state"] == "done"
    fired.clock.now = NINE + KEPT + MINUTE
    purge_within(10.0, fired.store)
    assert refused(client.get, "once") == (404, "schedule_not_found")
    with pytest.raises(ApiError, match="schedule_not_found"):
        states(client, "once")


def test_l01_a_repeated_creation_is_told_what_it_made_though_that_has_left(
    running: Product, client: Client
) -> None:
    body = ONCE | {"policies": {"afterCompletion": "delete"}}
    made = client.create(body, idempotency_key="order-7").body
    running.clock.now = NINE
    running.tick()
    assert refused(client.get, str(made["key"])) == (404, "schedule_not_found")
    assert client.create(body, idempotency_key="order-7").body == made


def test_l01_an_export_shows_what_is_done_and_an_erasure_takes_it(fired: Product) -> None:
    machine = fired.operator("you")
    exported = machine.export()
    assert {one["key"]: one["state"] for one in exported["schedules"]} == {
        "daily": "active",
        "once": "done",
    }
    assert machine.erase() == {"schedules": 2}
    assert machine.export()["schedules"] == []


def test_l01_a_run_by_hand_of_what_is_done_runs_and_counts(fired: Product, client: Client) -> None:
    assert client.run("once")["state"] == "succeeded"
    shown = client.get("once").body
    assert (shown["state"], shown["runs"]) == ("done", 2)


def test_l01_the_command_puts_what_is_to_be_deleted_then(terminal: Terminal) -> None:
    (made,) = terminal.lines(
        *PUT, "--input", '{"text": "hi"}', "--policies", '{"afterCompletion": "delete"}'
    )
    assert made["state"] == "active"
    policies = made["policies"]
    assert isinstance(policies, dict)
    assert policies["afterCompletion"] == "delete"


def test_l01_what_is_done_can_be_put_again_and_changed_otherwise(
    fired: Product, client: Client
) -> None:
    """Only a change that would make the schedule fire needs a time to come."""
    assert client.put("once", ONCE).body["state"] == "done"
    kept: Fields = {"labels": {"team": "garden"}, "policies": {"afterCompletion": "delete"}}
    changed = client.change("once", kept).body
    assert (changed["state"], changed["labels"]) == ("done", {"team": "garden"})
    assert client.change("once", {}).body["state"] == "done"
    assert refused(client.change, "once", {"cron": "at(2026-12-01T08:50:00)"})[0] == 400


def test_l01_a_patch_that_disables_what_is_done_is_a_pause_that_ends(
    fired: Product, client: Client
) -> None:
    paused = client.change("once", {"enabled": False}).body
    assert (paused["state"], paused["paused"] is not None) == ("paused", True)
    assert client.change("once", {"enabled": True}).body["state"] == "done"


def test_l01_an_action_that_is_tried_again_may_create_what_is_done_by_now(fired: Product) -> None:
    own = UserSchedules(wiring.store(), Flows({"reminders": reminders}), "you", fired.clock)
    mine = AgentSchedules(own, "reminders")
    cron = "at(2026-12-01T09:00:00)"
    again = mine.create("once", cron=cron, action="remind", input=HELLO["input"])
    assert again.done_at == NINE

"""O-02: operators pause a user, a flow or everything, over the API and by the command."""

import json

import pytest
from duetick.cli.main import main
from duetick.client import Client
from duetick.core.wire import iso
from duetick.operators import Operators

from tests.integration.api.asking import HELLO, MINUTE, refused, states
from tests.integration.local_product import NINE, Product

EACH_MINUTE = HELLO | {"cron": "* * * * *"}


@pytest.fixture
def pauses(running: Product) -> Operators:
    """The operators' view."""
    return Operators(running.stack.server.url, token=running.stack.operator)


def pass_minutes(running: Product, minutes: int) -> int:
    """Let a tick come in each minute. Return the number of deliveries."""
    delivered = 0
    for _ in range(minutes):
        running.clock.now += MINUTE
        delivered += running.tick()["delivered"]
    return delivered


@pytest.mark.parametrize("scope", ["user:you", "flow:reminders", "all"])
def test_o02_a_pause_keeps_a_group_from_firing_and_is_in_its_history(
    running: Product, client: Client, pauses: Operators, scope: str
) -> None:
    client.put("hello", EACH_MINUTE)
    running.clock.now += MINUTE
    made = pauses.pause(scope, note="the bank is down")
    assert made["by"] == "arn:aws:iam::000000000000:user/local"
    assert pass_minutes(running, 3) == 0
    (ended,) = pauses.resume(scope)["pauses"]
    assert ended["resumedAt"]
    assert pass_minutes(running, 2) == 2
    lines = [(one["state"], one["reason"], one["count"]) for one in client.history("hello")]
    assert lines == [*[("succeeded", "fired", 1)] * 2, ("cancelled", "paused", 4)]
    assert [one["scope"] for one in pauses.pauses()["pauses"]] == [scope]


@pytest.mark.parametrize("scope", ["user:you", "flow:reminders", "all"])
def test_o02_a_schedule_tells_the_pause_of_a_group_that_holds_it(
    running: Product,
    pauses: Operators,
    scope: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its user does not read the operator's note."""
    client = running.client()
    client.put("hello", EACH_MINUTE)
    monkeypatch.setenv("DUETICK_OPERATOR", running.stack.operator)
    place = ["--url", running.stack.server.url]
    held = [client.get("hello").body["heldBy"]]
    pauses.pause(scope, note="the bank is down")
    since = iso(running.clock.now)
    held += [client.get("hello").body["heldBy"], *(one["heldBy"] for one in client.list())]
    held += [one["heldBy"] for one in pauses.schedules()]
    span = {"from": iso(NINE - 180 * MINUTE), "to": iso(NINE - 178 * MINUTE)}
    plan = running.operator("you").start_backfill("hello", span)["plan"]
    assert [*held, plan["heldBy"]] == [None, *[{"scope": scope, "since": since, "until": None}] * 4]
    for list_of in (["list", "--user", "you"], ["list", "--all-users"]):
        assert main(["schedules", *list_of, *place]) == 0
        assert f"active, held by a pause of {scope}" in capsys.readouterr().out
    asked = ["backfill", "start", "hello", "--user", "you", *place]
    assert main([*asked, "--from", str(span["from"]), "--to", str(span["to"])]) == 0
    assert f"It waits: an operator paused {scope} until it is resumed." in capsys.readouterr().err
    pauses.resume(scope)
    running.clock.now += MINUTE
    assert client.get("hello").body["heldBy"] is None


def test_o02_a_pause_refuses_runs_and_outside_calls(
    running: Product, client: Client, pauses: Operators
) -> None:
    client.put("hello", EACH_MINUTE)
    pauses.pause("all")
    running.clock.now += MINUTE
    assert refused(client.run, "hello") == (409, "schedule_paused")
    path = "/api/flows/reminders/schedules/you/hello/dispatch"
    answer = running.call("POST", path, {}, running.stack.secret)
    assert answer == (200, {"status": "skipped", "reason": "paused"})
    assert states(client) == []


@pytest.mark.slow
def test_o02_a_call_for_a_time_of_a_pause_that_has_ended_is_skipped(
    running: Product, client: Client, pauses: Operators
) -> None:
    client.put("hello", EACH_MINUTE)
    pauses.pause("all")
    at = running.clock.now // MINUTE * MINUTE + MINUTE
    pass_minutes(running, 2)
    pauses.resume("all")
    pass_minutes(running, 180)
    assert running.store.pauses.close_over(running.clock.now) == 1
    path = "/api/flows/reminders/schedules/you/hello/dispatch"
    answer = running.call("POST", path, {"nominalFireTime": at}, running.stack.secret)
    assert answer == (200, {"status": "skipped", "reason": "paused"})


def test_a02_explain_says_who_paused_what(
    running: Product, client: Client, pauses: Operators
) -> None:
    client.put("hello", HELLO)
    pauses.pause("flow:reminders", note="not for users")
    found = client.explain("hello", at="2026-12-01T09:00:00Z")
    assert found["verdict"] == "paused"
    assert (
        "An operator paused the flow reminders, from 2026-12-01T08:30:00Z until it is resumed."
        in found["said"]
    )
    now = client.explain("hello", at="2026-12-01T09:00:01Z")
    assert now["verdict"] == "not_a_fire_time"
    assert sum("An operator paused the flow reminders" in line for line in now["said"]) == 1
    assert sum("An operator paused" in line for line in found["said"]) == 1
    running.clock.now = NINE
    running.tick()
    assert client.explain("hello", at="2026-12-01T09:00:00Z")["verdict"] == "paused"
    assert "not for users" not in json.dumps(found)


def test_o02_users_may_not_pause_groups(running: Product) -> None:
    for method, path in (("GET", "/api/pauses"), ("PUT", "/api/pauses/all")):
        status, _ = running.call(method, path, {} if method == "PUT" else None)
        assert status == 401


def test_o02_a_wrong_scope_and_an_end_in_the_past_are_told_at_once(
    running: Product, pauses: Operators
) -> None:
    body = {"until": "yesterday"}
    status, answer = running.call("PUT", "/api/pauses/everybody", body, running.stack.operator)
    assert status == 400
    assert [one["code"] for one in answer["problems"]] == ["not_one_of", "invalid_time"]
    assert refused(pauses.pause, "all", until="2026-11-30T00:00:00Z") == (400, "invalid_schedule")


def test_o01_who_paused_and_why_it_was_resumed_is_recorded(
    running: Product, pauses: Operators
) -> None:
    pauses.pause("user:ünal#1")
    running.clock.now += MINUTE
    Operators(running.stack.server.url, token=running.stack.operator, why="über Nacht").resume(
        "user:ünal#1"
    )
    _, answer = running.call("GET", "/api/operations", token=running.stack.operator)
    told = [(one["verb"], one["target"], one["why"]) for one in answer["operations"]]
    assert told == [
        ("resume_group", "user:ünal#1", "über Nacht"),
        ("pause_group", "user:ünal#1", ""),
    ]


def test_the_command_pauses_lists_and_resumes(
    running: Product,
    client: Client,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    client.put("hello", EACH_MINUTE)
    monkeypatch.setenv("DUETICK_URL", running.stack.server.url)
    monkeypatch.setenv("DUETICK_OPERATOR", running.stack.operator)
    until = "2026-12-01T12:00:00Z"
    assert main(["pause", "user", "you", "--until", until, "--note", "calm"]) == 0
    assert capsys.readouterr().out == f"Paused from 2026-12-01T08:30:00Z until {until}.\n"
    assert pass_minutes(running, 2) == 0
    capsys.readouterr()  # what the ticks said
    assert main(["pauses"]) == 0
    title, line = capsys.readouterr().out.splitlines()
    assert title.split() == ["SCOPE", "SINCE", "UNTIL", "HOLDS", "BY", "NOTE"]
    assert line.split()[:4] == ["user:you", "2026-12-01T08:30:00Z", until, "yes"]
    assert main(["resume", "user", "you"]) == 0
    assert capsys.readouterr().out.startswith("Resumed. Times from 2026-12-01T08:32")
    assert main(["resume", "user", "you"]) == 0
    assert capsys.readouterr().out == "It was not paused.\n"
    running.clock.now += MINUTE
    assert main(["pauses", "--json"]) == 0
    (one,) = json.loads(capsys.readouterr().out)
    assert one["holds"] is False


def test_the_command_says_what_it_needs(
    running: Product, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("DUETICK_OPERATOR", raising=False)
    assert main(["pause", "all", "--url", running.stack.server.url]) == 1
    assert "DUETICK_OPERATOR" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["pause", "user"])
    assert "name the user or the flow" in capsys.readouterr().err

"""O-03: operators limit a user, a flow or an action, over the API and by the command."""

import json

import pytest
from duetick.cli.main import main
from duetick.client import Client
from duetick.domain.attempts import SUCCEEDED
from duetick.domain.schedule import Lease, Occurrence
from duetick.operators import Operators

from tests.integration.api.asking import HELLO, MINUTE, refused
from tests.integration.local_product import NINE, Product

EACH_MINUTE = HELLO | {"cron": "* * * * *"}
SCOPES = ("user:you", "flow:reminders", "action:reminders/remind")

every_scope = pytest.mark.parametrize("scope", SCOPES)


@pytest.fixture
def office(running: Product) -> Operators:
    """The operators' view."""
    return Operators(running.stack.server.url, token=running.stack.operator)


def runs(running: Product, client: Client, key: str = "long") -> Occurrence:
    """Let one be due now and begin, as in a process that has not ended it. Return it."""
    client.put(key, EACH_MINUTE)
    running.clock.now += MINUTE
    (one,) = running.store.index.claim_due(running.clock.now)
    running.store.ledger.begin(one, now=running.clock.now)
    return one


@every_scope
def test_o03_a_limit_lets_so_many_run_and_the_others_wait(
    running: Product, client: Client, office: Operators, scope: str
) -> None:
    made = office.limit(scope, parallel=1, note="the bank takes one")
    assert (made["parallel"], made["running"], made["fullUntil"]) == (1, 0, None)
    assert made["by"] == "arn:aws:iam::000000000000:user/local"
    one = runs(running, client)
    (shown,) = office.limits()["limits"]
    assert (shown["scope"], shown["running"], shown["begun"]) == (scope, 1, 1)
    assert shown["fullUntil"]
    client.put("hello", EACH_MINUTE)
    running.clock.now += MINUTE // 2
    assert running.tick()["delivered"] == 0
    running.store.ledger.settle(one, SUCCEEDED, now=running.clock.now)
    running.clock.now += MINUTE
    assert running.tick()["delivered"] == 2
    (ended,) = office.unlimit(scope)["limits"]
    assert ended["running"] == 0
    assert office.limits()["limits"] == []
    assert office.unlimit(scope)["limits"] == []


def test_o03_runs_and_outside_calls_are_told_when_to_try_again(
    running: Product, client: Client, office: Operators
) -> None:
    office.limit("user:you", parallel=1)
    one = runs(running, client)
    client.put("hello", HELLO)
    assert refused(client.run, "hello", idempotency_key="mine") == (429, "limit_reached")
    path = "/api/flows/reminders/schedules/you/hello/dispatch"
    body = {"idempotencyKey": "mine"}
    status, answer = running.call("POST", path, body, running.stack.secret)
    assert (status, answer["error"]) == (429, "limit_reached")
    assert list(client.history("hello")) == []
    running.store.ledger.settle(one, SUCCEEDED, now=running.clock.now)
    assert client.run("hello", idempotency_key="mine")["state"] == "succeeded"


@every_scope
def test_a02_explain_says_for_which_limit_it_waits(
    running: Product, client: Client, office: Operators, scope: str
) -> None:
    client.put("hello", HELLO)
    office.limit(scope, rate=1, per="hour", note="not for users")
    running.clock.now = NINE
    other = Lease("you", "other", NINE, "schedule", "reminders", 1)
    assert running.store.limits.take(other, "remind", NINE + MINUTE, NINE) is None
    running.clock.now += MINUTE
    running.tick()
    at = "2026-12-01T09:00:00Z"
    found = client.explain("hello", at=at)
    assert found["verdict"] == "will_fire"
    named = {"user:you": "the user"}.get(scope, "the " + scope.replace(":", " "))
    told = f"It waits for a limit that an operator set on {named}: 1 an hour."
    assert told in found["said"]
    assert "There is a place by 2026-12-01T10:00:00Z, or sooner." in found["said"]
    assert "not for users" not in json.dumps(found)
    office.unlimit(scope)
    assert told not in client.explain("hello", at=at)["said"]


def test_o03_users_may_not_limit(running: Product) -> None:
    for method, path in (("GET", "/api/limits"), ("PUT", "/api/limits/user~3Ayou")):
        status, _ = running.call(method, path, {} if method == "PUT" else None)
        assert status == 401


def test_o03_everything_that_is_wrong_is_told_at_once(running: Product, office: Operators) -> None:
    body = {"parallel": 0, "rate": "many", "per": "week", "notes": "x"}
    status, answer = running.call("PUT", "/api/limits/everybody", body, running.stack.operator)
    assert status == 400
    fields = sorted(one["field"] for one in answer["problems"])
    assert fields == ["/notes", "/parallel", "/per", "/rate", "/scope"]
    assert refused(office.limit, "user:you") == (400, "invalid_schedule")
    assert refused(office.limit, "flow:a b", parallel=501) == (400, "invalid_schedule")


def test_o01_who_limited_and_why_it_was_lifted_is_recorded(
    running: Product, office: Operators
) -> None:
    office.limit("action:reminders/remind", parallel=2)
    office.limit("user:ünal#1", rate=60, per="hour")
    running.clock.now += MINUTE
    Operators(running.stack.server.url, token=running.stack.operator, why="über Nacht").unlimit(
        "user:ünal#1"
    )
    _, answer = running.call("GET", "/api/operations", token=running.stack.operator)
    told = [(one["verb"], one["user"], one["target"], one["why"]) for one in answer["operations"]]
    assert told[0] == ("lift_limit", "ünal#1", "user:ünal#1", "über Nacht")
    assert {target: user for _, user, target, _ in told[1:]} == {
        "action:reminders/remind parallel=2": None,
        "user:ünal#1 rate=60 per=hour": "ünal#1",
    }


def test_the_overview_shows_first_what_has_no_place(
    running: Product, client: Client, office: Operators
) -> None:
    for number in range(6):
        office.limit(f"flow:a{number}", parallel=number + 1)
    office.limit("user:you", parallel=1)
    runs(running, client)
    found = office.overview()["limits"]
    assert found["count"] == 7
    shown = [one["scope"] for one in found["first"]]
    assert shown == ["user:you", *(f"flow:a{number}" for number in range(4))]


def test_the_command_limits_lists_and_lifts(
    running: Product,
    client: Client,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("DUETICK_URL", running.stack.server.url)
    monkeypatch.setenv("DUETICK_OPERATOR", running.stack.operator)
    bounds = ["--parallel", "1", "--rate", "60/minute", "--note", "calm"]
    assert main(["limit", "action", "reminders/remind", *bounds]) == 0
    told = "Limited: action:reminders/remind to 1 at once and 60 a minute."
    assert capsys.readouterr().out.startswith(told)
    runs(running, client)
    assert main(["limits"]) == 0
    title, line = capsys.readouterr().out.splitlines()
    assert title.split()[:6] == ["SCOPE", "PARALLEL", "RATE", "PER", "RUNNING", "BEGUN"]
    assert line.split()[:6] == ["action:reminders/remind", "1", "60", "minute", "1", "1"]
    assert main(["overview"]) == 0
    shown = capsys.readouterr().out
    assert "Limited: action:reminders/remind to 1 at once and 60 a minute, by arn" in shown
    assert "1 run; no place until" in shown
    assert main(["unlimit", "action", "reminders/remind"]) == 0
    assert capsys.readouterr().out == "Lifted. What waits begins with the next tick.\n"
    assert main(["unlimit", "action", "reminders/remind"]) == 0
    assert capsys.readouterr().out == "It has no limit.\n"
    assert main(["limits", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == []


@pytest.mark.parametrize(
    ("arguments", "unknown"),
    [
        (["pause", "flow", "remindres"], "No flow 'remindres' is deployed"),
        (["limit", "flow", "remindres", "--parallel", "1"], "No flow 'remindres' is deployed"),
        (["limit", "action", "reminders/remnid", "--parallel", "1"], "reminders/remind"),
        (["pause", "flow", "reminders"], ""),
        (["pause", "user", "remindres"], ""),
        (["limit", "action", "reminders/remind", "--parallel", "1"], ""),
    ],
)
def test_j07_a_misspelled_flow_is_told(
    running: Product,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    unknown: str,
) -> None:
    """Otherwise nobody sees at night that nothing is held. A flow that is gone may be meant."""
    monkeypatch.setenv("DUETICK_URL", running.stack.server.url)
    monkeypatch.setenv("DUETICK_OPERATOR", running.stack.operator)
    assert main(arguments) == 0
    told = capsys.readouterr().err
    assert unknown in told
    assert bool(told) == bool(unknown)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["limit", "flow", "a"], "say --parallel, or --rate, or both"),
        (["limit", "flow", "a", "--rate", "9"], "expected a rate such as 60/minute"),
        (["limit", "flow", "a", "--rate", "٣/minute"], "expected a rate such as 60/minute"),
        (["limit", "flow", "a", "--rate", "9/week"], "expected a rate such as 60/minute"),
        (["limit", "all", "a", "--parallel", "1"], "invalid choice"),
    ],
)
def test_the_command_says_what_it_needs(
    capsys: pytest.CaptureFixture[str], arguments: list[str], told: str
) -> None:
    with pytest.raises(SystemExit):
        main(arguments)
    assert told in capsys.readouterr().err

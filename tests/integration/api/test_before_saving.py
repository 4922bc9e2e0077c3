"""Before anything is saved: the meaning of an expression, the answer of a put, the actions there
are.
"""

import json

import pytest
from duetick.cli.main import main
from duetick.client import ApiError, Client, Fields
from duetick.operators import Operators

from tests.integration.api.asking import HELLO, MINUTE, refused
from tests.integration.local_product import Product, set_again, tick_seldom


def test_c01_a_preview_has_words_times_and_changes_of_the_clocks(client: Client) -> None:
    found = client.preview(
        "30 2 * * mon-sun", timezone="Europe/Berlin", after="2027-03-27T00:00:00Z", limit=2
    )
    assert found["cron"] == "30 2 * * 1-7"
    assert found["words"] == "At 02:30, on Monday to Sunday, by the clocks of Europe/Berlin."
    assert [(one["utc"], one["local"]) for one in found["upcoming"]] == [
        ("2027-03-27T01:30:00Z", "2027-03-27T02:30:00+01:00"),
        ("2027-03-28T01:00:00Z", "2027-03-28T03:00:00+02:00"),
    ]
    assert "clocks go forward" in str(found["upcoming"][1]["clock"])
    assert found["warnings"] == [
        "On 2027-03-28 the clocks skip a time that it names (from 02:00 to before 03:00): it fires "
        "at the change.",
        "On 2027-10-31 a time that it names comes twice (from 02:00 to before 03:00): it fires on "
        "the first pass.",
    ]


def test_c01_the_rules_of_a_preview_are_the_policies(client: Client) -> None:
    chosen: Fields = {"gap": "skip", "repeat": "both"}
    found = client.preview("30 2 * * *", timezone="Europe/Berlin", policies=chosen)
    assert [one.rpartition(": ")[2] for one in found["warnings"]] == [
        "it does not fire.",
        "it fires on both passes.",
    ]
    real = client.preview("*/30 * * * *", timezone="Europe/Berlin")
    assert real["warnings"] == []


@pytest.mark.parametrize(
    ("spread", "said"),
    [(45, "45 seconds"), (60, "1 minute"), (5_400, "90 minutes"), (7_200, "2 hours")],
)
def test_the_words_of_a_preview_tell_the_spread(client: Client, spread: int, said: str) -> None:
    found = client.preview("0 9 * * *", policies={"spread": spread})
    late = f"It starts up to {said} later, each time by the same span."
    assert found["words"] == f"At 09:00, every day, in UTC. {late}"


def test_a_preview_ends_with_the_limit_of_runs_and_says_so(client: Client) -> None:
    chosen: Fields = {"maxRuns": 2}
    found = client.preview("*/15 * * * *", policies=chosen)
    times = [one["utc"] for one in found["upcoming"]]
    assert times == ["2026-12-01T08:45:00Z", "2026-12-01T09:00:00Z"]
    assert found["warnings"] == ["It fires 2 times, and then never again."]
    (second,) = client.preview("*/15 * * * *", policies=chosen, after=times[0])["upcoming"]
    assert second["utc"] == times[1]
    assert client.preview("*/15 * * * *", policies=chosen, after=times[1])["upcoming"] == []


def test_g05_a_preview_takes_a_day_map(client: Client) -> None:
    found = client.preview({"mon": "09:00", "tue": None})
    assert (found["cron"], found["words"]) == ("days(mon 09:00)", "At 09:00 on Monday, in UTC.")
    with pytest.raises(ApiError) as problem:
        client.preview({"mon": "9"})
    assert [one["field"] for one in problem.value.problems] == ["/cron/mon"]


@pytest.mark.parametrize(
    ("cron", "field", "code"),
    [("75 * * * *", "/cron", "invalid_cron"), ("0 0 31 2 *", "/cron", "never_fires")],
)
def test_i17_a_preview_refuses_what_cannot_be_read(
    client: Client, cron: str, field: str, code: str
) -> None:
    with pytest.raises(ApiError) as problem:
        client.preview(cron)
    assert [(one["field"], one["code"]) for one in problem.value.problems] == [(field, code)]


def test_i17_a_preview_names_every_mistake(running: Product) -> None:
    wrong = {
        "cron": "75 * * * *",
        "timezone": "Mars/Olympus",
        "limit": 0,
        "after": "x",
        "flow": "f",
    }
    status, answer = running.call("POST", "/api/upcoming", wrong)
    assert status == 400
    fields = {one["field"] for one in answer["problems"]}
    assert fields == {"/cron", "/timezone", "/limit", "/after", "/flow"}


def test_a_preview_warns_of_what_a_put_refuses(
    running: Product, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_again(monkeypatch, "QUOTA_GAP_SECONDS", "600")
    (warning,) = client.preview("*/5 * * * *")["warnings"]
    assert warning.startswith("A put refuses it: '*/5 * * * *' fires twice within 300 s")
    assert refused(client.put, "k", HELLO | {"cron": "*/5 * * * *"}) == (409, "quota_exceeded")
    past = client.preview("at(2020-01-01T00:00:00)")
    assert past["upcoming"] == []
    assert past["warnings"][0].startswith("A put refuses it:")
    tick_seldom(running, monkeypatch)
    set_again(monkeypatch, "QUOTA_GAP_SECONDS", "60")
    assert "a tick comes each 1800 s" in client.preview("*/5 * * * *")["warnings"][0]


def test_a_preview_says_what_a_month_lacks_and_when_it_ends(client: Client) -> None:
    (short,) = client.preview("0 9 31 * *")["warnings"]
    assert "Months without a day 31 are left out" in short
    (ends,) = client.preview("at(2027-01-01T00:00:00)")["warnings"]
    assert ends == "It fires 1 time, and then never again."


def test_a_preview_and_the_flows_are_for_operators_too(running: Product) -> None:
    operators = Operators(running.stack.server.url, token=running.stack.operator)
    assert operators.client.preview("0 9 * * *")["words"] == "At 09:00, every day, in UTC."
    assert list(operators.client.flows())
    for method, path in (("POST", "/api/upcoming"), ("GET", "/api/flows")):
        assert running.call(method, path, {"cron": "@daily"}, "nobody's")[0] == 401


def test_o01_a_preview_counts_as_no_write_and_is_no_operation(
    running: Product, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_again(monkeypatch, "QUOTA_WRITES", "0")
    assert client.preview("@daily")["upcoming"]
    operators = Operators(running.stack.server.url, token=running.stack.operator)
    operators.client.preview("@daily")
    assert list(operators.operations()) == []


def test_the_flows_have_the_schemas_of_their_inputs(client: Client) -> None:
    flows = {one["flow"]: one["actions"] for one in client.flows()}
    (remind,) = flows["reminders"]
    assert remind["action"] == "remind"
    assert remind["policies"]["delivery"] == "at_most_once"
    assert remind["input"]["$ref"] == "#/$defs/Reminder"
    (shape,) = dict(remind["input"]["$defs"]).values()  # type: ignore[call-overload]
    assert shape["properties"] == {"text": {"type": "string"}}


def test_a_user_reads_only_of_what_users_may_schedule(running: Product, client: Client) -> None:
    own = {(flow["flow"], one["action"]) for flow in client.flows() for one in flow["actions"]}
    assert own == {(one["flow"], one["action"]) for one in client.actions()}
    operator = running.operator("you")
    every = {(flow["flow"], one["action"]) for flow in operator.flows() for one in flow["actions"]}
    assert every == {(one["flow"], one["action"]) for one in operator.actions()}
    assert own < every


def test_m01_a_dry_run_of_a_put_stores_nothing(anywhere: Product) -> None:
    client = anywhere.client()
    tried = client.put("hello", HELLO, dry_run=True)
    assert (tried.status, tried.body["dryRun"], tried.etag) == (200, True, "")
    assert list(client.list(state="all")) == []
    made = client.put("hello", HELLO)
    assert {**tried.body} == {**made.body, "dryRun": True}
    changed = client.change("hello", {"cron": "0 10 * * *"}, dry_run=True).body
    assert (changed["version"], changed["nextFireAt"]) == (2, "2026-12-01T10:00:00Z")
    assert client.get("hello").body == made.body
    tried = client.create(HELLO, key="other", dry_run=True)
    assert refused(client.get, "other") == (404, "schedule_not_found")
    anywhere.clock.now += 30 * MINUTE
    assert anywhere.tick()["delivered"] == 1


def test_m01_a_dry_run_refuses_what_a_put_refuses(
    anywhere: Product, monkeypatch: pytest.MonkeyPatch
) -> None:
    client, operator = anywhere.client(), anywhere.operator("you")
    first = client.put("hello", HELLO)
    operator.put("owned", HELLO | {"externalId": "crm-7"})
    calls = (
        lambda dry: client.put("k", HELLO | {"cron": "75 * * * *"}, dry_run=dry),
        lambda dry: client.put("k", HELLO | {"action": "none"}, dry_run=dry),
        lambda dry: client.create(HELLO, key="hello", dry_run=dry),
        lambda dry: client.put("hello", HELLO, if_match='"1-x"', dry_run=dry),
        lambda dry: client.change("none", {"cron": "@daily"}, dry_run=dry),
        lambda dry: operator.put("k", HELLO | {"externalId": "crm-7"}, dry_run=dry),
        lambda dry: client.put("k", HELLO | {"cron": "rate(30 seconds)"}, dry_run=dry),
    )
    for call in calls:
        assert refused(call, True) == refused(call, False)
    set_again(monkeypatch, "QUOTA_SCHEDULES", "2")
    for dry in (True, False):
        assert refused(client.put, "third", HELLO, dry_run=dry) == (409, "quota_exceeded")
    assert client.put("hello", HELLO, if_match=first.etag, dry_run=True).body["version"] == 1


def test_o01_a_dry_run_is_recorded_as_one_and_counts_as_no_write(
    running: Product, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    running.operator("you").put("hello", HELLO, dry_run=True)
    operators = Operators(running.stack.server.url, token=running.stack.operator)
    (recorded,) = operators.operations()
    assert (recorded["verb"], recorded["outcome"]) == ("put_schedule", "dry_run")
    set_again(monkeypatch, "QUOTA_WRITES", "0")
    assert client.put("hello", HELLO, dry_run=True).status == 200
    assert refused(client.put, "hello", HELLO) == (429, "too_many_writes")


@pytest.mark.parametrize("query", ["dryRun=maybe", "dryRun=true&x=1"])
def test_a_dry_run_that_is_unclear_is_refused(running: Product, query: str) -> None:
    assert running.call("PUT", f"/api/schedules/hello?{query}", HELLO)[0] == 400
    assert running.call("POST", "/api/schedules/hello/pause?dryRun=true")[0] == 400


def test_the_command_tries_a_put_and_says_what_a_cron_means(
    running: Product, capsys: pytest.CaptureFixture[str]
) -> None:
    at = ["--url", running.stack.server.url, "--token", running.stack.token, "--json"]
    words = ["--flow", "reminders", "--action", "remind", "--input", '{"text": "x"}']
    put = ["schedules", "put", "hello", "--cron", "@daily", *words, *at]
    assert main([*put, "--dry-run"]) == 0
    assert json.loads(capsys.readouterr().out)["dryRun"] is True
    assert list(running.client().list()) == []
    assert main(["upcoming", "30 2 * * 1", "--count", "1"]) == 0
    assert "At 02:30, on Monday." in capsys.readouterr().err


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("PUT", "/api/schedules/hello?dryrun=true"),
        ("PATCH", "/api/schedules/hello?dry_run=true"),
        ("POST", "/api/schedules?dry=true"),
        ("DELETE", "/api/schedules/hello?dryRun=true"),
        ("POST", "/api/schedules/hello/pause?dryRun=true"),
        ("POST", "/api/schedules/hello/run?dryRun=true"),
        ("POST", "/api/jobs?dryRun=true"),
        ("POST", "/api/jobs/batch?dryRun=true"),
        ("DELETE", "/api/users/you?dryRun=true"),
        ("PUT", "/api/pauses/all?dryRun=true"),
        ("DELETE", "/api/users/you/schedules/hello?dryRun=true"),
    ],
)
def test_m01_a_write_refuses_a_parameter_that_it_does_not_have(
    running: Product, client: Client, method: str, path: str
) -> None:
    before = client.put("hello", HELLO).body
    operators = path.startswith(("/api/users", "/api/pauses"))
    body = HELLO | {"key": "other"} if path.startswith("/api/schedules?") else HELLO
    token = running.stack.operator if operators else None
    status, answer = running.call(method, path, None if method == "DELETE" else body, token)
    assert (status, answer["error"]) == (400, "invalid_schedule")
    name = path.partition("?")[2].partition("=")[0]
    assert {"field": f"/{name}", "code": "unknown_field"}.items() <= answer["problems"][0].items()
    assert client.get("hello").body == before
    assert [one["key"] for one in client.list()] == ["hello"]
    assert list(client.jobs()) == []

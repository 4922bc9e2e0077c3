"""V-02: an agent can do what its user's API can, reads the same, and gets no further."""

import json
from collections.abc import Mapping
from typing import Any, Final

import pytest
from duetick import Context, Flow
from duetick.api.agents.calling import NEXT
from duetick.api.agents.tools import TOOLS
from duetick.cli.main import main
from duetick.client import Client, Fields
from duetick.core.flows import Flows
from duetick.domain.errors import StoreUnavailable, kind_of
from duetick.runtime import wiring

from tests.integration.api.agents import Agent, request
from tests.integration.api.asking import HELLO, HOUR
from tests.integration.api.town import OURS, Town
from tests.integration.local_product import Product, set_again, tick_seldom

NINE_TEXT: Final = "2026-12-01T09:00:00Z"
WORK: Final[Fields] = {name: value for name, value in HELLO.items() if name != "cron"}


@pytest.fixture
def agent(running: Product) -> Agent:
    return Agent(running)


@pytest.fixture
def client(running: Product) -> Client:
    """The same user, without an agent."""
    return running.client("ann")


def fields(told: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the fields and codes of a refusal."""
    return sorted((one["field"], one["code"]) for one in told["problems"])


def test_an_agent_takes_a_schedule_from_a_wish_to_its_end(anywhere: Product) -> None:
    agent = Agent(anywhere)
    offered = agent.do("list_actions")["flows"]
    (remind,) = (one for one in offered if one["flow"] == "reminders")
    assert remind["actions"][0]["action"] == "remind"
    seen = agent.do("preview_schedule", cron="0 9 * * *", timezone="UTC", limit=1)
    assert seen["upcoming"][0]["utc"] == NINE_TEXT
    made = agent.do("create_schedule", **HELLO, timezone="UTC", labels={"by": "agent"})
    assert made["nextFireAt"] == NINE_TEXT
    key = made["key"]
    assert agent.do("get_schedule", key=key) == made
    assert agent.do("list_schedules", label="by=agent")["schedules"] == [made]
    assert agent.do("change_schedule", key=key, input={"text": "later"})["input"] == {
        "text": "later"
    }
    assert agent.do("pause_schedule", key=key, note="a holiday")["state"] == "paused"
    assert agent.do("resume_schedule", key=key)["state"] == "active"
    anywhere.clock.now += HOUR
    anywhere.tick()
    (line,) = agent.do("schedule_history", key=key, state="succeeded")["history"]
    assert line["nominalFireTime"] == NINE_TEXT
    assert agent.do("explain_schedule", key=key, at=NINE_TEXT)["verdict"] == "fired"
    assert agent.do("delete_schedule", key=key) == {"deleted": key}
    assert agent.do("list_schedules", state="all")["schedules"] == []
    assert agent.do("schedule_history", key=key)["history"] == [line]


def test_an_agent_takes_a_job_from_a_wish_to_its_end(agent: Agent) -> None:
    job = agent.do("enqueue_job", **WORK, delay=3_600, key="once")
    again = agent.do("enqueue_job", **WORK, delay=3_600, key="once")
    assert again["id"] == job["id"]
    assert agent.do("get_job", id=job["id"]) == again
    assert [one["id"] for one in agent.do("list_jobs", state="pending")["jobs"]] == [job["id"]]
    assert agent.do("explain_job", id=job["id"])["verdict"] == "will_fire"
    assert agent.do("cancel_job", id=job["id"])["state"] == "cancelled"


@pytest.fixture
def failed(running: Product, client: Client, monkeypatch: pytest.MonkeyPatch) -> Client:
    """Put a schedule with a time that failed, one that was missed, and one ahead. Return its
    user.
    """
    flow = Flow("shop")

    @flow.action("pay")
    def pay(_: object, ctx: Context) -> None:
        raise RuntimeError(f"password=canary {ctx.principal.user_id}")

    monkeypatch.setattr(wiring, "flows", lambda: Flows({"shop": flow}))
    wiring.dispatcher.cache_clear()
    wiring.transport.cache_clear()
    client.put("k", {"cron": "*/30 * * * *", "flow": "shop", "action": "pay"})
    running.clock.now += HOUR // 2
    running.tick()
    running.clock.now += 3 * HOUR
    running.tick()
    client.enqueue({"flow": "shop", "action": "pay"})
    running.tick()
    return client


AT: Final = ("", NINE_TEXT, "2026-12-01T10:30:00Z", "2026-12-02T00:00:00Z")


@pytest.mark.parametrize(
    ("tool", "given", "path"),
    [
        ("list_actions", {}, "/api/flows"),
        ("get_schedule", {"key": "k"}, "/api/schedules/k"),
        ("list_schedules", {"limit": 7, "text": "pay"}, "/api/schedules?limit=7&text=pay"),
        ("schedule_history", {"key": "k", "limit": 3}, "/api/schedules/k/history?limit=3"),
        (
            "schedule_history",
            {"key": "k", "state": "dead", "from": NINE_TEXT},
            f"/api/schedules/k/history?limit=20&state=dead&from={NINE_TEXT}",
        ),
        ("explain_schedule", {"key": "k"}, "/api/schedules/k/explain"),
        *(
            (
                "explain_schedule",
                {"key": "k", "at": at},
                f"/api/schedules/k/explain?at={at}",
            )
            for at in AT[1:]
        ),
        ("list_jobs", {}, "/api/jobs?limit=20"),
    ],
)
def test_v02_an_agent_is_told_of_an_occurrence_as_the_api_tells_of_it(
    agent: Agent, failed: Client, tool: str, given: Fields, path: str
) -> None:
    del failed
    told = agent.call(tool, **given)
    token = agent.running.stack.token_of("ann")
    status, wanted = agent.running.call("GET", path, token=token)
    assert (status, told["isError"]) == (200, False)
    assert told["structuredContent"] == wanted
    assert [json.loads(one["text"]) for one in told["content"]] == [wanted]
    assert "canary" not in json.dumps(told)


@pytest.mark.parametrize("at", AT)
def test_v02_the_command_the_api_and_a_tool_say_the_same_of_one_occurrence(
    agent: Agent, failed: Client, capsys: pytest.CaptureFixture[str], at: str
) -> None:
    def command(*words: str) -> object:
        stack = agent.running.stack
        place = ("--url", stack.server.url, "--token", stack.token_of("ann"), "--json")
        assert main(["schedules", *words, *place]) == 0
        found: object = json.loads(capsys.readouterr().out)
        return found

    about = {"key": "k"} | ({"at": at} if at else {})
    explained = agent.do("explain_schedule", **about)
    assert command("explain", "k", *(("--at", at) if at else ())) == explained
    assert {**failed.explain("k", at=at or None)} == explained
    lines = agent.do("schedule_history", key="k")["history"]
    assert command("history", "k") == lines
    assert [*failed.history("k")] == lines


def test_v02_an_agent_is_told_of_a_job_as_the_api_tells_of_it(agent: Agent, failed: Client) -> None:
    (job,) = failed.jobs()
    assert agent.do("get_job", id=job["id"]) == failed.job(job["id"])
    assert agent.do("explain_job", id=job["id"]) == failed.explain_job(job["id"])


def test_a_schedule_that_the_api_warns_of_is_warned_of(
    agent: Agent, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The API warns in a header, which no agent sees."""
    tick_seldom(agent.running, monkeypatch)
    tight = HELLO | {"cron": "* * * * *"}
    wanted = client.put("k", tight).warning
    assert wanted
    made, warned = agent.call("create_schedule", **tight, key="k2")["content"]
    assert (json.loads(made["text"])["key"], warned["text"]) == ("k2", f"The schedule {wanted}.")
    seen = agent.do("preview_schedule", cron="* * * * *", timezone="Europe/Berlin")
    assert seen == client.preview("* * * * *", timezone="Europe/Berlin")


def test_everything_that_is_wrong_is_told_at_once_as_the_api_tells_it(
    agent: Agent, client: Client
) -> None:
    wrong = {**HELLO, "cron": "0 99 * * *", "timezone": "Europe/Berlim", "input": {"txt": 1}}
    told = agent.refused("create_schedule", **wrong)
    status, wanted = agent.running.call(
        "POST", "/api/schedules", wrong, token=agent.running.stack.token_of("ann")
    )
    assert status == 400
    assert {name: told[name] for name in wanted} == wanted
    assert fields(told) == [
        ("/cron", "invalid_cron"),
        ("/input/text", "missing"),
        ("/input/txt", "unknown_field"),
        ("/timezone", "unknown_timezone"),
    ]
    assert "list_actions" in told["next"]
    assert list(client.list(state="all")) == []


def test_an_argument_that_a_tool_does_not_have_is_refused_with_those_it_has(
    agent: Agent,
) -> None:
    for name, tool in TOOLS.items():
        told = agent.refused(name, key="k", id="k", user="bob", time_zone="x")
        problems = {one["field"]: one["message"] for one in told["problems"]}
        assert {"/user", "/time_zone"} <= set(problems), name
        for argument in tool.takes():
            assert argument in problems["/user"], name


WITH_A_NAME: Final = sorted(name for name, tool in TOOLS.items() if tool.names)


@pytest.mark.parametrize("key", [None, "", 5, ["k"], {"k": 1}, "a\x00b", "\ud800", "k" * 200, ".."])
def test_a_name_that_nothing_can_have_is_refused(agent: Agent, key: object) -> None:
    for name in WITH_A_NAME:
        told = agent.refused(name, **({} if key is None else {TOOLS[name].names: key}))
        assert told["error"] in ("invalid_schedule", "invalid_schedule_id", "job_not_found"), name
        assert told["next"], name


def test_a_name_that_is_refused_is_called_as_its_argument_is(agent: Agent) -> None:
    for name in WITH_A_NAME:
        argument = TOOLS[name].names
        told = agent.refused(name, **{argument: ".."})
        assert [field for field, _ in fields(told)] == [f"/{argument}"], name
        assert told["message"].startswith(f"{argument}: "), name


@pytest.mark.parametrize("key", ["a/b", "a b", "by-external", "50%", "~7E", "ä?x=1#y", "k;u=bob"])
def test_a_name_reaches_the_schedule_that_has_it(agent: Agent, client: Client, key: str) -> None:
    if key == "by-external":
        assert agent.refused("create_schedule", **HELLO, key=key)["problems"][0]["code"] == "taken"
        return
    agent.do("create_schedule", **HELLO, key=key)
    assert agent.do("get_schedule", key=key) == client.get(key).body
    agent.do("delete_schedule", key=key)
    assert list(client.list(state="all")) == []


def test_what_is_not_for_users_is_not_for_their_agents(agent: Agent, client: Client) -> None:
    private: Fields = {"flow": "digests", "action": "clean_up", "input": None}
    for tool, more in (("create_schedule", {"cron": "@daily"}), ("enqueue_job", {})):
        told = agent.refused(tool, **{**private, **more})
        assert fields(told) == [("/action", "not_yours")]
    put = client.put("k", HELLO).body
    assert fields(agent.refused("change_schedule", key="k", **private))[0][0] == "/action"
    assert client.get("k").body == put
    seen = json.dumps([agent.ask("tools/list").body, agent.do("list_actions")])
    assert "send_digest" in seen
    assert "clean_up" not in seen


@pytest.mark.parametrize("field", ["externalId", "principal", "user", "version", "runs"])
def test_an_agent_writes_no_field_that_is_an_operators(agent: Agent, field: str) -> None:
    told = agent.refused("create_schedule", **HELLO, **{field: "x"})
    assert fields(told) == [(f"/{field}", "unknown_field")]


def test_a_full_quota_refuses_an_agent(
    agent: Agent, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_again(monkeypatch, "QUOTA_SCHEDULES", "1")
    agent.do("create_schedule", **HELLO, key="first")
    told = agent.refused("create_schedule", **HELLO, key="second")
    assert (told["error"], told["value"]) == ("quota_exceeded", 1)
    assert "Tell the user" in told["next"]
    assert [one["key"] for one in client.list()] == ["first"]


def test_the_writes_of_an_agent_count_with_its_users(
    agent: Agent, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_again(monkeypatch, "QUOTA_WRITES", "2")
    client.put("k", HELLO)
    agent.do("pause_schedule", key="k")
    told = agent.refused("resume_schedule", key="k")
    assert told["error"] == "too_many_writes"
    assert 0 < told["retryAfter"] <= 60
    assert "retryAfter" in told["next"]
    assert agent.do("get_schedule", key="k")["state"] == "paused"
    assert agent.do("create_schedule", **HELLO, dryRun=True)["dryRun"]


def test_a_wish_that_is_repeated_is_fulfilled_once(agent: Agent, client: Client) -> None:
    wish = {**HELLO, "idempotencyKey": "wish-1"}
    made = agent.do("create_schedule", **wish)
    assert agent.do("create_schedule", **wish) == made
    other = agent.refused("create_schedule", **{**wish, "cron": "0 8 * * *"})
    assert other["error"] == "idempotency_key_reused"
    for wrong in ("", "x" * 300, "a\nb", "\ud800"):
        told = agent.refused("create_schedule", **{**HELLO, "idempotencyKey": wrong})
        assert fields(told) == [("/idempotencyKey", "invalid_header")]
    assert [one["key"] for one in client.list()] == [made["key"]]


def test_a_dry_run_stores_nothing(agent: Agent, client: Client) -> None:
    assert agent.do("create_schedule", **HELLO, key="k", dryRun=True)["key"] == "k"
    assert list(client.list(state="all")) == []
    put = client.put("k", HELLO).body
    assert agent.do("change_schedule", key="k", cron="@daily", dryRun=True)["cron"] == "@daily"
    assert client.get("k").body == put
    told = agent.refused("create_schedule", **HELLO, dryRun="perhaps")
    assert fields(told) == [("/dryRun", "wrong_type")]


def test_a_key_that_is_taken_is_changed_by_another_tool(agent: Agent, client: Client) -> None:
    put = client.put("k", HELLO).body
    told = agent.refused("create_schedule", **HELLO, key="k")
    assert (told["error"], "change_schedule" in told["next"]) == ("schedule_exists", True)
    assert client.get("k").body == put


def test_a_page_goes_on_after_its_cursor(agent: Agent, client: Client) -> None:
    for number in range(3):
        client.put(f"k{number}", HELLO)
    first = agent.do("list_schedules", limit=2)
    rest = agent.do("list_schedules", limit=2, cursor=first["cursor"])
    found = [one["key"] for page in (first, rest) for one in page["schedules"]]
    assert (found, rest["cursor"]) == (["k0", "k1", "k2"], None)
    assert agent.refused("list_schedules", cursor="nonsense")["error"] == "invalid_cursor"
    for limit in (0, 101, "x", 1.5, [1], True):
        assert agent.refused("list_schedules", limit=limit)["error"] == "invalid_schedule"


WRONG_KINDS: Final[tuple[tuple[str, str, str, tuple[object, ...]], ...]] = (
    ("list_schedules", "limit", "a whole number", (True, 1.5, [1], {"a": 1})),
    ("list_jobs", "limit", "a whole number", (False, 20.5)),
    ("preview_schedule", "limit", "a whole number", (True, 1.5, [1], {"a": 1}, "x")),
    ("schedule_history", "from", "text", (5, True, [NINE_TEXT])),
    ("list_schedules", "text", "text", (5, {"a": 1}, ["pay"])),
    ("list_schedules", "cursor", "text", (0, [])),
    ("create_schedule", "dryRun", "true or false", (1, [True], {})),
    ("create_schedule", "idempotencyKey", "text", (5, True)),
    ("create_schedule", "timezone", "text", (5, False)),
    ("enqueue_job", "delay", "a number", (True, [5], {})),
    ("pause_schedule", "note", "text", (5, {})),
)


@pytest.mark.parametrize(("tool", "name", "wanted", "values"), WRONG_KINDS)
def test_an_argument_of_another_kind_is_refused_with_the_kind_that_came(
    agent: Agent, tool: str, name: str, wanted: str, values: tuple[object, ...]
) -> None:
    needed = {**HELLO, "key": "k"}
    rest = {each: needed[each] for each in TOOLS[tool].takes() if each in needed}
    for value in values:
        told = agent.refused(tool, **{**rest, name: value})
        said = [one["message"] for one in told["problems"] if one["field"] == f"/{name}"]
        assert said == [f"expected {wanted}, got {kind_of(value)}."], value


def test_the_headers_of_a_message_are_no_headers_of_its_call(agent: Agent, client: Client) -> None:
    client.put("k", HELLO)
    headers = {"If-Match": '"nonsense"', "Idempotency-Key": "x" * 999, "Duetick-Why": "%ff"}
    params = {"name": "pause_schedule", "arguments": {"key": "k"}}
    told = agent.send(request("tools/call", params), headers).body
    assert told["result"]["structuredContent"]["state"] == "paused"


@pytest.mark.parametrize(
    ("tool", "given"),
    [
        ("create_schedule", {**HELLO, "input": {"text": "x" * 70_000}}),
        ("create_schedule", {**HELLO, "labels": {"a": 5}}),
        ("create_schedule", {**HELLO, "labels": {"\ud800": "\udfff"}}),
        ("create_schedule", {**HELLO, "cron": "* " * 2_000}),
        ("create_schedule", {**HELLO, "cron": {"mon": {"time": ["09:00"]}}}),
        ("create_schedule", {**HELLO, "flow": ["reminders"], "action": None}),
        ("create_schedule", {**HELLO, "policies": {"retry": {"attempts": 10**40}}}),
        ("preview_schedule", {"cron": 5, "limit": -1, "after": "soon"}),
        ("explain_schedule", {"key": "k", "at": "yesterday"}),
        ("schedule_history", {"key": "k", "state": "lost", "from": {}}),
        ("enqueue_job", {**WORK, "at": "soon", "delay": "x"}),
        ("enqueue_job", {**WORK, "delay": 1e308}),
        ("pause_schedule", {"key": "k", "until": "2020-01-01T00:00:00Z", "note": 5}),
        ("change_schedule", {"key": "k", "input": 5, "policies": "none"}),
    ],
)
def test_the_worst_arguments_are_refused_with_the_next_step(
    agent: Agent, client: Client, tool: str, given: Fields
) -> None:
    client.put("k", HELLO)
    before = client.get("k").body
    told = agent.refused(tool, **given)
    assert told["message"]
    assert told["next"]
    assert client.get("k").body == before
    assert [one["key"] for one in client.list(state="all")] == ["k"]
    assert list(client.jobs()) == []


@pytest.mark.parametrize("depth", [90, 900, 9_000, 90_000])
def test_an_input_that_is_nested_too_deeply_is_refused(agent: Agent, depth: int) -> None:
    call = request("tools/call", {"name": "create_schedule", "arguments": {**HELLO, "input": 0}})
    text = json.dumps(call).replace('"input": 0', f'"input": {"[" * depth}{"]" * depth}')
    reply = agent.send(text)
    assert reply.status in (200, 400)
    if reply.status == 200:
        assert reply.body["result"]["isError"]
        assert reply.body["result"]["structuredContent"]["error"] == "invalid_schedule"
    else:
        assert reply.error == -32700


def test_a_store_that_is_down_is_no_mistake_of_the_agent(
    agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise StoreUnavailable("postgresql://u:canary@h/d")

    monkeypatch.setattr(agent.running.store.schedules, "list", fail)
    told = agent.refused("list_schedules")
    assert (told["error"], "no mistake" in told["next"]) == ("store_unavailable", True)
    assert "canary" not in json.dumps(told)


def test_what_is_anothers_is_answered_like_what_never_was(town: Town) -> None:
    agent = Agent(town.product, OURS)
    for name in WITH_A_NAME:
        argument = TOOLS[name].names
        theirs, never = town.names("/jobs/{key}" if argument == "id" else "/schedules/{key}")
        told = [agent.call(name, **{argument: one}) for one in (theirs, never)]
        assert str(told[0]).replace(theirs, "*") == str(told[1]).replace(never, "*"), name
        assert "canary" not in str(told), name


def test_a_list_has_nothing_of_another(town: Town) -> None:
    agent = Agent(town.product, OURS)
    assert agent.do("list_schedules", state="all") == {"schedules": [], "cursor": None}
    assert agent.do("list_jobs", state="all") == {"jobs": [], "cursor": None}


def test_each_error_has_a_next_step() -> None:
    from duetick.core.answers import _STATUS

    of_others = {
        *("unauthorized", "forbidden", "not_found", "method_not_allowed"),
        *("flow_not_found", "backfill_not_found", "occurrence_not_found", "backfill_exists"),
        *("already_failed", "in_progress", "still_unreadable", "not_tried", "schedule_paused"),
        *("resolver_failed", "dispatch_failed", "action_failed", "flow_unregistered"),
        "too_many_runs",
    }
    """The errors of dispatch, of operators, and of routes that no tool calls."""
    assert set(NEXT) == set(_STATUS) - of_others

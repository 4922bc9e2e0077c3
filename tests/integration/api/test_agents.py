"""The Model Context Protocol as its versions have it, with right messages and wrong ones."""

import base64
import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from duetick.api.agents.endpoint import MOST_OF_A_BATCH
from duetick.api.agents.tools import TOOLS

from tests.integration.api.agents import META, NEWEST, PATH, SAYING, Agent, Reply, request
from tests.integration.api.asking import HELLO
from tests.integration.local_product import NINE, Clock, Product, product, set_again
from tests.lab.agents import Calls, official_agent

VERSION = "MCP-Protocol-Version"
PING = request("ping")
PAGE = "https://app.example.com"
SHAKING = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")


@pytest.fixture(scope="module")
def agent(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Agent]:
    """For tests that change nothing."""
    address = f"sqlite:///{tmp_path_factory.mktemp('agents')}/api.db"
    with pytest.MonkeyPatch.context() as patch, product(address, Clock(NINE), patch) as made:
        yield Agent(made)


@pytest.fixture
def alone(running: Product) -> Agent:
    """For a test that changes something."""
    return Agent(running)


def shake(agent: Agent, version: object) -> Reply:
    params = {"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "a"}}
    return agent.send(request("initialize", params))


@pytest.mark.parametrize("version", SHAKING)
def test_a_connection_has_the_version_that_its_client_asked_for(agent: Agent, version: str) -> None:
    result = shake(agent, version).body["result"]
    assert result["protocolVersion"] == version
    assert result["capabilities"] == {"tools": {}}
    assert result["serverInfo"]["name"] == "duetick"
    assert "list_actions" in result["instructions"]


def test_the_query_of_the_endpoint_is_no_part_of_a_tools_call(agent: Agent) -> None:
    params = {"name": "list_schedules", "arguments": {"limit": 1}}
    asked = request("tools/call", params)
    status, answer = agent.running.call("POST", f"{PATH}?limit=2&limit=3", asked)
    assert (status, answer["result"]["isError"]) == (200, False)


@pytest.mark.parametrize("version", ["1999-01-01", SAYING, "", "newest"])
def test_a_client_that_asks_for_another_version_is_offered_the_newest(
    agent: Agent, version: str
) -> None:
    assert shake(agent, version).body["result"]["protocolVersion"] == NEWEST


def test_a_version_that_is_no_text_is_refused(agent: Agent) -> None:
    reply = shake(agent, 5)
    assert (reply.status, reply.error) == (200, -32602)


def test_a_ping_is_answered_and_repeats_the_id(agent: Agent) -> None:
    for asked in (0, 7, "a", "é😀", "\ud800", 2**70):
        reply = agent.send(request("ping", asked=asked))
        assert reply.status == 200
        assert reply.headers["content-type"] == "application/json"
        assert reply.body == {"jsonrpc": "2.0", "id": asked, "result": {}}


@pytest.mark.parametrize(
    "message",
    [
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}},
        {"jsonrpc": "2.0", "method": "tools/call", "params": {"name": "delete_schedule"}},
        {"jsonrpc": "2.0", "id": 1, "result": {}},
        {"jsonrpc": "2.0", "id": 1, "error": {"code": 1, "message": "x"}},
    ],
)
def test_what_awaits_no_answer_is_accepted_without_one(agent: Agent, message: object) -> None:
    reply = agent.send(message)
    assert (reply.status, reply.text) == (202, "")


def test_a_method_that_is_not_there_is_refused_by_its_name(agent: Agent) -> None:
    for method in ("resources/list", "prompts/list", "", "tools/call\n", "x" * 5_000):
        reply = agent.ask(method)
        assert (reply.status, reply.error) == (200, -32601)
        assert len(reply.text) < 300


@pytest.mark.parametrize(
    "body",
    [
        *("", "{", "[", "nonsense", '{"jsonrpc": "2.0", "id": 1, "method": "ping"', "NaN"),
        *(
            '{"jsonrpc": "2.0", "jsonrpc": "2.0", "id": 1, "method": "ping"}',
            "\ufeff{}".encode(),
            "[" * 9_000,
        ),
        b"\xff\xfe",
    ],
)
def test_what_is_no_json_is_refused_without_an_id(agent: Agent, body: object) -> None:
    reply = agent.send(body)
    assert (reply.status, reply.error, reply.body["id"]) == (400, -32700, None)


@pytest.mark.parametrize(
    "message",
    [
        5,
        "ping",
        None,
        {},
        {"id": 1, "method": "ping"},
        PING | {"jsonrpc": "1.0"},
        PING | {"method": 5},
        PING | {"id": None},
        PING | {"id": True},
        PING | {"id": 1.5},
        PING | {"id": [1]},
        {"jsonrpc": "2.0", "id": 1},
    ],
)
def test_what_is_no_message_is_refused(agent: Agent, message: object) -> None:
    reply = agent.send(json.dumps(message))
    assert (reply.status, reply.error) == (400, -32600)


@pytest.mark.parametrize("params", [[], "x", 5, None])
def test_params_are_an_object(agent: Agent, params: object) -> None:
    reply = agent.send(PING | {"params": params})
    assert (reply.status, reply.error, reply.body["id"]) == (200, -32602, 1)


def test_a_list_of_messages_is_answered_where_its_version_has_lists(agent: Agent) -> None:
    told = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    several = [request("ping", asked="a"), told, {"id": 5}, request("none", asked="b")]
    for headers in ({}, {VERSION: "2025-03-26"}, {VERSION: "2024-11-05"}):
        reply = agent.send(several, headers)
        assert reply.status == 200
        assert [one["id"] for one in reply.several] == ["a", 5, "b"]
        assert ["result" in one for one in reply.several] == [True, False, False]
    assert agent.send([told, told]).status == 202


@pytest.mark.parametrize(
    ("several", "headers"),
    [
        ([PING], {VERSION: "2025-06-18"}),
        ([PING], {VERSION: "2025-11-25"}),
        ([PING], {VERSION: SAYING}),
        ([], {}),
        ([PING] * (MOST_OF_A_BATCH + 1), {}),
        ([request("initialize", {"protocolVersion": "2025-03-26"})], {}),
    ],
)
def test_a_list_is_refused_where_it_may_not_be(
    agent: Agent, several: object, headers: dict[str, str]
) -> None:
    reply = agent.send(several, headers)
    assert (reply.status, reply.error) == (400, -32600)


def test_a_list_whose_answers_are_too_large_is_not_done_to_its_end(
    alone: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Lambda could not return the answers. The calls that were not done are named."""
    monkeypatch.setattr("duetick.api.agents.endpoint.LARGEST_REPLY", 100)
    put = {"cron": "@daily", "flow": "reminders", "action": "remind", "input": {"text": "x"}}
    calls = [
        request("tools/call", {"name": "create_schedule", "arguments": put | {"key": key}}, key)
        for key in ("first", "second")
    ]
    first, second = alone.send(calls).several
    assert first["result"]["structuredContent"]["key"] == "first"
    assert (second["id"], second["error"]["code"]) == ("second", -32000)
    assert [one["key"] for one in alone.do("list_schedules")["schedules"]] == ["first"]


@pytest.mark.parametrize("method", ["GET", "DELETE", "PUT", "PATCH"])
def test_a_message_is_a_post(agent: Agent, method: str) -> None:
    reply = agent.send(None, method=method)
    assert (reply.status, reply.headers["allow"]) == (405, "POST")
    assert agent.send(None, method=method, token="x.y.z").status == 401


def test_an_agent_needs_a_users_token(agent: Agent) -> None:
    for token in ("", "x.y.z", agent.running.stack.operator, agent.running.stack.secret):
        assert agent.send(PING, token=token).status == 401


def test_a_page_may_call_if_its_origin_is_the_allowed_one(
    alone: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A name that leads to the loopback interface gives a foreign page no way in."""
    for origin in ("https://evil.example", "null", PAGE):
        assert alone.send(PING, {"Origin": origin}).status == 403
    set_again(monkeypatch, "ALLOWED_ORIGIN", PAGE)
    assert alone.send(PING, {"Origin": PAGE}).status == 200
    assert alone.send(PING, {"Origin": f"{PAGE}.evil.example"}).status == 403


def test_a_message_of_a_version_that_nobody_speaks_learns_the_known_ones(agent: Agent) -> None:
    reply = agent.ask("tools/list", version="2031-01-01")
    assert (reply.status, reply.error) == (400, -32022)
    assert reply.body["error"]["data"] == {
        "supported": [*SHAKING, SAYING],
        "requested": "2031-01-01",
    }


def test_a_message_that_is_too_large_is_refused_before_it_is_read(agent: Agent) -> None:
    reply = agent.send(PING | {"params": {"x": "y" * 300_000}})
    assert (reply.status, reply.error) == (413, -32600)


def test_the_tools_are_one_page(agent: Agent) -> None:
    tools = agent.ask("tools/list").body["result"]["tools"]
    assert [one["name"] for one in tools] == list(TOOLS)
    reply = agent.ask("tools/list", {"cursor": "more"})
    assert (reply.status, reply.error) == (200, -32602)


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"name": None},
        {"name": 5},
        {"name": "drop_everything"},
        {"name": "LIST_SCHEDULES"},
        {"name": "list_schedules", "arguments": []},
        {"name": "list_schedules", "arguments": "x"},
    ],
)
def test_a_call_that_names_no_tool_is_refused(agent: Agent, params: object) -> None:
    reply = agent.ask("tools/call", params)
    assert (reply.status, reply.error) == (200, -32602)
    assert "result" not in reply.body


def test_agents_are_off_unless_the_deployment_turns_them_on(
    alone: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is answered like a path that never was."""
    for setting in ("", "false", "1", "True"):
        set_again(monkeypatch, "AGENTS", setting)
        for method in ("POST", "GET", "DELETE"):
            reply = alone.send(PING if method == "POST" else None, method=method)
            assert (reply.status, reply.body["error"]) == (404, "not_found")


def test_a_request_that_says_its_version_needs_no_connection(agent: Agent) -> None:
    found = agent.say("server/discover").body["result"]
    assert set(found["supportedVersions"]) == {SAYING, *SHAKING}
    assert (found["resultType"], found["capabilities"]) == ("complete", {"tools": {}})
    assert found["_meta"][f"{META}serverInfo"]["name"] == "duetick"
    listed = agent.say("tools/list").body["result"]
    assert (listed["resultType"], listed["cacheScope"]) == ("complete", "private")
    called = agent.say("tools/call", {"name": "list_schedules", "arguments": {}}).body["result"]
    assert called["structuredContent"] == {"schedules": [], "cursor": None}
    encoded = f"=?base64?{base64.b64encode(b'list_schedules').decode()}?="
    params: dict[str, Any] = {"name": "list_schedules"}
    assert agent.say("tools/call", params, {"Mcp-Name": encoded}).status == 200


@pytest.mark.parametrize(
    "change",
    [
        {VERSION: NEWEST},
        {"Mcp-Method": "tools/list"},
        {"Mcp-Method": ""},
        {"Mcp-Name": "delete_schedule"},
        {"Mcp-Name": "=?base64?!?="},
        {"Mcp-Name": "=?base64?/w==?="},
    ],
)
def test_a_request_whose_headers_say_something_else_is_refused(
    agent: Agent, change: dict[str, str]
) -> None:
    """A machine on the way reads the headers, and would let another call through."""
    reply = agent.say("tools/call", {"name": "list_schedules"}, change)
    if VERSION in change:  # then it is a message of the first generation, with more in it
        assert reply.status == 200
    else:
        assert (reply.status, reply.error) == (400, -32020)


@pytest.mark.parametrize("lacking", ["protocolVersion", "clientCapabilities"])
def test_a_request_that_does_not_say_what_it_speaks_is_refused(agent: Agent, lacking: str) -> None:
    meta: dict[str, Any] = {f"{META}protocolVersion": SAYING, f"{META}clientCapabilities": {}}
    del meta[f"{META}{lacking}"]
    reply = agent.say("tools/list", {"_meta": meta})
    assert (reply.status, reply.error) == (400, -32602)
    assert lacking in reply.body["error"]["message"]


def unheard(agent: Agent) -> Reply:
    meta: dict[str, Any] = {
        f"{META}protocolVersion": "2031-01-01",
        f"{META}clientCapabilities": {},
    }
    return agent.say("tools/list", {"_meta": meta}, {VERSION: "2031-01-01"})


def unheaded(agent: Agent) -> Reply:
    meta: dict[str, Any] = {f"{META}protocolVersion": SAYING, f"{META}clientCapabilities": {}}
    return agent.send(request("tools/list", {"_meta": meta}))


@pytest.mark.parametrize(
    ("wrong", "status", "code"),
    [
        (unheard, 400, -32022),
        (unheaded, 400, -32020),
        (lambda agent: agent.say("ping"), 404, -32601),
        (lambda agent: agent.say("initialize"), 404, -32601),
        (lambda agent: agent.say("tools/call", {"name": "none"}), 400, -32602),
        (lambda agent: agent.send({"jsonrpc": "2.0", "id": 1, "result": {}}, {VERSION: SAYING}),
         400, -32600),
    ],
    ids=["version", "no headers", "ping", "initialize", "tool", "answer"],
)  # fmt: skip
def test_a_wrong_request_of_the_second_generation_has_its_status(
    agent: Agent, wrong: Callable[[Agent], Reply], status: int, code: int
) -> None:
    reply = wrong(agent)
    assert (reply.status, reply.error) == (status, code)


def test_a_note_of_the_second_generation_is_accepted(agent: Agent) -> None:
    reply = agent.send({"jsonrpc": "2.0", "method": "notifications/x"}, {VERSION: SAYING})
    assert (reply.status, reply.text) == (202, "")


def test_an_unexpected_error_is_told_of_its_call_alone(
    alone: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("password=canary")

    monkeypatch.setattr(alone.running.store.schedules, "list", fail)
    calls = [
        request("tools/call", {"name": name}, name) for name in ("list_schedules", "list_jobs")
    ]
    broken, whole = alone.send(calls).several
    assert broken["result"]["isError"]
    told = broken["result"]["structuredContent"]
    assert told["error"] == "internal"
    assert "before you try again" in told["next"]
    assert "canary" not in json.dumps(broken)
    assert not whole["result"]["isError"]


HELLO_KEY = {**HELLO, "key": "sdk"}
WRONG = {**HELLO, "key": "sdk", "cron": "0 99 * * *"}


@pytest.mark.slow
def test_the_official_sdk_lists_and_calls_the_tools_in_each_of_its_modes(alone: Agent) -> None:
    calls: Calls = [
        ("create_schedule", HELLO_KEY),
        ("create_schedule", WRONG),
        ("explain_schedule", {"key": "sdk", "at": "2026-12-02T09:00:00Z"}),
        ("delete_schedule", {"key": "sdk"}),
        ("no_such_tool", {}),
    ]
    stack = alone.running.stack
    told = official_agent(f"{stack.server.url}{PATH}", stack.token_of("ann"), calls)
    assert [one["version"] for one in told.values()] == [NEWEST, SAYING, SAYING]
    for mode, one in told.items():
        assert [tool["name"] for tool in one["tools"]] == list(TOOLS), mode
        made, wrong, explained, deleted, unknown = one["results"]
        assert made["structuredContent"]["key"] == "sdk", mode
        assert not made["isError"]
        assert wrong["isError"]
        assert [each["field"] for each in wrong["structuredContent"]["problems"]] == ["/cron"]
        assert explained["structuredContent"]["verdict"] == "will_fire"
        assert deleted["structuredContent"] == {"deleted": "sdk"}
        assert unknown["code"] == -32602
    assert "list_actions" in told["legacy"]["instructions"]

"""G-05: a day map as JSON, everywhere that a cron is taken; a form learns the day that is wrong."""

import json

import pytest
from duetick import Context, Flow
from duetick.cli.main import main
from duetick.client import ApiError
from duetick.domain.errors import Refusal
from duetick.domain.schedule import Json
from duetick.testing import Stage

from tests.integration.api.asking import HELLO
from tests.integration.local_product import Product

DAYS: Json = {"monday": "09:00", "tue": None, "thu": {"time": "17:30"}}
TEXT = "days(mon 09:00, thu 17:30)"
WRONG: Json = {"mon": "9", "moonday": "09:00", "thu": {"time": "25:00"}, "fri": "10:00"}
FIELDS = ["/cron/mon", "/cron/moonday", "/cron/thu"]


def fields_of(problem: ApiError) -> list[str]:
    """Return the fields that a refusal names."""
    return [one["field"] for one in problem.problems]


def test_g05_the_api_takes_a_day_map(running: Product) -> None:
    client = running.client()
    assert client.create(HELLO | {"cron": DAYS}, key="posted").body["cron"] == TEXT
    assert client.put("put", HELLO | {"cron": DAYS}).body["cron"] == TEXT
    client.put("patched", HELLO)
    assert client.change("patched", {"cron": DAYS}).body["cron"] == TEXT


def test_g05_two_targets_at_one_minute_are_one_occurrence(running: Product) -> None:
    both: Json = {"x": {"tue": "09:00"}, "threads": {"tuesday": {"time": "09:00"}, "wed": "09:00"}}
    made = running.client().put("hello", HELLO | {"cron": both}).body
    assert made["cron"] == "days(x: tue 09:00; threads: tue 09:00, wed 09:00)"
    running.clock.now += 1_800_000
    assert running.tick()["delivered"] == 1


def test_g05_a_refusal_names_each_day(running: Product) -> None:
    client = running.client()
    client.put("hello", HELLO)
    asked = (
        ("PUT", "/hello", HELLO | {"cron": WRONG}),
        ("POST", "", HELLO | {"cron": WRONG}),
        ("PATCH", "/hello", {"cron": WRONG}),
    )
    for method, path, body in asked:
        status, answer = running.call(method, f"/api/schedules{path}", body)
        assert (status, [one["field"] for one in answer["problems"]]) == (400, FIELDS)
    with pytest.raises(ApiError, match="enables no day") as problem:
        client.put("hello", HELLO | {"cron": {"mon": None}})
    assert fields_of(problem.value) == ["/cron"]
    with pytest.raises(ApiError) as problem:
        client.put("hello", HELLO | {"cron": WRONG, "labels": 5})
    assert fields_of(problem.value)[:1] == ["/labels"]


@pytest.mark.parametrize("cron", [5, ["mon"], True, None])
def test_g05_what_is_neither_text_nor_a_map_is_refused(running: Product, cron: Json) -> None:
    with pytest.raises(ApiError) as problem:
        running.client().put("hello", HELLO | {"cron": cron})
    assert fields_of(problem.value) == ["/cron"]


def test_g05_the_command_takes_a_day_map(
    running: Product, capsys: pytest.CaptureFixture[str]
) -> None:
    at = ["--url", running.stack.server.url, "--token", running.stack.token]
    words = ["--flow", "reminders", "--action", "remind", "--input", json.dumps(HELLO["input"])]
    put = ["schedules", "put", "hello", *words, *at, "--json", "--cron"]
    assert main([*put, json.dumps(DAYS)]) == 0
    assert json.loads(capsys.readouterr().out)["cron"] == TEXT
    assert main([*put, '{"mon": }']) == 1
    assert "--cron is not JSON" in capsys.readouterr().err
    assert main(["upcoming", json.dumps(DAYS), "--count", "1", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)) == 1


def test_g05_an_agent_and_a_flow_take_a_day_map() -> None:
    posts = Flow("posts")

    @posts.action("post")
    def post(_input: None, ctx: Context) -> None: ...

    posts.schedule("weekly", cron={"monday": "09:00"}, action="post")
    assert posts.static["weekly"].cron == "days(mon 09:00)"
    with pytest.raises(Refusal, match="moonday"):
        posts.schedule("other", cron={"moonday": "09:00"}, action="post")
    with Stage(posts) as stage:
        mine = stage.schedules(flow="posts")
        made = mine.create("mine", cron={"mon": "09:00", "thursday": "17:30"}, action="post")
        assert made.cron == TEXT
        same = mine.create("mine", cron={"mon": "09:00", "thu": "17:30"}, action="post")
        assert same == made
        with pytest.raises(Refusal) as problem:
            mine.replace("mine", cron={"mon": "9", "thu": "x"}, action="post")
        assert [flaw.path for flaw in problem.value.flaws] == [("cron", "mon"), ("cron", "thu")]

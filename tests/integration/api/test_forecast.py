"""A forecast over the API and by the command: its users, its schedules, and windows with too
much.
"""

import json
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeAlias

import pytest
from duetick.api import forecast as operation
from duetick.cli.main import main
from duetick.client import ApiError, Client, Fields
from duetick.core.audit import audit
from duetick.domain.workers import Worker
from duetick.operators import Operators
from duetick.stores.sql import alike

from tests.integration.api.asking import HELLO, MINUTE
from tests.integration.local_product import NINE, Product

DAILY = HELLO | {"cron": "0 12 * * *"}
NOON = 210
"""The number of the minute of noon, counted from half past eight."""
HOUR = 60 * MINUTE


@pytest.fixture
def office(running: Product) -> Operators:
    """The operators' view."""
    return Operators(running.stack.server.url, token=running.stack.operator)


def due(found: Mapping[str, Any], name: str = "due") -> dict[int, int]:
    """Return the minutes in which anything is due, with the numbers."""
    return {minute: number for minute, number in enumerate(found[name]) if number}


def fill(running: Product, users: int) -> None:
    for number in range(users):
        running.operator(f"u{number:03}").put("daily", DAILY)


def problems(refused: pytest.ExceptionInfo[ApiError]) -> set[str]:
    return {one["field"] for one in refused.value.problems}


def test_a_user_sees_what_is_due_of_the_own_schedules_alone(
    running: Product, client: Client, office: Operators
) -> None:
    client.put("mine", HELLO | {"cron": "*/30 10 * * *"})
    running.client("bob").put("theirs", DAILY)
    mine = client.forecast()
    assert due(mine) == {90: 1, 120: 1}
    assert (mine["schedules"], mine["sums"]["due"], mine["cursor"]) == (1, 2, None)
    assert mine["bounds"] == []
    assert (mine["at"], mine["from"]) == ("2026-12-01T08:30:00Z", "2026-12-01T08:30:00Z")
    assert mine["to"] == "2026-12-02T08:30:00Z"
    everything = office.forecast()
    assert due(everything) == {90: 1, 120: 1, NOON: 1}
    assert everything["fullest"] == {"at": "2026-12-01T10:00:00Z", "due": 1}
    assert due(running.operator("bob").forecast()) == {NOON: 1}


def test_it_writes_nothing_and_counts_as_no_write(running: Product, client: Client) -> None:
    client.put("mine", DAILY)
    before = running.store.shelf.events([]), running.operator("you").export()
    for _ in range(130):
        client.call("POST", "/api/forecast", {})
    assert (running.store.shelf.events([]), running.operator("you").export()) == before


def test_what_waits_and_jobs_are_in_it_beside_the_fires(running: Product, client: Client) -> None:
    work = {name: HELLO[name] for name in ("flow", "action", "input")}
    client.enqueue({**work, "delay": 600})
    client.put("spread", DAILY | {"cron": "31 8 * * *", "policies": {"spread": 3_600}})
    client.put("daily", DAILY)
    running.clock.now += MINUTE
    running.tick()
    found = client.forecast()
    assert found["sums"] == {"due": 3, "fires": 1, "waiting": 1, "jobs": 1, "added": 0}
    assert found["due"][9] >= 1


def test_a_flow_and_an_action_narrow_it(client: Client, office: Operators) -> None:
    client.put("one", DAILY)
    assert due(office.forecast({"flow": "reminders"})) == {NOON: 1}
    assert due(office.forecast({"flow": "reminders", "action": "remind"})) == {NOON: 1}
    assert due(office.forecast({"flow": "reminders", "action": "other"})) == {}
    assert due(client.forecast({"flow": "other"})) == {}
    with pytest.raises(ApiError) as refused:
        office.forecast({"action": "remind"})
    assert problems(refused) == {"/action"}


def test_it_says_what_a_schedule_that_is_not_saved_would_add(client: Client) -> None:
    found = client.forecast({"schedule": {"cron": "0 12 * * *", "timezone": "Europe/Berlin"}})
    assert due(found, "added") == {NOON - 60: 1}
    assert due(found) == {}
    many: Fields = {"cron": "0 12 * * *", "policies": {"spread": 600}, "copies": 1_000}
    found = client.forecast({"schedule": many})
    assert due(found, "added") == {NOON + n: 100 for n in range(10)}
    assert found["sums"]["added"] == 1_000


def test_a_change_of_one_that_is_there_counts_against_what_it_has(client: Client) -> None:
    client.put("mine", DAILY)
    found = client.forecast({"schedule": {"key": "mine", "cron": "0 13 * * *"}})
    assert due(found, "added") == {NOON: -1, NOON + 60: 1}
    found = client.forecast({"schedule": {"key": "mine", "timezone": "Europe/Berlin"}})
    assert due(found, "added") == {NOON: -1, NOON - 60: 1}
    client.pause("mine")
    assert due(client.forecast({"schedule": {"key": "mine", "cron": "@hourly"}}), "added") == {}


def test_a_key_is_a_users(office: Operators, client: Client) -> None:
    client.put("mine", DAILY)
    with pytest.raises(ApiError, match=r"/api/users/\{user\}") as refused:
        office.forecast({"schedule": {"key": "mine"}})
    assert problems(refused) == {"/schedule"}
    with pytest.raises(ApiError) as refused:
        client.forecast({"schedule": {"key": "mine", "copies": 5}})
    assert problems(refused) == {"/schedule/copies"}
    with pytest.raises(ApiError, match="names no schedule of this user") as refused:
        client.forecast({"schedule": {"key": "mnie", "policies": {"spread": 60}}})
    assert problems(refused) == {"/schedule/key"}
    with pytest.raises(ApiError) as refused:
        client.forecast({"schedule": {"key": "..", "cron": "@daily"}})
    assert problems(refused) == {"/schedule/key"}


def test_more_than_is_allowed_is_over_and_the_spread_that_is_told_mends_it(
    running: Product, office: Operators
) -> None:
    fill(running, 60)
    (given, stack) = office.forecast({"most": 10})["bounds"]
    assert (given["kind"], given["most"], given["per"], given["source"]) == (
        *("given", 10, "minute", "given"),
    )
    assert given["over"] == [
        {"at": "2026-12-01T12:00:00Z", "due": 60, "most": 10, "clearedAt": "2026-12-01T12:06:00Z"}
    ]
    assert (stack["kind"], stack["most"], stack["source"]) == ("stack", None, "unknown")
    assert given["spread"]
    for number in range(60):
        policies: Fields = {"policies": {"spread": given["spread"]}}
        running.operator(f"u{number:03}").change("daily", policies)
    (given, _) = office.forecast({"most": 10})["bounds"]
    assert (given["overCount"], given["spread"]) == (0, None)


def test_the_spread_of_what_is_added_is_told_beside_what_is_there(
    running: Product, client: Client
) -> None:
    fill(running, 3)
    copies: dict[str, Any] = {"cron": "0 12 * * *", "copies": 1_000}
    (given,) = client.forecast({"schedule": copies, "most": 50})["bounds"]
    assert "of the schedules that are added" not in given["spreadSaid"]
    spread = given["spread"]
    copies["policies"] = {"spread": spread}
    (given,) = client.forecast({"schedule": copies, "most": 50})["bounds"]
    assert given["overCount"] == 0


def test_a_spread_that_is_too_short_is_told_the_one_that_fits(client: Client) -> None:
    copies: dict[str, Any] = {"cron": "0 12 * * *", "copies": 1_000}
    (without,) = client.forecast({"schedule": copies, "most": 50})["bounds"]
    copies["policies"] = {"spread": 300}
    (given,) = client.forecast({"schedule": copies, "most": 50})["bounds"]
    assert (given["overCount"], given["over"][0]["due"]) == (5, 200)
    assert (given["spread"], given["spreadSaid"]) == (without["spread"], without["spreadSaid"])


def test_each_limit_that_lies_within_is_a_bound(running: Product, office: Operators) -> None:
    fill(running, 30)
    office.limit("flow:reminders", rate=20)
    office.limit("action:reminders/remind", parallel=2)
    office.limit("user:u001", rate=1, per="hour")
    found = {one["scope"]: one for one in office.forecast()["bounds"] if one["kind"] == "limit"}
    assert found.keys() == {"flow:reminders", "action:reminders/remind", "user:u001"}
    assert found["flow:reminders"]["over"][0]["due"] == 30
    assert found["user:u001"]["over"] == []
    assert (
        found["action:reminders/remind"]["most"],
        "lasts" in found["action:reminders/remind"]["said"],
    ) == (None, True)
    lasts = {one["scope"]: one for one in office.forecast({"lasts": 30})["bounds"]}
    assert (
        lasts["action:reminders/remind"]["most"],
        lasts["action:reminders/remind"]["overCount"],
    ) == (4, 1)
    of_user = running.operator("u001").forecast()["bounds"]
    assert [one["scope"] for one in of_user] == ["user:u001"]
    of_flow = office.forecast({"flow": "reminders"})["bounds"]
    assert {one["scope"] for one in of_flow} == {"flow:reminders", "action:reminders/remind"}


@pytest.mark.parametrize(
    ("seconds", "most", "per"),
    [(30, 2, "minute"), (60, 1, "minute"), (120, 30, "hour"), (86_400, 1, "day")],
)
def test_runs_longer_than_a_minute_are_so_many_an_hour_or_a_day_and_never_none(
    running: Product, office: Operators, seconds: int, most: int, per: str
) -> None:
    fill(running, 1)
    office.limit("flow:reminders", parallel=1)
    (bound,) = (one for one in office.forecast({"lasts": seconds})["bounds"] if one["most"])
    assert (bound["most"], bound["per"], bound["over"]) == (most, per, [])
    article = "an" if per == "hour" else "a"
    assert f"{most} {article} {per} if a run lasts {seconds} s" in bound["said"]


def test_a_run_that_lasts_next_to_nothing_is_no_error(office: Operators) -> None:
    office.limit("flow:reminders", parallel=500)
    (bound,) = (one for one in office.forecast({"lasts": 1e-320})["bounds"] if one["most"])
    assert bound["per"] == "minute"


def test_a_user_is_told_of_no_limit_and_not_what_the_stack_can_do(
    client: Client, office: Operators
) -> None:
    client.put("mine", DAILY)
    office.limit("user:you", rate=1)
    assert client.forecast()["bounds"] == []


def test_what_the_stack_delivers_is_known_from_its_ticks(
    running: Product, office: Operators
) -> None:
    fill(running, 30)
    start = NINE - 2 * HOUR
    busy = Worker("t", "tick", start, start + MINUTE, start + 60_000, counts={"delivered": 70})
    running.store.shelf.report(busy)
    (stack,) = office.forecast()["bounds"]
    assert (stack["most"], stack["source"]) == (70, "measured")
    assert "at least 70 a minute" in stack["said"]
    full = Worker(
        "u", "tick", start, start + MINUTE, start + 60_000, counts={"delivered": 64, "left": 9}
    )
    running.store.shelf.report(full)
    (stack,) = office.forecast({"schedule": {"cron": "0 12 * * *", "copies": 40}})["bounds"]
    assert (stack["most"], stack["over"][0]["due"]) == (64, 70)
    assert "it was full" in stack["said"]


def test_operators_look_back_at_what_ticks_delivered(
    running: Product, client: Client, office: Operators
) -> None:
    client.put("often", HELLO | {"cron": "* * * * *"})
    for _ in range(3):
        running.clock.now += MINUTE
        running.tick()
    found = office.forecast({"from": "2026-12-01T08:30:00Z", "to": "2026-12-01T08:40:00Z"})
    assert found["delivered"] == [0, 1, 1, 1, 0, 0, 0, 0, 0, 0]
    assert found["due"] == [0, 0, 0, 0, 1, 1, 1, 1, 1, 1]
    assert office.forecast()["delivered"] is None
    with pytest.raises(ApiError, match="know no user and no flow") as refused:
        client.forecast({"from": "2026-12-01T08:30:00Z"})
    assert refused.value.code == "invalid_query"


@pytest.mark.parametrize(
    ("asked", "field"),
    [
        ({"from": "x"}, "/from"),
        ({"to": "2026-12-01T08:00:00Z"}, "/to"),
        ({"to": "2026-12-10T08:30:00Z"}, "/to"),
        ({"from": "2026-11-20T08:30:00Z"}, "/from"),
        ({"from": "9999-12-31T23:00:00Z"}, "/to"),
        ({"most": 0}, "/most"),
        ({"per": "year"}, "/per"),
        ({"lasts": 0}, "/lasts"),
        ({"schedule": {"cron": "75 * * * *"}}, "/schedule/cron"),
        ({"schedule": {"cron": "0 9 * * *", "timezone": "Mars/Base"}}, "/schedule/timezone"),
        (
            {"schedule": {"cron": "0 9 * * *", "policies": {"spread": -1}}},
            "/schedule/policies/spread",
        ),
        ({"schedule": {"copies": 2}}, "/schedule/cron"),
        ({"schedule": {"cron": "0 9 * * *", "copies": 0}}, "/schedule/copies"),
        ({"schedule": {"cron": {"mon": "25:00"}}}, "/schedule/cron/mon"),
        ({"nothing": 1}, "/nothing"),
    ],
)
def test_what_is_wrong_is_named_with_its_field(
    office: Operators, asked: Mapping[str, Any], field: str
) -> None:
    with pytest.raises(ApiError) as refused:
        office.forecast(asked)
    assert refused.value.status == 400
    assert problems(refused) == {field}


@pytest.fixture
def in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """A call reads three rows."""
    monkeypatch.setattr(alike, "AT_ONCE", 3)
    monkeypatch.setattr(operation, "SECONDS", 0.0)


def test_a_forecast_that_takes_long_goes_on_where_it_was(
    running: Product, office: Operators, request: pytest.FixtureRequest
) -> None:
    fill(running, 10)
    office.limit("flow:reminders", rate=5)
    running.operator("u001").put("rate", HELLO | {"cron": "rate(1 hour)"})
    asked: Fields = {"most": 4, "schedule": {"cron": "0 12 * * *", "copies": 3}}
    whole = office.forecast(asked)
    request.getfixturevalue("in_parts")
    parts = [*office.client.forecast_parts(asked)]
    assert [one["schedules"] for one in parts] == [3, 6, 9, 11]
    assert [one["cursor"] is None for one in parts] == [False] * 3 + [True]
    assert [one["bounds"] == [] for one in parts] == [True] * 3 + [False]
    assert parts[-1] == whole


def test_a_cursor_of_another_question_or_of_nobody_is_refused(
    running: Product, client: Client, office: Operators, in_parts: None
) -> None:
    fill(running, 10)
    first = next(office.client.forecast_parts())
    for asked in (
        {"cursor": first["cursor"], "flow": "reminders"},
        {"cursor": "x"},
        {"cursor": ""},
    ):
        with pytest.raises(ApiError) as refused:
            office.forecast(asked)
        assert (refused.value.status, refused.value.code) == (400, "invalid_cursor")
    with pytest.raises(ApiError) as refused:
        client.forecast({"cursor": first["cursor"]})
    assert refused.value.code == "invalid_cursor"
    office.limit("flow:reminders", rate=5)
    with pytest.raises(ApiError, match="limits have changed"):
        office.forecast({"cursor": first["cursor"]})


def test_on_dynamodb_the_cost_is_told_first_and_nothing_is_read_without_a_yes(
    anywhere: Product,
) -> None:
    office = Operators(anywhere.stack.server.url, token=anywhere.stack.operator)
    anywhere.client().put("mine", DAILY)
    found = office.forecast()
    if anywhere.store.shelf.walk_units(0) is None:
        assert found["cost"] is None
        assert due(found) == {NOON: 1}
        return
    cost = {"agreed": False, "readUnits": None, "schedules": None, "countedAt": None}
    assert (found["cost"], found["schedules"], found["cursor"]) == (cost, 0, None)
    audit(anywhere.store, anywhere.clock.now)
    counted = {"readUnits": 2, "schedules": 1, "countedAt": "2026-12-01T08:30:00Z"}
    assert office.forecast()["cost"] == {"agreed": False} | counted
    agreed = office.forecast({"yes": True})
    assert agreed["cost"] == {"agreed": True} | counted
    assert due(agreed) == {NOON: 1}
    assert due(anywhere.client().forecast()) == {NOON: 1}
    assert due(anywhere.operator("you").forecast()) == {NOON: 1}


class Told(NamedTuple):
    """The output of the command."""

    code: int
    out: str
    err: str


Ask: TypeAlias = Callable[..., Told]


@pytest.fixture
def ask(
    running: Product, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Ask:
    """Run the command as it finds the stack."""
    monkeypatch.setenv("DUETICK_URL", running.stack.server.url)
    monkeypatch.setenv("DUETICK_TOKEN", running.stack.token)
    monkeypatch.setenv("DUETICK_OPERATOR", running.stack.operator)

    def run(*words: str) -> Told:
        capsys.readouterr()
        try:
            code = main(["forecast", *words])
        except SystemExit as ended:
            code = int(ended.code or 0)
        said = capsys.readouterr()
        return Told(code, said.out, said.err)

    return run


def test_the_command_draws_a_chart_that_fits_eighty_columns_and_has_plain_characters(
    running: Product, ask: Ask
) -> None:
    fill(running, 12)
    running.client().put("often", HELLO | {"cron": "*/10 * * * *"})
    told = ask("--most", "10/minute")
    lines = told.out.splitlines()
    assert told.code == 0
    assert told.out.isascii()
    assert max(map(len, lines)) <= 80
    (noon,) = [line.split() for line in lines if line.startswith("12-01 12:00")]
    (one,) = [line.split() for line in lines if line.startswith("12-01 13:00")]
    assert noon[:-1] == ["12-01", "12:00", "18", "13", "12:00"]
    assert noon[-1].strip("#") == "!"
    assert one[-1].strip("#") == ""
    assert len(noon[-1]) > 10 * len(one[-1])
    said = " ".join(told.out.split())
    assert "More is due in 1 minute: 13 at 2026-12-01T12:00:00Z" in said
    assert "no window of this span is over" in said


def test_the_command_tells_scripts_what_the_api_says(running: Product, ask: Ask) -> None:
    running.client().put("mine", DAILY)
    assert json.loads(ask("--mine", "--json").out) == running.client().forecast()
    added = ask("--user", "you", "--key", "mine", "--cron", "@hourly", "--json")
    assert json.loads(added.out)["sums"]["added"] == 23


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        ("--mine --user ann", 2, "Either --mine or --user"),
        ("--copies 5", 2, "needs --cron"),
        ("--most 60", 2, "expected such as 60/minute"),
        ("--from soon", 1, "expected a time like"),
        ("--action x", 1, "name the `flow`"),
        ("--flow remindres --from 2026-12-01T08:30:00Z", 0, "is it misspelled?"),
    ],
)
def test_the_command_says_what_is_wrong(ask: Ask, words: str, code: int, said: str) -> None:
    told = ask(*words.split())
    assert told.code == code
    assert said in told.err


def test_a_single_time_with_a_limit_of_runs_is_due_once(client: Client) -> None:
    once: Fields = {"cron": "at(2026-12-01T10:45:17)", "policies": {"maxRuns": 2}}
    client.put("once", {**DAILY, **once})
    assert client.forecast()["sums"]["due"] == 1

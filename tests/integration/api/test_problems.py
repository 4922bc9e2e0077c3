"""Refusals that a form can show: each problem beside its field, all of them at once."""

import logging
from datetime import datetime
from typing import Annotated, Literal

import pytest
from duetick import Context, Flow
from duetick.client import ApiError, Client, Fields
from duetick.core.flows import Flows
from duetick.domain.errors import MIGRATE, SchemaOutdated, StoreUnavailable
from duetick.domain.schedule import Json
from duetick.runtime import wiring
from pydantic import BaseModel, StringConstraints, field_validator

from tests.integration.api.asking import HELLO
from tests.integration.api.problems import PAST, PATH, PYTHONS, Told, put, told
from tests.integration.local_product import NINE, Product


def deep(levels: int) -> Json:
    """Return a list in a list, and so on."""
    value: list[Json] = []
    for _ in range(levels):
        value = [value]
    return value


WRONG: list[tuple[Fields, Told]] = [
    ({"cron": "75 * * * *"}, [("/cron", "invalid_cron")]),
    ({"cron": "0 0 30 2 *"}, [("/cron", "never_fires")]),
    ({"cron": None}, [("/cron", "wrong_type")]),
    ({"cron": 5}, [("/cron", "wrong_type")]),
    ({"cron": "at(2020-01-01T09:00:00)"}, [("/cron", "past")]),
    ({"cron": "rate(30 seconds)"}, [("/cron", "below_a_minute")]),
    ({"timezone": "Europe/Berln"}, [("/timezone", "unknown_timezone")]),
    ({"timezone": ""}, [("/timezone", "blank")]),
    ({"flow": "remnders"}, [("/flow", "unknown_flow")]),
    ({"flow": "two words"}, [("/flow", "invalid_name")]),
    ({"action": "remnd"}, [("/action", "unknown_action")]),
    ({"input": None}, [("/input", "wrong_type")]),
    ({"input": {"text": 5}}, [("/input/text", "wrong_type")]),
    ({"input": {}}, [("/input/text", "missing")]),
    ({"input": {"text": "a", "b~/c": 1}}, [("/input/b~0~1c", "unknown_field")]),
    ({"input": {"text": "x" * 66_000}}, [("/input", "too_large")]),
    ({"enabled": "yes"}, [("/enabled", "wrong_type")]),
    ({"input": {"text": deep(400)}}, [("/input", "not_json")]),
    ({"inptu": 1}, [("/inptu", "unknown_field")]),
    ({"labels": {"a": 1}}, [("/labels/a", "wrong_type")]),
    ({"labels": {"a": "x" * 5_000}}, [("/labels", "too_large")]),
    ({"externalId": "mine"}, [("/externalId", "not_yours")]),
    ({"policies": 5}, [("/policies", "wrong_type")]),
    ({"policies": {"grase": 1}}, [("/policies/grase", "unknown_field")]),
    ({"policies": {"retry": {"attempts": 0}}}, [("/policies/retry/attempts", "out_of_range")]),
    ({"policies": {"retry": {"attempts": "5"}}}, [("/policies/retry/attempts", "wrong_type")]),
    ({"policies": {"catchUp": -1}}, [("/policies/catchUp", "out_of_range")]),
    ({"policies": {"catchUp": "x"}}, [("/policies/catchUp", "wrong_type")]),
    ({"policies": {"longestLateness": "x"}}, [("/policies/longestLateness", "wrong_type")]),
    ({"policies": {"maxRuns": 5.5}}, [("/policies/maxRuns", "wrong_type")]),
    ({"policies": {"catch_up": 1}}, [("/policies/catch_up", "unknown_field")]),
    ({"policies": {"catch_up": "x"}}, [("/policies/catch_up", "unknown_field")]),
    ({"external_id": 5}, [("/external_id", "unknown_field")]),
    (
        {"policies": {"startsAt": 5, "endsAt": 3}},
        [("/policies/endsAt", "wrong_type"), ("/policies/startsAt", "wrong_type")],
    ),
    ({"externalId": "x" * 200}, [("/externalId", "too_long")]),
    ({"externalId": ""}, [("/externalId", "blank")]),
    ({"policies": {"overlap": "maybe"}}, [("/policies/overlap", "not_one_of")]),
    ({"policies": {"endsAt": "tomorrow"}}, [("/policies/endsAt", "invalid_time")]),
    ({"policies": {"endsAt": PAST}}, [("/policies/endsAt", "past")]),
    (
        {"policies": {"startsAt": "2026-12-02T09:00:00Z", "endsAt": PAST}},
        [("/policies/endsAt", "past")],
    ),
    ({"policies": {"endsAt": "2026-12-01T08:59:00Z"}}, [("/policies/endsAt", "no_time_left")]),
    (
        {"policies": {"startsAt": "2027-02-01T09:00:00Z", "endsAt": "2027-01-01T09:00:00Z"}},
        [("/policies/endsAt", "out_of_range")],
    ),
    (
        {"policies": {"delivery": "effectively_once"}},
        [("/policies/delivery", "not_transactional")],
    ),
]


@pytest.mark.parametrize(("change", "problems"), WRONG)
def test_a_problem_is_told_with_its_field_and_its_kind(
    running: Product, change: Fields, problems: Told
) -> None:
    answer = put(running, change)
    assert (answer["error"], told(answer)) == ("invalid_schedule", problems)


def test_what_is_missing_is_told_by_its_name(running: Product) -> None:
    answer = running.call("PUT", PATH, {})[1]
    assert told(answer) == [("/action", "missing"), ("/cron", "missing"), ("/flow", "missing")]


@pytest.mark.parametrize(
    ("body", "problems"),
    [
        ("cron=5", [("", "not_json")]),
        ('{"a": NaN}', [("", "not_json")]),
        ("[1]", [("", "wrong_type")]),
        ("null", [("", "wrong_type")]),
        ('{"cron": "@daily", "cron": "@hourly"}', [("/cron", "duplicate_key")]),
        ('{"input": {"a": {"b": 1, "b": 2}}}', [("/input/a/b", "duplicate_key")]),
        ("[" * 100_000, [("", "not_json")]),
    ],
)
def test_a_body_that_cannot_be_read_is_refused(running: Product, body: str, problems: Told) -> None:
    status, answer = running.call("PUT", PATH, body)
    assert (status, answer["error"], told(answer)) == (400, "invalid_schedule", problems)
    assert not PYTHONS.findall(answer["message"])


@pytest.mark.parametrize("key", [" ", "%C2%A0", "a/%20", "%E2%80%8B", "%E3%85%A4"])
def test_a_key_that_nobody_can_see_is_refused(running: Product, key: str) -> None:
    path = f"/api/schedules/{key.replace('/', '%2F').replace(' ', '%20')}"
    status, answer = running.call("PUT", path, HELLO)
    assert (status, answer["error"]) == (400, "invalid_schedule_id")
    assert told(answer) == [("/key", "blank")]


def test_a_parameter_and_a_header_stand_there_by_their_names(running: Product) -> None:
    assert told(running.call("GET", "/api/schedules?limit=0&x=1")[1]) == [
        ("/limit", "out_of_range"),
        ("/x", "unknown_field"),
    ]
    with pytest.raises(ApiError) as refused:
        running.client().put("hello", HELLO, if_match="3")
    assert [each["field"] for each in refused.value.problems] == ["/If-Match"]


@pytest.mark.parametrize(
    ("method", "path", "field"),
    [
        ("GET", "/api/schedules?limit=1&state=all&limit=2", "/limit"),
        ("PUT", f"{PATH}?dryRun=true&dryRun=false", "/dryRun"),
        ("GET", "/api/schedules?label=a=b&label=a=b", "/label"),
        ("DELETE", f"{PATH}?x=&x=", "/x"),
    ],
)
def test_a_parameter_that_comes_twice_is_refused(
    running: Product, method: str, path: str, field: str
) -> None:
    running.client().put("hello", HELLO)
    body = {"input": "another"} if method == "PUT" else None
    status, answer = running.call(method, path, body)
    assert (status, answer["error"], told(answer)) == (
        400,
        "invalid_schedule",
        [(field, "duplicate_key")],
    )
    assert answer["message"] == f"{field[1:]}: comes twice in the query; leave one of them out."
    assert running.client().get("hello").body["version"] == 1


def test_an_old_schema_is_told_to_users_without_what_operators_do(
    running: Product,
    client: Client,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    def outdated(*_: object, **__: object) -> None:
        raise SchemaOutdated(f"No usable schema is there. {MIGRATE}")

    monkeypatch.setattr(running.store.schedules, "get", outdated)
    with caplog.at_level(logging.INFO), pytest.raises(ApiError) as refused:
        client.get("hello")
    assert (refused.value.status, refused.value.code) == (503, "schema_outdated")
    assert "migrate" not in str(refused.value)
    assert MIGRATE in caplog.text


def test_an_outside_caller_of_dispatch_is_told_the_problems(running: Product) -> None:
    running.client().put("hello", HELLO)
    running.clock.now = NINE
    path = "/api/flows/reminders/schedules/you~2Fhello/dispatch"
    body = {"nominalFireTime": "nine"}
    status, answer = running.call("POST", path, body, token=running.stack.secret)
    assert (status, answer["error"]) == (400, "invalid_schedule")
    assert told(answer) == [("/nominalFireTime", "invalid_time")]
    wrong = {**body, "idempotencyKey": 5, "idempotencyWindow": 10**9, "fence": "x", "origin": ""}
    status, answer = running.call("POST", path, wrong, token=running.stack.secret)
    assert told(answer) == [
        ("/fence", "wrong_type"),
        ("/idempotencyKey", "wrong_type"),
        ("/idempotencyWindow", "out_of_range"),
        ("/nominalFireTime", "invalid_time"),
        ("/origin", "blank"),
    ]


def test_a_store_that_is_away_has_no_problems(
    running: Product, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(*_: object, **__: object) -> None:
        raise StoreUnavailable("gone")

    monkeypatch.setattr(running.store.schedules, "get", away)
    with pytest.raises(ApiError) as refused:
        client.get("hello")
    assert (refused.value.code, refused.value.problems) == ("store_unavailable", ())


class Cat(BaseModel):
    """One of two."""

    kind: Literal["cat"]
    name: str


class Dog(BaseModel):
    """The other."""

    kind: Literal["dog"]
    bark: int


class Visit(BaseModel):
    """An input that pydantic reads."""

    who: Cat | Dog
    at: datetime
    times: int | bool = 1
    shown: tuple[int, str] = (1, "")
    room: Annotated[str, StringConstraints(pattern="^[a-z]+$")] = "hall"
    floor: float = 0.0

    @field_validator("room")
    @classmethod
    def known(cls, room: str) -> str:
        """Look a room up, with a slip of the author's."""
        return {"hall": "hall"}[room]


GOOD: Fields = {"who": {"kind": "cat", "name": "Tom"}, "at": "2026-12-24T09:00:00Z"}
VISITS: list[tuple[Fields, str, str]] = [
    ({"who": {"kind": "cow"}}, "/input/who", "wrong_type"),
    ({"at": "x"}, "/input/at", "wrong_type"),
    ({"times": "x"}, "/input/times", "wrong_type"),
    ({"shown": [1]}, "/input/shown/1", "missing"),
    ({"shown": [1, "a", 3]}, "/input/shown", "too_long"),
    ({"room": "R"}, "/input/room", "invalid"),
    ({"room": "cellar"}, "/input", "invalid"),
    ({"floor": 10**400}, "/input/floor", "out_of_range"),
]


@pytest.fixture
def visiting(running: Product, monkeypatch: pytest.MonkeyPatch) -> Product:
    """The product with an action that takes a model."""
    flow = Flow("visits")

    @flow.action("visit")
    def visit(_visit: Visit, _ctx: Context) -> None:
        """Do nothing."""

    monkeypatch.setattr(wiring, "flows", lambda: Flows({"visits": flow}))
    return running


@pytest.mark.parametrize(("change", "field", "code"), VISITS)
def test_an_input_that_a_model_refuses_is_told_at_its_field_in_plain_words(
    visiting: Product, change: Fields, field: str, code: str
) -> None:
    visit: Fields = {"flow": "visits", "action": "visit"}
    assert told(put(visiting, {**visit, "input": {**GOOD, **change}})) == [(field, code)]
    visiting.client().put("hello", {**HELLO, **visit, "input": GOOD})

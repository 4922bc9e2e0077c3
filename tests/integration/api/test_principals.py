"""D-11: an operator names the principal of a schedule; a user never does."""

import pytest
from duetick.api.views import ScheduleView
from duetick.client import ApiError, Fields
from duetick.domain.schedule import Json
from duetick.operators import Operators

from tests.integration.api.asking import HELLO, refused
from tests.integration.local_product import NINE, Product

SERVICE: Json = {"userId": "svc", "orgId": "acme", "attributes": {"plan": "pro"}}


def principal_of(shown: ScheduleView) -> object:
    """Return the principal as an operator reads it."""
    return shown["principal"]


def test_d11_an_operator_adds_a_schedule_that_runs_as_another(anywhere: Product) -> None:
    operator = anywhere.operator("you")
    made = operator.put("hello", HELLO | {"principal": SERVICE})
    assert principal_of(made.body) == SERVICE
    assert "principal" not in anywhere.client().get("hello").body
    anywhere.clock.now = NINE
    assert anywhere.tick()["delivered"] == 1
    record = anywhere.store.schedules.get("you", "hello")
    assert record
    assert record.runs_as.user_id == "svc"
    kept = operator.change("hello", {"labels": {"a": "b"}}).body
    assert principal_of(kept) == SERVICE
    assert principal_of(operator.put("hello", HELLO).body) == SERVICE
    assert principal_of(operator.change("hello", {"principal": None}).body) is None


def test_o01_a_named_principal_is_recorded(running: Product) -> None:
    operators = Operators(
        running.stack.server.url, token=running.stack.operator, why="the service sends it"
    )
    operators.of("you").put("hello", HELLO | {"principal": SERVICE})
    (recorded,) = operators.operations()
    assert (recorded["verb"], recorded["user"], recorded["target"], recorded["why"]) == (
        *("put_schedule", "you", "hello"),
        "the service sends it",
    )


@pytest.mark.parametrize("name", ["flow:digests", "flow:"])
def test_d11_no_operator_names_a_flow(running: Product, name: str) -> None:
    operator = running.operator("you")
    with pytest.raises(ApiError) as problem:
        operator.put("hello", HELLO | {"principal": {"userId": name}})
    assert [(one["field"], one["code"]) for one in problem.value.problems] == [
        ("/principal/userId", "not_yours")
    ]
    operator.put("hello", HELLO)
    assert refused(operator.change, "hello", {"principal": {"userId": name}})[0] == 400


def test_d11_a_user_names_nobody(running: Product) -> None:
    client = running.client()
    client.put("hello", HELLO)
    named: Fields = {"principal": {"userId": "ann"}}
    asked: list[tuple[str, str, Fields]] = [
        ("PUT", "/hello", HELLO | named),
        ("PATCH", "/hello", named),
        ("POST", "", HELLO | named),
    ]
    for method, path, body in asked:
        status, answer = running.call(method, f"/api/schedules{path}", body)
        told = [(one["field"], one["code"]) for one in answer["problems"]]
        assert (status, told) == (400, [("/principal", "not_yours")])
    running.operator("you").put("theirs", HELLO | {"principal": SERVICE})
    assert refused(client.change, "theirs", {"principal": None})[0] == 400
    assert client.change("theirs", {"cron": "@daily"}).status == 200
    assert refused(client.change, "theirs", {"input": {"text": "x"}})[0] == 400


@pytest.mark.parametrize(
    ("principal", "fields"),
    [
        (5, {"/principal"}),
        ({}, {"/principal/userId"}),
        (
            {"userId": "", "orgId": 5, "more": 1},
            {f"/principal/{n}" for n in ("userId", "orgId", "more")},
        ),
        ({"userId": "a", "attributes": {"plan": 5}}, {"/principal/attributes/plan"}),
    ],
)
def test_d11_a_principal_that_is_none_is_refused_with_the_field(
    running: Product, principal: Json, fields: set[str]
) -> None:
    with pytest.raises(ApiError) as problem:
        running.operator("you").put("hello", HELLO | {"principal": principal})
    assert {one["field"] for one in problem.value.problems} == fields


def test_j11_an_operator_reads_no_secret_of_a_principal(running: Product) -> None:
    secret: Json = {"userId": "svc", "attributes": {"apiKey": "sesame"}}
    shown = running.operator("you").put("hello", HELLO | {"principal": secret}).body
    assert "sesame" not in str(shown)
    record = running.store.schedules.get("you", "hello")
    assert record
    assert record.runs_as.attributes["apiKey"] == "sesame"

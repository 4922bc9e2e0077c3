"""The JSON Schema of an action's input allows what the action takes: no less, and no more."""

from dataclasses import dataclass, field
from typing import Literal

import pytest
from duetick import Context, Flow
from duetick.core.flows import Flows
from duetick.core.input_schemas import schema_of_input
from duetick.core.offers import catalogue
from duetick.domain.errors import InvalidSchedule
from duetick.domain.schedule import Json
from duetick.testing import Stage
from jsonschema_rs import Draft202012Validator
from pydantic import BaseModel


@dataclass(frozen=True)
class Bed:
    name: str
    litres: int = 3
    kind: Literal["rose", "herb"] | None = None


@dataclass(frozen=True)
class Garden:
    beds: list[Bed]
    notes: dict[str, str] = field(default_factory=dict)
    beside: "Garden | None" = None
    api_key: str = "canary"


class Order(BaseModel):
    item: str
    amount: int = 1
    access_key: str = "canary"


shop = Flow("shop")


@shop.action("plan")
def plan(garden: Garden, ctx: Context) -> None: ...


@shop.action("order", redact=("item",))
def order(wanted: Order, ctx: Context) -> None: ...


@shop.action("any")
def take_any(given: object, ctx: Context) -> None: ...


@shop.action("number", users=False)
def number(given: float, ctx: Context) -> None: ...


BED: Json = {"name": "roses"}
TRIED: list[Json] = [
    *(None, 7, 7.5, "x", [], {}, BED),
    {"beds": []},
    {"beds": [BED, {"name": "x", "litres": 2, "kind": "herb"}]},
    {"beds": [{"name": "x", "kind": "tree"}]},
    {"beds": [{"litres": 2}]},
    {"beds": [], "more": 1},
    {"beds": [], "notes": {"a": "b"}, "beside": {"beds": [BED]}},
    {"beds": [], "notes": {"a": 5}},
    {"beds": [], "beside": {"beds": [5]}},
    {"item": "x"},
    {"item": "x", "amount": "many"},
    {"amount": 2},
]


@pytest.mark.parametrize("name", ["plan", "order", "any", "number"])
def test_d09_a_schema_takes_what_the_action_takes(name: str) -> None:
    action = shop.actions[name]
    check = Draft202012Validator(schema_of_input(action))
    for given in TRIED:
        assert check.is_valid(given) == _takes(name, given), given


def _takes(name: str, given: Json) -> bool:
    try:
        shop.actions[name].read(given)
    except InvalidSchedule:
        return False
    return True


def test_j11_a_secret_field_has_no_default_in_a_schema() -> None:
    for name, field_ in (("plan", "api_key"), ("order", "access_key"), ("order", "item")):
        schema = schema_of_input(shop.actions[name])
        assert "canary" not in str(schema)
        assert f"'{field_}': {{'t" in str(schema)
        assert "'writeOnly': True" in str(schema)


def test_the_catalogue_has_for_users_what_users_may() -> None:
    flows = Flows({"shop": shop})
    (every,) = catalogue(flows, to_users=False)
    (own,) = catalogue(flows, to_users=True)
    for action in ("plan", "order", "any"):
        assert f"'action': '{action}'" in str(every)
        assert f"'action': '{action}'" in str(own)
    assert "'number', 'users'" in str(every)
    assert "'number', 'users'" not in str(own)


def test_an_agents_tool_has_the_schema_of_the_input() -> None:
    with Stage(shop) as stage:
        schema = stage.schedules(flow="shop").schema("plan")
    check = Draft202012Validator(schema)
    tool: Json = {"key": "k", "cron": "@daily", "input": {"beds": [BED]}}
    assert check.is_valid(tool)
    assert not check.is_valid({"key": "k", "cron": "@daily", "input": {"beds": [5]}})
    assert check.is_valid({"key": "k", "cron": {"mon": "09:00"}, "input": {"beds": []}})

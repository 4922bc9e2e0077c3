"""The schemas with which a model writes its calls: each call that they allow can be read."""

import json
import re
from dataclasses import dataclass, field, make_dataclass
from importlib.metadata import version
from typing import Any

import pytest
from duetick import Context, Flow
from duetick.api.agents.endpoint import RELEASE
from duetick.api.agents.schemas import LARGEST_INPUTS, MEANINGS, MOST_ACTIONS
from duetick.api.agents.tools import TOOLS, list_tools
from duetick.core.definitions import read_policies
from duetick.core.flows import Flows
from duetick.core.offers import POLICIES
from duetick.domain.errors import InvalidSchedule
from jsonschema_rs import Draft202012Validator


@dataclass(frozen=True, slots=True)
class Letter:
    """The input of one of two actions."""

    to: str
    copies: int = 1


@dataclass(frozen=True, slots=True)
class Part:
    """A part of the other input."""

    name: str
    api_key: str = "canary"


Letter2 = make_dataclass(  # the other action's type has the same name
    "Letter", [("parts", list[Part]), ("note", str | None, field(default=None))]
)


def of_shop() -> Flows:
    """Return two flows: one action is not for users, and two types of input have one name."""
    mail, shop = Flow("mail"), Flow("shop")

    @mail.action("send", policies={"spread": 60, "misfire": "skip"}, may_change=("spread",))
    def send(_given: Letter, _ctx: Context) -> None: ...

    def pack(_given: object, _ctx: Context) -> None: ...

    pack.__annotations__["_given"] = Letter2
    shop.action("pack", policies={"misfire": "all"})(pack)
    shop.action("clean_up", users=False)(lambda _given, _ctx: None)
    return Flows({"mail": mail, "shop": shop})


def of_many(count: int, fields: int = 1) -> Flows:
    """Return a deployment with `count` actions, whose inputs have `fields` fields."""
    flow = Flow("many")
    for number in range(count):
        taken = make_dataclass(f"Input{number}", [(f"field{at}", str) for at in range(fields)])

        def act(_given: object, _ctx: Context) -> None: ...

        act.__annotations__["_given"] = taken
        flow.action(f"act{number}")(act)
    return Flows({"many": flow})


def schemas(flows: Flows) -> dict[str, dict[str, Any]]:
    """Return the schema of each tool's arguments."""
    return {one["name"]: one["inputSchema"] for one in json.loads(json.dumps(list_tools(flows)))}


def test_an_agent_is_told_the_version_of_the_package() -> None:
    assert version("duetick") == RELEASE


def test_each_policy_has_a_meaning_for_a_model() -> None:
    assert set(MEANINGS) == set(POLICIES)
    assert all(text.endswith(".") for text in MEANINGS.values())


@pytest.mark.parametrize("flows", [of_shop(), of_many(3), Flows({})], ids=["two", "three", "none"])
def test_each_schema_is_an_object_without_unions_beside_it(flows: Flows) -> None:
    """Several makers of models take no other one."""
    for name, schema in schemas(flows).items():
        Draft202012Validator(schema)
        assert re.fullmatch("[a-z_]{1,40}", name)
        assert schema["type"] == "object", name
        assert not schema.keys() & {"anyOf", "oneOf", "allOf", "if", "$ref"}, name
        assert schema["additionalProperties"] is False, name
        assert set(schema["required"]) <= set(schema["properties"]), name


def test_each_argument_says_what_it_is() -> None:
    for flows in (of_shop(), of_many(MOST_ACTIONS + 1)):
        for name, schema in schemas(flows).items():
            assert set(schema["properties"]) == set(TOOLS[name].takes())
            for argument, one in schema["properties"].items():
                assert one.get("description", "").strip(), f"{name}.{argument}"
    for tool in TOOLS.values():
        assert tool.title
        assert tool.description.endswith((".", ")"))


def test_a_model_reads_which_actions_there_are_and_what_each_takes() -> None:
    schema = schemas(of_shop())["create_schedule"]
    assert schema["properties"]["flow"]["enum"] == ["mail", "shop"]
    assert schema["properties"]["action"]["enum"] == ["send", "pack"]
    assert "mail: send; shop: pack" in schema["properties"]["action"]["description"]
    titles = [one["title"] for one in schema["properties"]["input"]["anyOf"]]
    assert titles == ["mail.send", "shop.pack"]
    assert "clean_up" not in json.dumps(schema)
    assert "canary" not in json.dumps(schema)


def test_two_types_of_one_name_stay_apart() -> None:
    check = Draft202012Validator(schemas(of_shop())["create_schedule"])
    usual = {"cron": "@daily", "flow": "mail", "action": "send"}
    assert check.is_valid(usual | {"input": {"to": "ann", "copies": 2}})
    assert check.is_valid(usual | {"input": {"parts": [{"name": "x"}], "note": None}})
    for wrong in (
        {},
        {"to": 5},
        {"to": "ann", "parts": []},
        {"parts": [{"api_key": "x"}]},
        5,
        None,
    ):
        assert not check.is_valid(usual | {"input": wrong}), wrong


def test_a_schedule_may_choose_what_some_action_leaves_open() -> None:
    known = schemas(of_shop())
    policies = known["create_schedule"]["properties"]["policies"]["properties"]
    assert {"retry", "spread", "maxRuns"} <= set(policies)
    assert "misfire" not in policies
    jobs = known["enqueue_job"]["properties"]["policies"]["properties"]
    assert "retry" in jobs
    assert not jobs.keys() & {"overlap", "misfire", "spread", "startsAt"}
    assert set(policies) <= set(POLICIES)


def test_a_change_may_take_a_field_back_to_its_default() -> None:
    check = Draft202012Validator(schemas(of_shop())["change_schedule"])
    reset = {"key": "k", "input": None, "timezone": None, "policies": {"spread": None}}
    assert check.is_valid(reset | {"labels": {"team": None}})
    assert not check.is_valid({"key": "k", "policies": {"spread": "long"}})


@pytest.mark.parametrize("flows", [of_many(MOST_ACTIONS + 1), of_many(5, fields=200)])
def test_a_deployment_of_many_actions_leaves_their_schemas_to_a_tool(flows: Flows) -> None:
    for name, schema in schemas(flows).items():
        assert "$defs" not in schema, name
        assert (
            "list_actions"
            in schema["properties"].get("input", {"description": "list_actions"})["description"]
        )
    assert len(json.dumps(list_tools(flows))) < LARGEST_INPUTS * 2


POLICY: dict[str, list[Any]] = {
    "delivery": ["at_most_once", "at_least_once"],
    "retry": [{"attempts": 3}, {"backoff": "fixed", "first": 5}],
    "overlap": ["skip", "allow", "wait"],
    "misfire": ["latest", "all", "skip"],
    "gap": ["run", "skip"],
    "repeat": ["first", "both"],
    "afterCompletion": ["keep", "delete"],
    "startsAt": [None, "2026-12-01T09:00:00Z"],
    "endsAt": [None, "2026-12-01T09:00:00Z"],
    "onFailure": [None, "tell"],
}


@pytest.mark.parametrize("name", sorted(POLICIES))
def test_a_policy_that_the_schema_allows_is_one_that_can_be_read(name: str) -> None:
    """Schema and reader refuse the same values, at both ends of each bound."""
    schema: Any = POLICIES[name]
    check = Draft202012Validator(schema)
    ends = [
        schema[end] + step for end in ("minimum", "maximum") if end in schema for step in (-1, 0, 1)
    ]
    texts = [] if "string" in schema["type"] and "enum" not in schema else ["no such thing"]
    for value in [*POLICY.get(name, []), *ends, *texts, 1.5, []]:
        assert check.is_valid(value) == readable({name: value}), value


def readable(policies: dict[str, Any]) -> bool:
    try:
        read_policies(policies)
    except InvalidSchedule:
        return False
    return True

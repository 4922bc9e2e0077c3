"""The actions that a caller may schedule, as forms and agents see them."""

from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias

from duetick.core.action import Action
from duetick.core.flows import Flows
from duetick.core.wire import camel, policies_json
from duetick.domain.errors import InvalidSchedule
from duetick.domain.identity import LONGEST_ID
from duetick.domain.policies import BACKOFFS, BOUNDS, CHOICES, OPTIONAL, RETRY, Bounds, Choice
from duetick.domain.schedule import Json

Schema: TypeAlias = dict[str, Json]

TEXT: Final[Schema] = {"type": "string"}
CRON: Final[Schema] = {"type": ["string", "object"]}
INSTANT: Final[Schema] = {"type": ["string", "null"], "format": "date-time"}
TIMES: Final = frozenset({"starts_at", "ends_at"})


def offers(flows: Flows, *, to_users: bool) -> list[Json]:
    """Return every action with its defaults, and the names of the policies that a schedule may
    change.
    """
    return [_offer(name, action) for name, action in flows.list_offered(to_users=to_users)]


def catalogue(flows: Flows, *, to_users: bool) -> list[Json]:
    """Return every flow with the actions that a schedule may name, each with the JSON Schema of its
    input.

    A flow without an action that a user may name is left out.
    """
    from duetick.core.input_schemas import schema_of_input  # no dispatch needs it

    found: dict[str, list[Json]] = {}
    for flow, action in flows.list_offered(to_users=to_users):
        offer = {name: one for name, one in _offer(flow, action).items() if name != "flow"}
        more: Schema = {"background": action.background, "input": schema_of_input(action)}
        found.setdefault(flow, []).append(offer | more)
    return [{"flow": flow, "actions": actions} for flow, actions in found.items()]


def schema_of(flows: Flows, flow: str, action: str) -> Schema:
    """Return the JSON Schema of a schedule of that action, for a tool that an agent calls.

    The schema has the policies that a schedule may change, with their defaults.
    """
    offered = flows.list_offered(to_users=True)
    found = [each for one, each in offered if (one, each.name) == (flow, action)]
    if not found:
        known = ", ".join(f"{one}.{each.name}" for one, each in offered) or "none"
        said = f"{flow}.{action} is none that users may schedule; these are: {known}."
        raise InvalidSchedule("action", said, "unknown_action")
    from duetick.core.input_schemas import Definitions  # no dispatch needs it

    definitions = Definitions(found[0].withheld)
    properties: dict[str, Json] = {
        "key": TEXT | {"minLength": 1, "maxLength": LONGEST_ID},
        "cron": CRON,
        "timezone": {"type": ["string", "null"]},
        "input": definitions.of(found[0].takes.annotation),
        "labels": {"type": "object", "additionalProperties": TEXT},
        "policies": _policies(found[0], [one.name for name, one in offered if name == flow]),
    }
    defined: Schema = {"$defs": {**definitions.made}} if definitions.made else {}
    return _object(properties) | {"required": ["key", "cron"]} | defined


def changeable(flows: Flows) -> dict[str, Schema]:
    """Return the schema of each policy that a user's schedule of some action may change."""
    offered = flows.list_offered(to_users=True)
    names = {camel(name) for _, action in offered for name in action.declared.may_change}
    return {name: schema for name, schema in POLICIES.items() if name in names}


def _offer(flow: str, action: Action) -> Schema:
    declared = action.declared
    return {
        "flow": flow,
        "action": action.name,
        "users": action.users,
        "policies": policies_json(declared.policies),
        "mayChange": [camel(name) for name in declared.may_change],
    }


def _policies(action: Action, offered: Sequence[str]) -> Schema:
    """Return the schema of the policies that a schedule may change. `offered` are the actions of
    the flow: each of the others may be the failure hook.
    """
    usual, declared = policies_json(action.declared.policies), action.declared
    hooks: list[Json] = [*(name for name in offered if name != action.name), None]
    named: Schema = {"type": ["string", "null"], "enum": hooks}
    known = {**_KNOWN, "on_failure": named}
    return _object(
        {camel(name): known[name] | {"default": usual[camel(name)]} for name in declared.may_change}
    )


def _object(properties: Mapping[str, Json]) -> Schema:
    return {"type": "object", "properties": dict(properties), "additionalProperties": False}


def _choice(one: Choice) -> Schema:
    return TEXT | {"enum": [str(each) for each in one[1]]}


def _bounds(one: Bounds) -> Schema:
    name, low, high = one
    kind: Json = ["integer", "null"] if name in OPTIONAL else "integer"
    return {"type": kind, "minimum": low, "maximum": high}


_RETRY: Final = {name: _choice((name, known)) for name, known in BACKOFFS} | {
    one[0]: _bounds(one) for one in RETRY
}
_KNOWN: Final[Mapping[str, Schema]] = {
    **{one[0]: _choice(one) for one in CHOICES},
    **{one[0]: INSTANT if one[0] in TIMES else _bounds(one) for one in BOUNDS},
    "retry": _object(_RETRY),
    "on_failure": {"type": ["string", "null"]},
}
POLICIES: Final[Mapping[str, Schema]] = {camel(name): schema for name, schema in _KNOWN.items()}
"""The schema of each policy, by its name in JSON."""

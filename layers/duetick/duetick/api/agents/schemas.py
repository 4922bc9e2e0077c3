"""The JSON Schema of the schedules and jobs that agents write, with this deployment's actions."""

import json
from collections.abc import Iterable, Mapping
from typing import Final

from duetick.core.flows import Flows
from duetick.core.input_schemas import PLACE, schema_of_input
from duetick.core.offers import POLICIES, Schema, changeable
from duetick.core.wire import camel
from duetick.domain.jobs import OF_JOBS
from duetick.domain.schedule import Json

MOST_ACTIONS: Final = 20
LARGEST_INPUTS: Final = 24 * 1024
"""The actions, and the bytes of their inputs' schemas, beyond which tools do not have them: a model
reads the tools before anything else.
"""

MEANINGS: Final = {
    "delivery": "What follows a failed or lost attempt.",
    "retry": "When a failed attempt is tried again; durations are seconds.",
    "overlap": "The fate of an occurrence that comes due while another of its schedule runs.",
    "misfire": "Which of the times that were missed by more than `grace` still fire.",
    "grace": "Seconds late that still count as on time.",
    "catchUp": "How many missed times fire under misfire `all`.",
    "longestLateness": "Seconds after which a missed time fires no more.",
    "spread": "Seconds after the named time in which the schedule has its own fixed place.",
    "gap": "Whether a local time that a clock change skips fires right after the jump.",
    "repeat": "Whether a local time that a clock change repeats fires once or twice.",
    "priority": "The order among one user's own occurrences; the higher first.",
    "timeout": "Seconds that the action may run.",
    "startsAt": "The instant before which nothing fires, such as 2026-12-01T09:00:00Z.",
    "endsAt": "The instant after which nothing fires.",
    "maxRuns": "How often the schedule runs before it is done.",
    "afterCompletion": "Whether a schedule that is done is kept for a while, or deleted at once.",
    "pauseAfter": "How many failures in a row pause the schedule.",
    "onFailure": "The action of the same flow that is told of each failure for good.",
}
"""The meaning of each policy, for a model."""

CRON: Final[Schema] = {
    "description": "When it fires. Five fields (minute, hour, day of month, month, day of week), "
    "as in `0 9 * * MON-FRI`, `*/15 9-17 * * *`, `0 9 L * *` (last day of the month), "
    "`0 9 * * TUE#2` (second Tuesday), `0 9 * * FRIL` (last Friday); or `@daily`, `@weekly`, "
    "`@monthly`; or "
    "`rate(5 minutes)` for elapsed time; or `at(2026-12-01T09:00:00)` for one local time; or an "
    "object with a time for each day. There are no seconds.",
    "anyOf": [
        {"type": "string", "examples": ["0 9 * * MON-FRI"]},
        {"type": "object", "examples": [{"mon": "09:00", "thu": "17:30"}]},
    ],
}
TIMEZONE: Final[Schema] = {
    "type": "string",
    "description": "The IANA name of the time zone whose clocks the cron means, such as "
    "Europe/Berlin. Without it, UTC: ask the user rather than guess.",
}
LABELS: Final[Schema] = {
    "type": "object",
    "additionalProperties": {"type": "string"},
    "description": "Names and texts by which schedules are found again.",
}
TIMED: Final = ("spread", "gap", "repeat", "startsAt", "endsAt", "maxRuns")
"""The policies that name fire times."""


def text(description: str, **more: Json) -> Schema:
    """Return the schema of a text."""
    return {"type": "string", "description": description, **more}


def flow_and_action(flows: Flows) -> dict[str, Schema]:
    """Return the schemas of a flow's name and of an action's: the names that users may schedule."""
    offered = flows.list_offered(to_users=True)
    by_flow: dict[str, list[str]] = {}
    for flow, action in offered:
        by_flow.setdefault(flow, []).append(action.name)
    pairs = "; ".join(f"{flow}: {', '.join(names)}" for flow, names in by_flow.items())
    few = 0 < len(offered) <= MOST_ACTIONS
    names: list[Json] = [*dict.fromkeys(action.name for _, action in offered)]
    told = f"These are there, by flow: {pairs}." if few else "list_actions lists them."
    enums: dict[str, list[Json]] = {"flow": [*by_flow], "action": names}
    said = {"flow": "The flow of the action.", "action": f"The action that runs. {told}"}
    return {name: text(one, enum=enums[name]) if few else text(one) for name, one in said.items()}


def inputs(flows: Flows) -> tuple[Schema, Schema]:
    """Return the schema of the input of any action, and the definitions that it refers to.

    The schemas are left out if they are too many, or too large.
    """
    offered = flows.list_offered(to_users=True)
    known: list[Schema] = []
    defined: Schema = {}
    for number, (flow, action) in enumerate(offered[:MOST_ACTIONS]):
        schema, inner = _separate(schema_of_input(action), f"a{number}_")
        title = f"{flow}.{action.name}"
        known.append({"title": title, "description": f"The input of {title}.", **schema})
        defined |= inner
    told = "The input of the action. "
    size = len(json.dumps([known, defined]))
    if not known or len(offered) > MOST_ACTIONS or size > LARGEST_INPUTS:
        return {
            "description": f"{told}list_actions has the JSON Schema of each action's input."
        }, {}
    several: Schema = {"anyOf": [*known]}
    return {"description": f"{told}It fits the schema of that action."} | several, defined


def policies(flows: Flows, *, of_jobs: bool = False) -> Schema:
    """Return the schema of the policies that a schedule, or a job, of some action may choose."""
    known = changeable(flows)
    if of_jobs:
        known = {name: one for name, one in known.items() if name in map(camel, OF_JOBS)}
    return _policies(
        known,
        "Leave this out, unless the user asks for it: each action has its own. An action takes "
        "those of its `mayChange` alone, as list_actions has it.",
    )


def policies_of_times() -> Schema:
    """Return the schema of the policies that count in a preview."""
    return _policies(
        {name: POLICIES[name] for name in TIMED}, "The policies that change fire times."
    )


def or_null(schema: Schema) -> Schema:
    """Return the schema of a value, or of null in its place."""
    inner = {name: one for name, one in schema.items() if name != "description"}
    told = {name: one for name, one in schema.items() if name == "description"}
    return told | {"anyOf": [inner, {"type": "null"}]} if inner else schema


def each_or_null(policies: Schema) -> Schema:
    """Return the schema of policies. Each policy may be null."""
    properties = policies["properties"]
    known = properties.items() if isinstance(properties, dict) else ()
    nullable: Schema = {name: or_null(one) for name, one in known if isinstance(one, dict)}
    return policies | {"properties": nullable}


def _policies(known: Mapping[str, Schema], description: str) -> Schema:
    properties: Schema = {
        name: {"description": MEANINGS[name], **one} for name, one in known.items()
    }
    return {
        "type": "object",
        "description": description,
        "properties": properties,
        "additionalProperties": False,
    }


def tool_schema(
    properties: Mapping[str, Schema], required: Iterable[str], defined: Schema
) -> Schema:
    """Return the schema of a tool's arguments: an object, and no union beside it."""
    schema: Schema = {
        "type": "object",
        "properties": {**properties},
        "required": [*required],
        "additionalProperties": False,
    }
    return schema | ({"$defs": defined} if defined else {})


def _separate(schema: Schema, prefix: str) -> tuple[Schema, Schema]:
    """Return a schema and its definitions, each under a name that no other action's has."""
    renamed = _rename(schema, prefix)
    if not isinstance(renamed, dict):
        return {}, {}
    inner = renamed.pop("$defs", {})
    defined = (
        {f"{prefix}{name}": one for name, one in inner.items()} if isinstance(inner, dict) else {}
    )
    return renamed, defined


def _rename(part: Json, prefix: str) -> Json:
    """Return a part of a schema in which each reference has the new name."""
    if isinstance(part, list):
        return [_rename(one, prefix) for one in part]
    if not isinstance(part, dict):
        return part
    return {
        name: f"{PLACE}{prefix}{one.removeprefix(PLACE)}"
        if name == "$ref" and isinstance(one, str)
        else _rename(one, prefix)
        for name, one in part.items()
    }

"""The OpenAPI document of the API, made from its routes and models."""

import json
import re
from typing import Any, Final, TypeAlias, get_args

from pydantic import ConfigDict, TypeAdapter

from duetick.api import models, views
from duetick.api.calls import WHY
from duetick.api.routes import OWN, ROUTES, Route
from duetick.domain.codes import Code
from duetick.domain.verdicts import Verdict
from duetick.version import VERSION

Node: TypeAlias = dict[str, Any]

REFERENCE: Final = "#/components/schemas/{model}"
ERROR: Final = "ErrorView"
ALWAYS: Final = (400, 401, 403, 405, 500, 503)
NAMED: Final = {
    "Code": Code,
    "EndReason": views.EndReason,
    "ShownState": views.ShownState,
    "Verdict": Verdict,
}
"""Sets of texts that stand in the document once, by a name of their own."""

SERVERS: Final = (
    {
        "url": "https://{api}.execute-api.{region}.amazonaws.com/v1",
        "description": "A deployed stack: its outputs UsersApiUrl and ApiUrl.",
        "variables": {"api": {"default": "abc123"}, "region": {"default": "eu-central-1"}},
    },
    {"url": "http://127.0.0.1:8080", "description": "The local stack."},
)
MEANINGS: Final = {
    200: "As asked for.",
    201: "It was created.",
    202: "It was begun; the history tells what becomes of it.",
    204: "It is gone.",
    400: "The call is wrong; the message says what, and what is right.",
    401: "A user's token is missing, wrong or expired.",
    403: "The caller may not call this.",
    404: "It does not exist, or is another user's.",
    405: "The route has no such method; Allow says which it has.",
    409: "The key is taken, the schedule is paused, a quota is reached, or the occurrence is in "
    "another state.",
    412: "It was changed meanwhile: read it again.",
    413: "The body is too large.",
    429: "Too often: try again when Retry-After says so.",
    500: "Something unexpected happened; the log says more.",
    503: "Something behind the API does not answer; try again.",
}
_REFUSALS: Final = sorted({*ALWAYS, *(status for route in ROUTES for status in route.refusals)})
TEXT: Final[Node] = {"type": "string"}
NULL: Final[Node] = {"type": "null"}
SAID_OTHERWISE: Final = frozenset({"default", "description", "title"})
HEADERS: Final[dict[int, Node]] = {
    201: {"Location": {"schema": TEXT}},
    405: {"Allow": {"schema": TEXT}},
    429: {"Retry-After": {"schema": {"type": "integer"}}},
}


def document() -> Node:
    """Return the document. A route of users is in it twice: for users, and for operators."""
    paths: dict[str, Node] = {}
    for route in ROUTES:
        for base in route.bases:
            described = _operation(route, base)
            paths.setdefault(base + route.path, {})[route.method.lower()] = described
    return {
        "openapi": "3.1.0",
        "info": {"title": "Duetick", "version": VERSION, "description": _description()},
        "servers": [*SERVERS],
        "paths": paths,
        "components": {
            "schemas": _schemas(),
            "responses": {_name_refusal(status): _response(status, ERROR) for status in _REFUSALS},
            "securitySchemes": _security_schemes(),
        },
    }


def as_text() -> str:
    """Return the document as it is checked in."""
    return json.dumps(document(), indent=2, sort_keys=True, ensure_ascii=False) + "\n"


def _description() -> str:
    return (
        "Schedules and jobs of users. Paths below /api/schedules, /api/jobs and /api/actions are "
        "the token's user's "
        "own; all others are for machines and operators, signed with IAM. What these write is "
        "recorded, with the reason in Duetick-Why. A key or a "
        "user is one path segment: percent-encoded, or with ~ for %, which no gateway rewrites; "
        "what needs no "
        "escape is written as it is. Below /api/users each other character has to be escaped, in "
        "capitals. Times are UTC text: 2026-12-01T09:00:00Z."
    )


def _operation(route: Route, base: str) -> Node:
    name = route.name
    described: Node = {
        "operationId": name if base == OWN else f"{name}_for_user",
        "summary": route.summary,
        "tags": ["operators" if route.is_of_operators(base) else "users"],
        "security": _security(route, base),
        "parameters": _parameters(route, base),
        "responses": _responses(route),
    }
    if route.body:
        content = {"application/json": {"schema": _reference(route.body)}}
        required = route.body != "PauseBody"
        described["requestBody"] = {"required": required, "content": content}
    return described


def _security(route: Route, base: str) -> list[Node]:
    operators: Node = {"iam": []}
    if route.is_of_operators(base):
        return [operators]
    return [{"userToken": []}, operators] if route.of_any else [{"userToken": []}]


def _parameters(route: Route, base: str) -> list[Node]:
    found = [
        {"name": name, "in": "path", "required": True, "schema": TEXT | {"minLength": 1}}
        for name in re.findall(r"\{(\w+)\}", base + route.path)
    ]
    if route.query:
        properties = _body(route.query).model_json_schema()["properties"]
        found += [_query_parameter(name, schema) for name, schema in properties.items()]
    headers = {
        "If-Match": route.conditional,
        "If-None-Match": route.creates,
        "Idempotency-Key": route.idempotent,
        WHY: route.is_of_operators(base) and route.is_logged,
    }
    found += [{"name": n, "in": "header", "schema": TEXT} for n, has in headers.items() if has]
    return found


def _query_parameter(name: str, schema: Node) -> Node:
    """Describe a parameter of the query. It may be left out, and is never null."""
    several = [one for one in schema.get("anyOf", ()) if one != NULL]
    alone = several[0] if len(several) == 1 else {"anyOf": several} if several else {}
    rest = {key: value for key, value in schema.items() if key != "anyOf"}
    described = _plain({**rest, **alone})
    told = {"description": described.pop("description")} if "description" in described else {}
    return {"name": name, "in": "query", **told, "schema": described}


def _responses(route: Route) -> Node:
    answers = {status: _response(status, shape) for status, shape in route.answers.items()}
    for status in (*ALWAYS, *route.refusals):
        answers[status] = {"$ref": f"#/components/responses/{_name_refusal(status)}"}
    return {str(status): answers[status] for status in sorted(answers)}


def _name_refusal(status: int) -> str:
    """Return the name of the answer with that status. All routes share the answer."""
    return f"Refused{status}"


def _response(status: int, shape: str | None) -> Node:
    described: Node = {"description": MEANINGS[status]}
    if shape:
        described["content"] = {"application/json": {"schema": _reference(shape)}}
    tag = {"ETag": {"schema": TEXT}} if shape == "ScheduleView" else {}
    headers = tag | HEADERS.get(status, {})
    return described | ({"headers": headers} if headers else {})


def _reference(shape: str) -> Node:
    return {"$ref": REFERENCE.format(model=shape)}


def _body(name: str) -> type[models.Shape]:
    """Return the shape of a body or a query."""
    shape: type[models.Shape] = getattr(models, name)
    return shape


def _schemas() -> Node:
    """Return the schemas of bodies and answers. An answer has no other fields."""
    shapes: set[type] = {getattr(views, ERROR)}
    for route in ROUTES:
        shapes |= {_body(route.body)} if route.body else set()
        shapes |= {getattr(views, name) for name in route.answers.values() if name}
    several: Any = list  # pydantic takes a config for a list of shapes, but not for a shape
    closed = ConfigDict(extra="forbid")
    _, made = TypeAdapter.json_schemas(
        [(shape, "validation", TypeAdapter(several[shape], config=closed)) for shape in shapes],
        ref_template=REFERENCE,
    )
    named = {name: {"type": "string", "enum": [*get_args(one)]} for name, one in NAMED.items()}
    found = {name: _plain(one) for name, one in made["$defs"].items()} | named
    # Each is checked and answered by itself, so the shape takes any object.
    found["JobsBody"]["properties"]["jobs"]["items"] = _reference("JobBody")
    return dict(sorted(found.items()))


def _plain(schema: Node) -> Node:
    """Return a schema in the form that generators of clients read best.

    Titles only repeat names. A default makes a field required in the generated code, so the
    description says the default. A set of texts that has a name is referred to.
    """
    known = {tuple(get_args(one)): name for name, one in NAMED.items()}
    if tuple(schema.get("enum", ())) in known:
        rest = {key: value for key, value in schema.items() if key not in ("type", "enum")}
        schema = _reference(known[tuple(schema["enum"])]) | rest
    default = schema.get("default")
    said = [schema.get("description"), None if default in (None, "") else _default_said(default)]
    described = " ".join(one for one in said if one)
    kept = {key: value for key, value in schema.items() if key not in SAID_OTHERWISE}
    for key in kept.keys() & {"anyOf", "items", "additionalProperties", "properties"}:
        kept[key] = _plain_parts(kept[key], named=key == "properties")
    return ({"description": described} if described else {}) | kept


def _default_said(default: object) -> str:
    return f"Default: {json.dumps(default)}."


def _plain_parts(value: object, *, named: bool) -> object:
    """Return the schemas inside a schema in the same way: a list, one, or some by their names."""
    if isinstance(value, list):
        return [_plain(one) for one in value]
    if not isinstance(value, dict):
        return value
    return {name: _plain(one) for name, one in value.items()} if named else _plain(value)


def _security_schemes() -> Node:
    return {
        "userToken": {"type": "http", "scheme": "bearer", "bearerFormat": "JWT"},
        "iam": {
            "type": "apiKey",
            "name": "Authorization",
            "in": "header",
            "x-amazon-apigateway-authtype": "awsSigv4",
        },
    }

"""The OpenAPI document of the API, made from its routes and models."""

import json
import re
from typing import Any, Final, TypeAlias

from pydantic import ConfigDict, TypeAdapter

from duetick.api import models, views
from duetick.api.calls import WHY
from duetick.api.routes import OWN, ROUTES, Route
from duetick.version import VERSION

Node: TypeAlias = dict[str, Any]

REFERENCE: Final = "#/components/schemas/{model}"
ERROR: Final = "ErrorView"
GATEWAY: Final = "GatewayView"
ALWAYS: Final = (400, 401, 403, 405, 503)
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
    503: "Something behind the API does not answer; try again.",
}
TEXT: Final[Node] = {"type": "string"}
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
        "paths": paths,
        "components": {"schemas": _schemas(), "securitySchemes": _security_schemes()},
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
        found += [{"name": n, "in": "query", "schema": s} for n, s in properties.items()]
    headers = {
        "If-Match": route.conditional,
        "If-None-Match": route.creates,
        "Idempotency-Key": route.idempotent,
        WHY: route.is_of_operators(base) and route.is_logged,
    }
    found += [{"name": n, "in": "header", "schema": TEXT} for n, has in headers.items() if has]
    return found


def _responses(route: Route) -> Node:
    answers = route.answers | dict.fromkeys((*ALWAYS, *route.refusals), ERROR)
    return {str(status): _response(status, answers[status]) for status in sorted(answers)}


def _response(status: int, shape: str | None) -> Node:
    described: Node = {"description": MEANINGS[status]}
    if shape:
        schema = _reference(shape)
        if status in (401, 403, 429):
            schema = {"anyOf": [schema, _reference(GATEWAY)]}
        described["content"] = {"application/json": {"schema": schema}}
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
    shapes: set[type] = {getattr(views, ERROR), getattr(models, GATEWAY)}
    for route in ROUTES:
        shapes |= {_body(route.body)} if route.body else set()
        shapes |= {getattr(views, name) for name in route.answers.values() if name}
    several: Any = list  # pydantic takes a config for a list of shapes, but not for a shape
    closed = ConfigDict(extra="forbid")
    _, made = TypeAdapter.json_schemas(
        [(shape, "validation", TypeAdapter(several[shape], config=closed)) for shape in shapes],
        ref_template=REFERENCE,
    )
    return dict(sorted(made["$defs"].items()))


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

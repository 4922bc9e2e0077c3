"""API Gateway's REST events as requests of the core, and the core's answers as responses."""

import base64
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from duetick.core.answers import Answer, error
from duetick.core.rights import BY_EXTERNAL
from duetick.domain.schedule import Principal

if TYPE_CHECKING:
    from duetick.core.dispatch import Request

GatewayEvent: TypeAlias = Mapping[str, Any]
Response: TypeAlias = dict[str, object]

METHODS: Final = "GET, POST, PUT, PATCH, DELETE"
SENT: Final = (
    "Authorization, Content-Type, Idempotency-Key, If-Match, If-None-Match, "
    "MCP-Protocol-Version, Mcp-Method, Mcp-Name"
)
SHOWN: Final = "Allow, ETag, Location, Retry-After, Warning"
KEPT_SECONDS: Final = "7200"
"""The longest time for which any browser keeps the answer."""


def respond(answer: Answer) -> Response:
    """Return the answer in the form that API Gateway takes."""
    return {
        "statusCode": answer.status,
        "headers": {"content-type": "application/json", **answer.headers},
        "body": json.dumps(answer.body, ensure_ascii=False),
    }


def headers(event: GatewayEvent) -> dict[str, str]:
    """Return the headers by lower-case name."""
    return {name.lower(): value for name, value in (event.get("headers") or {}).items()}


def body(event: GatewayEvent) -> str:
    """Return the body as text. Encoded bytes that are not UTF-8 are dropped."""
    text = event.get("body") or ""
    if event.get("isBase64Encoded"):
        return base64.b64decode(text).decode(errors="ignore")
    return str(text)


def dispatch_request(event: GatewayEvent, seconds: float | None = None) -> "Request | Answer":
    """Return the call of a flow's route, or the answer that refuses it.

    The path is read as it was sent, still encoded: an id may have a slash.
    """
    parts = str(event["path"]).split("/")
    if parts[1:4] == ["api", "schedules", BY_EXTERNAL] and parts[-1] == "dispatch":
        return _request(event, seconds, external_id="/".join(parts[4:-1]))
    flow_alone = len(parts) == 5
    is_dispatch = len(parts) > 6 and parts[-1] == "dispatch"
    if parts[1:3] != ["api", "flows"] or parts[4:5] != ["schedules"]:
        return error("not_found", "The routes begin with /api/flows/{flow}/schedules.")
    if not flow_alone and not is_dispatch:
        return error("not_found", "The route is /api/flows/{flow}/schedules/{id}/dispatch.")
    path_id = None if flow_alone else "/".join(parts[5:-1])
    return _request(event, seconds, flow=parts[3], path_id=path_id)


def _request(
    event: GatewayEvent,
    seconds: float | None,
    *,
    flow: str = "",
    path_id: str | None = None,
    external_id: str | None = None,
) -> "Request":
    from duetick.core.dispatch import Request  # the users' function dispatches nothing

    return Request(
        flow=flow,
        path_id=path_id,
        headers=headers(event),
        body=body(event),
        request_id=request_id(event),
        method=event["httpMethod"],
        caller=caller(event),
        seconds=seconds,
        external_id=external_id,
    )


def request_id(event: GatewayEvent) -> str:
    """Return the id of the call; empty if there is none. The answer names the id too."""
    return str(event.get("requestContext", {}).get("requestId", ""))


def caller(event: GatewayEvent) -> Principal | None:
    """Return the principal whose signature IAM checked, or None if the call is unsigned."""
    arn = (event["requestContext"].get("identity") or {}).get("userArn")
    return Principal(str(arn)) if arn else None


def preflight_headers(origin: str) -> dict[str, str]:
    """Return the headers of the answer to a browser's preflight request: the rights of a page of
    that origin. The request carries no token, and the answer no data of any user.
    """
    return {
        "Access-Control-Allow-Origin": origin,
        "Access-Control-Allow-Methods": METHODS,
        "Access-Control-Allow-Headers": SENT,
        "Access-Control-Max-Age": KEPT_SECONDS,
    }


def allow_origin(answer: dict[str, Any], origin: str) -> dict[str, Any]:
    """Return the answer, with headers that let a page of that origin read it."""
    if not origin:
        return answer
    headers = {"Access-Control-Allow-Origin": origin, "Access-Control-Expose-Headers": SHOWN}
    return {**answer, "headers": {**(answer.get("headers") or {}), **headers}}

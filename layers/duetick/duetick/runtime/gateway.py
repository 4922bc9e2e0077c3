"""Between API Gateway's REST events and the core."""

import base64
import json
from collections.abc import Mapping
from typing import Any, TypeAlias

from duetick.core.answers import Answer, error
from duetick.core.dispatch import Request
from duetick.domain.identity import from_path

Event: TypeAlias = Mapping[str, Any]
Response: TypeAlias = dict[str, object]


def respond(answer: Answer) -> Response:
    """An answer in the form that API Gateway takes."""
    return {
        "statusCode": answer.status,
        "headers": {"content-type": "application/json"},
        "body": json.dumps(answer.body, ensure_ascii=False),
    }


def headers(event: Event) -> dict[str, str]:
    """The headers, by lower-case name."""
    return {name.lower(): value for name, value in (event.get("headers") or {}).items()}


def body(event: Event) -> str:
    """The body as text; one that is not UTF-8 counts as none."""
    text = event.get("body") or ""
    if event.get("isBase64Encoded"):
        return base64.b64decode(text).decode(errors="ignore")
    return str(text)


def dispatch_request(event: Event) -> Request | Answer:
    """The call of `/api/flows/{flow}/schedules/{id}/dispatch`, or why it is none.

    The path is read as it was sent: still encoded, because an id may hold a slash.
    """
    parts = str(event["path"]).split("/")
    if parts[1:3] != ["api", "flows"] or parts[4:5] != ["schedules"] or len(parts) < 7:
        return error("not_found", "POST /api/flows/{flow}/schedules/{id}/dispatch is the route.")
    if parts[-1] != "dispatch":
        return error("not_found", "A schedule's route ends with /dispatch.")
    if event["httpMethod"] != "POST":
        return error("method_not_allowed", "Dispatch takes POST.")
    return Request(
        flow=from_path(parts[3]),
        path_id="/".join(parts[5:-1]),
        headers=headers(event),
        body=body(event),
        request_id=str(event["requestContext"].get("requestId", "")),
    )

"""Between API Gateway's REST events and the core."""

import base64
import json
from collections.abc import Mapping
from typing import Any, TypeAlias

from duetick.core.answers import Answer, error
from duetick.core.calls import Request
from duetick.domain.schedule import Principal

Event: TypeAlias = Mapping[str, Any]
Response: TypeAlias = dict[str, object]


def respond(answer: Answer) -> Response:
    """An answer in the form that API Gateway takes."""
    return {
        "statusCode": answer.status,
        "headers": {"content-type": "application/json", **answer.headers},
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


def dispatch_request(event: Event, seconds: float | None = None) -> Request | Answer:
    """The call of a flow's route, or why it is none.

    The path is read as it was sent: still encoded, because an id may hold a slash.
    """
    parts = str(event["path"]).split("/")
    flow_alone = len(parts) == 5
    is_dispatch = len(parts) > 6 and parts[-1] == "dispatch"
    if parts[1:3] != ["api", "flows"] or parts[4:5] != ["schedules"]:
        return error("not_found", "The routes begin with /api/flows/{flow}/schedules.")
    if not flow_alone and not is_dispatch:
        return error("not_found", "The route is /api/flows/{flow}/schedules/{id}/dispatch.")
    return Request(
        flow=parts[3],
        path_id=None if flow_alone else "/".join(parts[5:-1]),
        headers=headers(event),
        body=body(event),
        request_id=str(event["requestContext"].get("requestId", "")),
        method=event["httpMethod"],
        caller=_caller(event),
        seconds=seconds,
    )


def _caller(event: Event) -> Principal | None:
    """Whom IAM says is calling."""
    arn = (event["requestContext"].get("identity") or {}).get("userArn")
    return Principal(str(arn)) if arn else None

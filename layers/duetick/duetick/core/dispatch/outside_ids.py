"""Calls by an outside id (G-08): from a webhook to the schedule that owns it, in one query."""

import json
import secrets
from dataclasses import replace
from typing import NoReturn

from duetick.core.answers import error
from duetick.core.dispatch.calls import Request
from duetick.core.dispatch.stopping import Stop
from duetick.core.dispatch.verdicts import answer_missing
from duetick.core.store import Store
from duetick.core.wire import LARGEST_BODY, is_too_large
from duetick.domain.identity import check_external, from_signed_path, to_path
from duetick.domain.policies import DAY
from duetick.domain.schedule import Json


def check_outside_id(request: Request) -> str:
    """Return the decoded outside id of a call. Raises InvalidId if no schedule may have it."""
    text = from_signed_path(request.external_id or "")
    check_external(text)
    return text


def to_owner(store: Store, external_id: str, request: Request, now: int) -> Request:
    """Return the call of the schedule that has the outside id. Raises Stop if none has it.

    The call is an occurrence of its own, at this moment, with the whole body for its action. The
    header Idempotency-Key names the call for a day.
    """
    if is_too_large(request.body):
        raise Stop(error("too_large", f"A body may have {LARGEST_BODY // 1024} KB."))
    found = store.schedules.find_by_external(external_id)
    if found is None:
        raise Stop(answer_missing())
    key = request.headers.get("idempotency-key")
    named: dict[str, Json] = {
        "nominalFireTime": now,
        "idempotencyKey": secrets.token_hex(8) if key is None else key,
        "idempotencyWindow": 0 if key is None else DAY,
        "body": _read(request.body),
    }
    body = json.dumps(named, ensure_ascii=False)
    return replace(request, flow=found.flow, path_id=to_path(found.id), body=body, external_id=None)


def _refuse(constant: str) -> NoReturn:
    """Refuse NaN and Infinity, which are no JSON."""
    raise ValueError(constant)


def _read(text: str) -> Json:
    """Return the JSON of a body; a body that is no JSON as the text that it is."""
    try:
        value: Json = json.loads(text, parse_constant=_refuse) if text else None
    except (ValueError, RecursionError):
        return text
    return value

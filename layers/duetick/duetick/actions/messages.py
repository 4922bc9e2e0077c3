"""The message about an occurrence that a target gets."""

import hashlib
import json
from typing import TypedDict

from duetick.core.context import Context
from duetick.core.wire import iso
from duetick.domain.errors import DuetickError
from duetick.domain.schedule import Json


class TargetFailed(DuetickError):
    """A target did not take its message. The attempt has failed."""


def message(given: Json, ctx: Context) -> dict[str, Json]:
    """Return the occurrence and its input, with the names of the API."""
    return {
        "scheduleId": ctx.schedule_id,
        "user": ctx.principal.user_id,
        "flow": ctx.flow,
        "occurrence": identity(ctx),
        "origin": ctx.origin,
        "nominalFireTime": iso(ctx.nominal_at),
        "attempt": ctx.attempt,
        "input": given,
    }


def as_text(given: Json, ctx: Context) -> str:
    """Return the message as JSON."""
    return json.dumps(message(given, ctx), separators=(",", ":"), ensure_ascii=False)


def identity(ctx: Context) -> str:
    """Return the occurrence's name, the same for each attempt. Any service takes its characters."""
    named = f"{ctx.flow}/{ctx.schedule_id}\0{ctx.nominal_at}\0{ctx.origin}"
    return hashlib.sha256(named.encode()).hexdigest()[:40]


class FifoFields(TypedDict, total=False):
    """The fields by which a FIFO queue or topic drops repeats and orders messages."""

    MessageDeduplicationId: str
    MessageGroupId: str


def fifo_fields(name: str, ctx: Context) -> FifoFields:
    """Return the fields for the name of a FIFO queue or topic, else none. Each user is a group."""
    if not name.endswith(".fifo"):
        return {}
    group = hashlib.sha256(ctx.principal.user_id.encode()).hexdigest()[:40]
    return {"MessageDeduplicationId": identity(ctx), "MessageGroupId": group}

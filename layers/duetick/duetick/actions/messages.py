"""What a target is told of an occurrence."""

import hashlib
import json
from typing import TypedDict

from duetick.core.context import Context
from duetick.core.wire import iso
from duetick.domain.errors import DuetickError
from duetick.domain.schedule import Json


class TargetFailed(DuetickError):
    """A target did not take what it was sent; the attempt has failed."""


def message(given: Json, ctx: Context) -> dict[str, Json]:
    """The occurrence and its input. Names are those of the API."""
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
    """The message as JSON."""
    return json.dumps(message(given, ctx), separators=(",", ":"), ensure_ascii=False)


def identity(ctx: Context) -> str:
    """The same for every attempt of one occurrence, in characters that any service takes."""
    named = f"{ctx.flow}/{ctx.schedule_id}\0{ctx.nominal_at}\0{ctx.origin}"
    return hashlib.sha256(named.encode()).hexdigest()[:40]


class InOrder(TypedDict, total=False):
    """What a FIFO queue or topic is told besides: by what it drops a repeat, and orders."""

    MessageDeduplicationId: str
    MessageGroupId: str


def in_order(name: str, ctx: Context) -> InOrder:
    """That, for one whose name says that it is one: each user is a group."""
    if not name.endswith(".fifo"):
        return {}
    group = hashlib.sha256(ctx.principal.user_id.encode()).hexdigest()[:40]
    return {"MessageDeduplicationId": identity(ctx), "MessageGroupId": group}

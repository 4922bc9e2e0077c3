"""A call of the dispatch route, read and bounded before anything is done."""

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Final, TypeAlias

from duetick.core.wire import delivery_json, instant, read_object
from duetick.domain.attempts import CallerKey
from duetick.domain.errors import InvalidSchedule, check_all, kind_of
from duetick.domain.identity import (
    LONGEST_ORIGIN,
    NO_FLOW,
    SCHEDULE_ORIGIN,
    InvalidId,
    check_id,
    from_path,
    split_id,
    to_path,
)
from duetick.domain.policies import DAY
from duetick.domain.schedule import Json, Lease, Occurrence, Principal
from duetick.ports import Deliverable

KEY_SECONDS: Final = 60
LONGEST_KEY: Final = 128
MOST_FENCES: Final = 2**53 - 1


@dataclass(frozen=True, slots=True)
class Request:
    """A call as it came: `flow`, `path_id` and `external_id` are still encoded.

    Without a `path_id`, the call is about the flow itself. With an `external_id` it is about the
    schedule that has this outside id, and `flow` is empty. `caller` is the caller that the gateway
    names. `seconds` is the remaining time of the invocation when the call came; None if nothing
    ends it; `elapsed` is the clock that counts it.
    """

    flow: str
    path_id: str | None
    headers: Mapping[str, str]
    body: str
    request_id: str
    method: str = "POST"
    caller: Principal | None = None
    seconds: float | None = None
    external_id: str | None = None
    came_at: float = field(default_factory=time.monotonic, compare=False)
    elapsed: Callable[[], float] = field(default=time.monotonic, compare=False)

    @property
    def left(self) -> float | None:
        """The seconds of the invocation that remain now."""
        if self.seconds is None:
            return None
        return self.seconds - (self.elapsed() - self.came_at)


Authenticate: TypeAlias = Callable[[Request], bool]


def about_call(request: Request) -> dict[str, Json]:
    """Return the log fields that name the subject of a call, as far as it can be read."""
    flow: dict[str, Json] = {"flow": request.flow}
    try:
        text = check_id(from_path(request.path_id or ""))
    except InvalidId:
        return flow
    user_id, _ = split_id(request.flow, text)
    occurrence = read_object(request.body).get("occurrence")
    fits = isinstance(occurrence, str) and len(occurrence) <= LONGEST_KEY
    return {"user": user_id, "schedule": text, **flow, "occurrence": occurrence if fits else ""}


def request_of(occurrence: Deliverable) -> Request:
    """Return the call that delivers an occurrence without HTTP."""
    return Request(
        flow=occurrence.flow or NO_FLOW,
        path_id=to_path(occurrence.schedule_id),
        headers={},
        body=json.dumps(delivery_json(occurrence)),
        request_id=occurrence.id if isinstance(occurrence, Occurrence) else "",
    )


@dataclass(frozen=True, slots=True)
class Call:
    """The content of a body. With a fence it is a tick's delivery, else an outside caller's
    request. `sent` is the caller's own body, for the action.
    """

    flow: str
    schedule_id: str
    user_id: str
    key: str
    nominal_at: int | None
    fence: int
    origin: str
    caller_key: CallerKey | None
    sent: Json = None

    @property
    def own_key(self) -> CallerKey | None:
        """The caller's key, if it counts: it does not beside a fence, or with a window of 0."""
        key = self.caller_key
        return key if key and key.window_ms and not self.fence else None

    def lease(self) -> Lease | None:
        """Return the caller's lease, or None."""
        if self.fence < 1 or self.nominal_at is None:
            return None
        name = (self.user_id, self.key, self.nominal_at, self.origin)
        return Lease(*name, flow=self.flow, fence=self.fence)


def read_call(flow: str, schedule_id: str, body: Mapping[str, Json]) -> Call:
    """Return the call. Raises InvalidSchedule if path and body disagree, or a field is invalid."""
    user_id, key = split_id(flow, schedule_id)
    if body.get("userId", user_id) != user_id or body.get("key", key) != key:
        raise InvalidId("id", "path and body name different schedules.")
    fence = partial(_read_whole, body, "fence", 0, MOST_FENCES)
    origin = partial(_read_text, body, "origin", SCHEDULE_ORIGIN, LONGEST_ORIGIN)
    nominal_at = partial(instant, "nominalFireTime", body.get("nominalFireTime"))
    caller_key = partial(_read_key, flow, body)
    check_all(fence, origin, nominal_at, caller_key)
    if fence() and nominal_at() is None:
        raise InvalidSchedule("nominalFireTime", "is missing: a fence is for one time.", "missing")
    return Call(
        flow=flow,
        schedule_id=schedule_id,
        user_id=user_id,
        key=key,
        nominal_at=nominal_at(),
        fence=fence(),
        origin=origin(),
        caller_key=caller_key(),
        sent=body.get("body"),
    )


def _read_key(flow: str, body: Mapping[str, Json]) -> CallerKey | None:
    """Return the caller's key, or None. A window of 0 s turns it off."""
    if body.get("idempotencyKey") is None:
        return None
    key = partial(_read_text, body, "idempotencyKey", "", LONGEST_KEY)
    window = partial(_read_whole, body, "idempotencyWindow", KEY_SECONDS, DAY)
    check_all(key, window)
    return CallerKey(flow, key(), window() * 1_000)


def _read_whole(body: Mapping[str, Json], name: str, default: int, most: int) -> int:
    value, wanted = body.get(name, default), f"expected a whole number from 0 to {most}"
    if not isinstance(value, int) or isinstance(value, bool):
        raise InvalidSchedule(name, f"{wanted}, got {kind_of(value)}.", "wrong_type")
    if not 0 <= value <= most:
        raise InvalidSchedule(name, f"{wanted}.", "out_of_range")
    return value


def _read_text(body: Mapping[str, Json], name: str, default: str, most: int) -> str:
    value = body.get(name, default)
    if not isinstance(value, str):
        raise InvalidSchedule(name, f"expected text, got {kind_of(value)}.", "wrong_type")
    if not value:
        raise InvalidSchedule(name, "must not be empty.", "blank")
    if len(value) > most:
        problem = f"has {len(value)} characters; {most} are allowed."
        raise InvalidSchedule(name, problem, "too_long")
    if not value.isprintable():
        raise InvalidSchedule(name, "holds a character that cannot be seen.", "character")
    return value

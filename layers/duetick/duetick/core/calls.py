"""A call of the dispatch route: what it says, read and bounded before anything is done."""

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from duetick.core.wire import delivery_json, instant
from duetick.domain.errors import InvalidSchedule
from duetick.domain.identity import SCHEDULE_ORIGIN, InvalidId, split_id, to_path
from duetick.domain.policies import DAY
from duetick.domain.schedule import Json, Occurrence, Principal
from duetick.ports import CallerKey

KEY_SECONDS: Final = 60
LONGEST_KEY: Final = 128
LONGEST_ORIGIN: Final = 256


@dataclass(frozen=True, slots=True)
class Request:
    """A call as it came: `flow` and `path_id` are still encoded.

    Without a `path_id` it is about the flow itself. `caller` is who the gateway says is calling;
    `seconds` is what was left of the invocation as it came, None where nothing ends it.
    """

    flow: str
    path_id: str | None
    headers: Mapping[str, str]
    body: str
    request_id: str
    method: str = "POST"
    caller: Principal | None = None
    seconds: float | None = None
    came_at: float = field(default_factory=time.monotonic, compare=False)

    @property
    def left(self) -> float | None:
        """Seconds of the invocation that are left by now."""
        if self.seconds is None:
            return None
        return self.seconds - (time.monotonic() - self.came_at)


Authenticate: TypeAlias = Callable[[Request], bool]


def request_of(occurrence: Occurrence) -> Request:
    """The call that delivers an occurrence where no HTTP lies between."""
    return Request(
        flow=occurrence.flow,
        path_id=to_path(occurrence.schedule_id),
        headers={},
        body=json.dumps(delivery_json(occurrence)),
        request_id=occurrence.id,
    )


@dataclass(frozen=True, slots=True)
class Call:
    """What a body says. With a fence it is a tick's delivery, else an outside caller's."""

    flow: str
    schedule_id: str
    user_id: str
    key: str
    nominal_at: int | None
    fence: int
    origin: str
    caller_key: CallerKey | None

    @property
    def own_key(self) -> CallerKey | None:
        """The caller's key where it counts: a fence decides by itself, and no window is no key."""
        key = self.caller_key
        return key if key and key.window_ms and not self.fence else None

    def leased(self) -> Occurrence | None:
        """The occurrence that the caller holds a lease of, None where it holds none."""
        if self.fence < 1 or self.nominal_at is None:
            return None
        return Occurrence(
            user_id=self.user_id,
            key=self.key,
            cron="",
            timezone=None,
            nominal_at=self.nominal_at,
            fence=self.fence,
            origin=self.origin,
            flow=self.flow,
        )


def read_call(flow: str, schedule_id: str, body: Mapping[str, Json]) -> Call:
    """The call; raise where path and body disagree, or a field cannot be what it says."""
    user_id, key = split_id(flow, schedule_id)
    if body.get("userId", user_id) != user_id or body.get("key", key) != key:
        raise InvalidId("id", "path and body name different schedules.")
    fence, origin = body.get("fence", 0), body.get("origin", SCHEDULE_ORIGIN)
    if not isinstance(fence, int) or isinstance(fence, bool) or not 0 <= fence < 2**53:
        raise InvalidSchedule("fence", "expected a whole number, as the tick sends it.")
    if not isinstance(origin, str) or not 0 < len(origin) <= LONGEST_ORIGIN:
        raise InvalidSchedule("origin", "expected the text that the tick sends.")
    if not origin.isprintable():
        raise InvalidSchedule("origin", "holds a character that no origin has.")
    nominal_at = instant("nominalFireTime", body.get("nominalFireTime"))
    if fence and nominal_at is None:
        raise InvalidSchedule("nominalFireTime", "is missing: a fence is for one time.")
    return Call(
        flow=flow,
        schedule_id=schedule_id,
        user_id=user_id,
        key=key,
        nominal_at=nominal_at,
        fence=fence,
        origin=origin,
        caller_key=_caller_key(flow, body),
    )


def _caller_key(flow: str, body: Mapping[str, Json]) -> CallerKey | None:
    """The key that a caller sends, None without one. A window of 0 s turns it off."""
    key = body.get("idempotencyKey")
    if key is None:
        return None
    if not isinstance(key, str) or not 0 < len(key) <= LONGEST_KEY or not key.isprintable():
        raise InvalidSchedule("idempotencyKey", f"expected 1 to {LONGEST_KEY} plain characters.")
    window = body.get("idempotencyWindow", KEY_SECONDS)
    if not isinstance(window, int) or isinstance(window, bool) or not 0 <= window <= DAY:
        raise InvalidSchedule("idempotencyWindow", f"expected seconds, from 0 to {DAY}.")
    return CallerKey(flow, key, window * 1_000)

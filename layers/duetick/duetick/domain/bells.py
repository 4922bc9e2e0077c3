"""Bells: the schedules of EventBridge Scheduler that ring for the rows of a managed store.

Each row has one bell, named by a digest of user and key. The row alone says which times fire; its
bell only brings them. A bell carries the digest of the fields from which it was made. If the row's
digest differs when the bell rings, the bell is out of step.
"""

import json
from collections.abc import Mapping
from functools import lru_cache
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from duetick.domain.eventbridge import AwsExpression, say
from duetick.domain.firing import Times, may_count_from_anchor
from duetick.domain.occurrence import IndexRow, ScheduleName
from duetick.domain.policies import DAY, MINUTE_MS
from duetick.domain.schedule import Schedule

if TYPE_CHECKING:
    from duetick.domain.expression.instants import Gap, Repeat

PREFIX: Final = "r-"
"""The names of bells begin with it."""

RING_FIELD: Final = "duetickRing"
"""The field of an event that makes it a ring. No event of API Gateway has it."""

SCHEDULED_TIME: Final = "<aws.scheduler.scheduled-time>"
"""EventBridge puts the nominal time in its place."""

MOST_SAID: Final = 4_096


class PendingBell(NamedTuple):
    """A bell that may not be as its row requires, since an instant."""

    user_id: str
    key: str
    since: int

    @property
    def name(self) -> ScheduleName:
        """The name of the schedule."""
        return self.user_id, self.key


class PendingToken(NamedTuple):
    """The token with which a write makes a bell pending: each write has another one."""

    token: str
    at: int


class Bell(NamedTuple):
    """A bell as EventBridge is told it. Times are milliseconds; `payload` is what it sends."""

    name: str
    expression: str
    timezone: str | None
    starts_at: int | None
    ends_at: int | None
    payload: str


class Ring(NamedTuple):
    """The call of a bell: its schedule, the digest that the bell has, and its nominal time."""

    user_id: str
    key: str
    digest: str
    at: str

    @classmethod
    def read(cls, event: Mapping[str, Any]) -> "Ring | None":
        """Return the ring of an event, or None for any other event."""
        sent = event.get(RING_FIELD)
        if not isinstance(sent, Mapping):
            return None
        return cls(sent["user"], sent["key"], sent["digest"], sent["time"])


def bell_name(user_id: str, key: str) -> str:
    """Return the name of a schedule's bell."""
    name = json.dumps([user_id, key]).encode()
    return PREFIX + blake2b(name, digest_size=20).hexdigest()


def digest_of_bell(row: IndexRow | None) -> str | None:
    """Return the digest of all that decides the bell of a row; None if it has none."""
    if row is None:
        return None
    p = row.policies
    anchor = row.anchor if may_count_from_anchor(row.cron) else None
    said = [row.cron, row.timezone, p.gap, p.repeat, p.starts_at, p.ends_at, anchor]
    return blake2b(json.dumps(said).encode(), digest_size=8).hexdigest()


def bell_of(row: IndexRow, now: int) -> Bell | None:
    """Return the bell that a row requires; None if it rings no more.

    Raises ValueError if the row cannot be read, or EventBridge cannot say its times.
    """
    p = row.policies
    if p.ends_at is not None and p.ends_at <= now:
        return None
    said = _say(row.cron, row.timezone, p.gap, p.repeat, now // (DAY * 1_000))
    name, ends_at = bell_name(row.user_id, row.key), p.ends_at and p.ends_at + MINUTE_MS
    if said.expression.startswith("at("):
        return Bell(name, *said, None, None, _payload(row))
    if said.expression.startswith("rate("):
        first = row.next_fire_at if row.next_fire_at > now else Times.of(row).after(now)
        starts_at = first and _whole_second(first)
        return Bell(name, *said, starts_at, ends_at, _payload(row)) if starts_at else None
    starts_at = p.starts_at and p.starts_at - MINUTE_MS
    starts_at = starts_at if starts_at and starts_at > now else None
    return Bell(name, *said, starts_at, ends_at, _payload(row))


def _whole_second(at: int) -> int:
    """Return the whole second from an instant on: a rate of EventBridge counts from one."""
    return -(-at // 1_000) * 1_000


def _payload(row: IndexRow) -> str:
    ring = {
        "user": row.user_id,
        "key": row.key,
        "digest": digest_of_bell(row),
        "time": SCHEDULED_TIME,
    }
    return json.dumps({RING_FIELD: ring})


def check_ringable(schedule: Schedule, now: int) -> None:
    """Raise InvalidSchedule, with the reason, unless EventBridge can ring for the schedule."""
    p = schedule.policies
    _say(schedule.cron, schedule.timezone, p.gap, p.repeat, now // (DAY * 1_000))


@lru_cache(MOST_SAID)
def _say(cron: str, timezone: str | None, gap: "Gap", repeat: "Repeat", day: int) -> AwsExpression:
    """Say an expression once a day: it looks at the clock changes of years."""
    return say(cron, timezone, gap=gap, repeat=repeat, now=day * DAY * 1_000)

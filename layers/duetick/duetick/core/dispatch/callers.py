"""Calls from outside: the occurrence of a call, recorded already or new."""

import secrets
from dataclasses import replace
from typing import Final, TypeGuard

from duetick.core.dispatch.calls import Call
from duetick.core.store import Ledger
from duetick.domain.attempts import Refused, refuse_again
from duetick.domain.errors import InvalidSchedule
from duetick.domain.firing import Times
from duetick.domain.identity import CALL_ORIGIN, RUN_ORIGIN, SCHEDULE_ORIGIN
from duetick.domain.pausing import is_paused
from duetick.domain.policies import DAY
from duetick.domain.rows import new_occurrence, row_of
from duetick.domain.schedule import Identity, NewOccurrence, Record, check_timing

LOOK_BACK_MS: Final = 5 * 366 * DAY * 1_000
BY_TIME: Final = f"{CALL_ORIGIN}time"
"""The origin of a requested occurrence at a time at which its schedule does not fire."""

AT_ONCE: Final = 50
"""The number of occurrences that one read of the history returns."""


def date(ledger: Ledger, schedule: Record | None, call: Call, now: int) -> Call:
    """Return the call with a time. A call without one stands for the newest fire time up to now.

    While the schedule is paused, that is the last time that fired. A disabled schedule has none.
    """
    if call.nominal_at is not None or schedule is None or not (schedule.enabled or schedule.pause):
        return call
    return replace(call, nominal_at=_newest(ledger, schedule, call, now))


def find_recorded(ledger: Ledger, schedule: Record | None, call: Call, now: int) -> Refused | None:
    """Return the answer to a call for a time that the ledger has already, or None.

    An identity never expires, even if the schedule has changed. A range is no answer: its times did
    not fire. If nothing new may begin, an occurrence that a caller requested at that time counts
    too.
    """
    if call.caller_key or call.origin != SCHEDULE_ORIGIN or call.nominal_at is None:
        return None
    name = (schedule.user_id, schedule.key) if schedule else (call.user_id, call.key)
    flows = {call.flow, ""} if schedule else {call.flow}
    for origin in (SCHEDULE_ORIGIN,) if may_begin(schedule, now) else (SCHEDULE_ORIGIN, BY_TIME):
        recorded = ledger.get(*name, call.nominal_at, origin)
        if recorded and recorded.range_end is None and recorded.flow in flows:
            return refuse_again(recorded)
    return None


def may_begin(schedule: Record | None, now: int) -> TypeGuard[Record]:
    """Return True if a new occurrence may begin: the schedule exists, and no pause stops it."""
    return schedule is not None and not is_paused(schedule, now)


def ask(schedule: Record, call: Call, now: int) -> NewOccurrence:
    """Return the new occurrence that the caller requests.

    A call with a caller's key, or for a time at which the schedule does not fire, is an occurrence
    of its own. It never takes the place of a scheduled occurrence.
    """
    if call.origin != SCHEDULE_ORIGIN and not call.origin.startswith(RUN_ORIGIN):
        raise InvalidSchedule("origin", "is the ledger's to give; leave it out.")
    nominal_at = call.nominal_at
    if nominal_at is None:
        raise InvalidSchedule("cron", "has no fire time up to now; send nominalFireTime.")
    origin = _origin(schedule, call, nominal_at, now)
    key = call.caller_key.key if call.caller_key else None
    return replace(new_occurrence(schedule, nominal_at, origin, now), idempotency_key=key)


def _newest(ledger: Ledger, schedule: Record, call: Call, now: int) -> int | None:
    """Return the newest fire time up to now: since the timing changed, else the last that fired.

    A schedule that has never fired has the times of its expression.
    """
    if is_paused(schedule, now):
        return _last_fired(ledger, schedule, call, now)
    times, oldest = _times(schedule), now - LOOK_BACK_MS
    return (
        times.newest(max(schedule.redefined_at, oldest), now)
        or _last_fired(ledger, schedule, call, now)
        or times.newest(oldest, now)
    )


def _last_fired(ledger: Ledger, schedule: Record, call: Call, now: int) -> int | None:
    """Return the newest time of origin `schedule` up to now that the ledger has, or None."""
    before: int | Identity = now + 1
    while page := ledger.find(schedule.user_id, schedule.key, limit=AT_ONCE, before=before):
        for one in page:
            if one.origin == SCHEDULE_ORIGIN and one.range_end is None and one.flow == call.flow:
                return one.nominal_at
        before = page[-1].identity
    return None


def _origin(schedule: Record, call: Call, nominal_at: int, now: int) -> str:
    """Return the origin. A time before the last change of timing is accounted for already."""
    if call.origin.startswith(RUN_ORIGIN):
        return call.origin
    if call.caller_key:
        return f"{CALL_ORIGIN}{secrets.token_hex(8)}"
    since_changed = schedule.redefined_at < nominal_at <= now
    fires = since_changed and _times(schedule).after(nominal_at - 1) == nominal_at
    return SCHEDULE_ORIGIN if fires else BY_TIME


def _times(schedule: Record) -> Times:
    check_timing(schedule.cron, schedule.timezone)
    return Times.of(row_of(schedule, 0))

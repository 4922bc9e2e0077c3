"""Which occurrence an outside caller asks for."""

import secrets
from dataclasses import replace
from typing import Final

from duetick.core.calls import Call
from duetick.domain.errors import InvalidSchedule
from duetick.domain.firing import Times
from duetick.domain.identity import RUN_ORIGIN, SCHEDULE_ORIGIN
from duetick.domain.mirror import row_of
from duetick.domain.occurrences import of_row
from duetick.domain.policies import DAY
from duetick.domain.schedule import Occurrence, Schedule
from duetick.ports import Ledger

LOOK_BACK_MS: Final = 5 * 366 * DAY * 1_000


def asked_for(ledger: Ledger, schedule: Schedule, call: Call, now: int) -> Occurrence:
    """The newest fire time, or the one that the caller names.

    A key of the caller's own is a run of its own, and so is a time at which the schedule does
    not fire: neither may stand where a scheduled occurrence belongs.
    """
    if call.origin != SCHEDULE_ORIGIN and not call.origin.startswith(RUN_ORIGIN):
        raise InvalidSchedule("origin", "is the ledger's to give; leave it out.")
    times = Times.of(row_of(schedule, 0))
    nominal_at = call.nominal_at
    if nominal_at is None:
        nominal_at = times.newest(now - LOOK_BACK_MS, now)
    if nominal_at is None:
        raise InvalidSchedule("cron", "has no fire time up to now; send nominalFireTime.")
    made = of_row(row_of(schedule, nominal_at), nominal_at, now)
    origin = call.origin
    if origin.startswith(RUN_ORIGIN):
        pass
    elif call.caller_key:
        origin = f"call:{secrets.token_hex(8)}"
    elif not (
        nominal_at <= now
        and times.after(nominal_at - 1) == nominal_at
        and _is_scheduled(ledger, schedule, nominal_at)
    ):
        origin = "call:time"
    key = call.caller_key.key if call.caller_key else None
    return replace(made, origin=origin, due_at=now, idempotency_key=key)


def _is_scheduled(ledger: Ledger, schedule: Schedule, nominal_at: int) -> bool:
    """Whether it belongs to the schedule as it stands, or fired before that.

    Any other time before it was made, changed or resumed is accounted for, or never was one.
    """
    if nominal_at > schedule.timing:
        return True
    held = ledger.get(schedule.user_id, schedule.key, nominal_at, SCHEDULE_ORIGIN)
    return held is not None and held.range_end is None

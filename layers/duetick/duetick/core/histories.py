"""Looking back at one user's occurrences, page by page."""

import json
from base64 import b64decode, urlsafe_b64encode
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from duetick.core.calls import LONGEST_ORIGIN
from duetick.core.schedules import UserSchedules
from duetick.domain.errors import InvalidCursor, NotFound
from duetick.domain.identity import SCHEDULE_ORIGIN, check_key
from duetick.domain.mirror import paused_so_far
from duetick.domain.occurrences import apart
from duetick.domain.pausing import is_paused
from duetick.domain.schedule import LATEST, Identity, Occurrence, Schedule

AT_ONCE: Final = 500

PAST: Final = "."
"""What a cursor into the history begins with, in an export. One of schedules cannot."""

NO_CURSOR: Final = "The cursor is not one that a page carried; begin without one."


def history_page(
    schedules: UserSchedules, key: str, limit: int, cursor: str | None
) -> tuple[Sequence[Occurrence], str | None]:
    """The newest occurrences of a schedule, and the cursor of the next page.

    Raises NotFound where there is neither a schedule nor any history of one.
    """
    current, after = schedules.find(key), _read_cursor(cursor)
    before = after and (schedules.user_id, key, *after)
    found = schedules.store.ledger.find(schedules.user_id, key, limit=limit + 1, before=before)
    if not found and before is None and current is None:
        raise NotFound
    page, last = list(found[:limit]), len(found) <= limit
    for line in ended_pause(schedules, current):
        belongs = before is None or line.nominal_at < before[2]
        if belongs and (last or line.nominal_at >= page[-1].nominal_at):
            page = sorted([*page, line], key=lambda one: -one.nominal_at)
    return page, None if last else _cursor(found[limit - 1])


def ended_pause(schedules: UserSchedules, schedule: Schedule | None) -> Sequence[Occurrence]:
    """What a pause kept from firing that ended by itself, as one range.

    The ledger has no row of it before the next change of the schedule: no write marks the end.
    """
    now = schedules.clock()
    if schedule is None or schedule.pause is None or is_paused(schedule, now):
        return ()
    parts = [
        part
        for held in paused_so_far(schedule, now)
        for part in apart(held, _within(schedules, held))
    ]
    return [replace(part, id=f"occ_pause_{part.nominal_at:x}") for part in parts]


def _within(schedules: UserSchedules, held: Occurrence) -> Sequence[int]:
    """The times of a pause that have an occurrence of their own: they were claimed before it."""
    end = (held.range_end or held.nominal_at) + 1
    found = schedules.store.ledger.find(held.user_id, held.key, limit=AT_ONCE, before=end)
    return [one.nominal_at for one in found if one.origin == SCHEDULE_ORIGIN]


def _cursor(last: Occurrence) -> str:
    """Several may have one nominal time: their origins tell them apart."""
    return urlsafe_b64encode(f"{last.nominal_at} {last.origin}".encode()).decode()


def _read_cursor(cursor: str | None) -> tuple[int, str] | None:
    if cursor is None:
        return None
    try:
        at, _, origin = b64decode(cursor, altchars=b"-_", validate=True).decode().partition(" ")
    except ValueError:
        at = origin = ""
    if not (at.isascii() and at.isdigit() and len(at) < 16):
        raise InvalidCursor(NO_CURSOR)
    _check_place(int(at), origin)
    return int(at), origin


def export_page(
    schedules: UserSchedules, cursor: str | None
) -> tuple[Sequence[Schedule], Sequence[Occurrence], str | None]:
    """A part of all that is kept of the user: schedules, then what became of them and of those
    that are gone; and the cursor of the next part.
    """
    found: Sequence[Schedule] = ()
    lines: Sequence[Occurrence] = ()
    before: Identity | None = None
    if cursor is not None and cursor.startswith(PAST):
        before = _read_past(schedules.user_id, cursor.removeprefix(PAST))
    else:
        page = schedules.list(AT_ONCE, cursor)
        found = page.schedules
        lines = [line for schedule in found for line in ended_pause(schedules, schedule)]
        if page.cursor:
            return found, lines, page.cursor
    past = schedules.store.ledger.find(schedules.user_id, limit=AT_ONCE + 1, before=before)
    more = len(past) > AT_ONCE
    return found, [*lines, *past[:AT_ONCE]], _past(past[AT_ONCE - 1]) if more else None


def _past(last: Occurrence) -> str:
    place = json.dumps([last.nominal_at, last.key, last.origin])
    return PAST + urlsafe_b64encode(place.encode()).decode()


def _read_past(user_id: str, cursor: str) -> Identity:
    try:
        at, key, origin = json.loads(b64decode(cursor, altchars=b"-_", validate=True))
        check_key(user_id, key)
    except (ValueError, TypeError, RecursionError):
        raise InvalidCursor(NO_CURSOR) from None
    _check_place(at, origin)
    return user_id, key, at, origin


def _check_place(at: object, origin: object) -> None:
    """Only what a cursor of ours holds may come to a store."""
    known = isinstance(at, int) and not isinstance(at, bool) and 0 <= at < LATEST
    named = isinstance(origin, str) and 0 < len(origin) <= LONGEST_ORIGIN
    if not (known and named and str(origin).isprintable()):
        raise InvalidCursor(NO_CURSOR)

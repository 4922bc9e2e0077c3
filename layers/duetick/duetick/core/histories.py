"""Looking back at one user's occurrences, page by page."""

from base64 import b64decode, urlsafe_b64encode
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from duetick.core.schedules import UserSchedules
from duetick.domain.errors import InvalidCursor, NotFound
from duetick.domain.identity import SCHEDULE_ORIGIN
from duetick.domain.mirror import paused_so_far
from duetick.domain.occurrences import apart
from duetick.domain.pausing import is_paused
from duetick.domain.schedule import Occurrence, Schedule

AT_ONCE: Final = 500


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
    if not (at.isascii() and at.isdigit() and len(at) < 16 and origin and origin.isprintable()):
        raise InvalidCursor("The cursor is not one that a page carried; begin without one.")
    return int(at), origin


def export(schedules: UserSchedules) -> tuple[list[Schedule], list[Occurrence]]:
    """All schedules of the user, and all that became of them and of those that are gone."""
    found = list(_all_schedules(schedules))
    ended = [line for schedule in found for line in ended_pause(schedules, schedule)]
    return found, [*_all_occurrences(schedules), *ended]


def _all_schedules(schedules: UserSchedules) -> Iterator[Schedule]:
    cursor: str | None = None
    while True:
        page = schedules.list(AT_ONCE, cursor)
        yield from page.schedules
        cursor = page.cursor
        if cursor is None:
            return


def _all_occurrences(schedules: UserSchedules) -> Iterator[Occurrence]:
    """Pages overlap by one nominal time, since several schedules may fire at it."""
    seen: set[tuple[str, str, int, str]] = set()
    before, limit = None, AT_ONCE
    while True:
        found = schedules.store.ledger.find(schedules.user_id, limit=limit, before=before)
        fresh = [one for one in found if one.identity not in seen]
        yield from fresh
        if len(found) < limit:
            return
        seen = {one.identity for one in found}
        before, limit = found[-1].nominal_at + 1, limit if fresh else limit * 2

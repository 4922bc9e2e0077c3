"""Looking back at one user's occurrences, page by page."""

from collections.abc import Iterator, Sequence
from typing import Final

from duetick.core.schedules import UserSchedules
from duetick.domain.errors import InvalidCursor
from duetick.domain.identity import check_key
from duetick.domain.schedule import Occurrence, Schedule

TIES: Final = 20
"""So many occurrences of one nominal time stay together on a page."""

AT_ONCE: Final = 500


def history_page(
    schedules: UserSchedules, key: str, limit: int, cursor: str | None
) -> tuple[Sequence[Occurrence], str | None]:
    """The newest occurrences of a schedule, and the cursor of the next page.

    Raises NotFound where there is neither a schedule nor any history of one.
    """
    check_key(schedules.user_id, key)
    before = _before(cursor)
    found = schedules.store.ledger.find(schedules.user_id, key, limit=limit + TIES, before=before)
    if not found and before is None:
        schedules.get(key)
    page = list(found[:limit])
    page += [one for one in found[limit:] if page and one.nominal_at == page[-1].nominal_at]
    return page, str(page[-1].nominal_at) if len(found) > len(page) else None


def _before(cursor: str | None) -> int | None:
    if cursor is None:
        return None
    if not (cursor.isascii() and cursor.isdigit() and len(cursor) < 16):
        raise InvalidCursor("The cursor is not one that a page carried; begin without one.")
    return int(cursor)


def export(schedules: UserSchedules) -> tuple[list[Schedule], list[Occurrence]]:
    """All schedules of the user, and all that became of them and of those that are gone."""
    return list(_all_schedules(schedules)), list(_all_occurrences(schedules))


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

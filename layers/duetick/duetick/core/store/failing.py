"""The pause of a schedule that fails several times in a row: its policy `pause_after`.

The ledger has the streak already, so nothing counts it: a death looks at the newest ends of its
schedule, and a success among them ends the look. Only a death pays for it.
"""

import logging
from collections.abc import Iterator
from typing import Final

from duetick.domain.book import Book
from duetick.domain.identity import SCHEDULE_ORIGIN
from duetick.domain.occurrence import Identity, Occurrence
from duetick.domain.paging import place_of
from duetick.domain.pausing import is_paused, pause
from duetick.domain.schedule import Record
from duetick.domain.states import Reason, State
from duetick.ports import Query, Shelf

AT_ONCE: Final = 50
LOOKED_AT: Final = 2_000
"""The most entries of a history that a death reads: what was skipped among them ends no streak."""

FAILURES: Final = frozenset({Reason.FAILED, Reason.LOST, Reason.REJECTED})

logger = logging.getLogger("duetick.failing")


def counts_as_failure(occurrence: Occurrence) -> bool:
    """Return True if the occurrence is dead, and its schedule may have to be paused for that.

    A run by hand, a backfill and an outside call are no failures of the schedule.
    """
    if occurrence.policies.pause_after is None or occurrence.origin != SCHEDULE_ORIGIN:
        return False
    return occurrence.state is State.DEAD and occurrence.reason in FAILURES


def pause_failing(shelf: Shelf, dead: Occurrence, now: int) -> Record | None:
    """Pause the schedule of a death if its policy says so. Return the paused schedule, or None.

    If the schedule changes at the same time, it stays as it is: another death looks again.
    """
    record = shelf.record(dead.user_id, dead.key)
    if record is None or not _may_be_paused(record, now) or not _fails(shelf, record):
        return None

    def alter(book: Book) -> Record | None:
        current = book.record
        if current is None or current.version != record.version or not _may_be_paused(current, now):
            return None
        whole = book.pages.complete(current)
        book.put(pause(whole, note_of(whole), None, now), now)
        return book.view()

    paused = shelf.change(record.user_id, record.key, now, alter)
    if paused:
        _log(paused)
    return paused


def note_of(record: Record) -> str:
    """Return the note of the pause. The note repeats no error: an error may hold a secret."""
    times = record.policies.pause_after
    return f"It failed {times} times in a row. Its history has the errors; resume it after that."


def _may_be_paused(record: Record, now: int) -> bool:
    """Return True if its policy may pause the schedule now."""
    fires = record.done_at is None and not is_paused(record, now)
    return fires and record.policies.pause_after is not None


def _fails(shelf: Shelf, record: Record) -> bool:
    """Return True if so many ends in a row as the policy says have failed, the newest included.

    Ends before the last change of timing, or resume, do not count. A deleted occurrence keeps the
    reason of its end, and counts as before.
    """
    wanted = record.policies.pause_after or 0
    for one in _ends(shelf, record):
        if one.reason is Reason.FIRED or one.nominal_at <= record.redefined_at:
            return False
        wanted -= one.reason in FAILURES
        if wanted <= 0:
            return True
    return False


def _ends(shelf: Shelf, record: Record) -> Iterator[Occurrence]:
    """Yield the schedule's own occurrences, the newest first."""
    place: Identity = place_of(None)
    for _ in range(LOOKED_AT // AT_ONCE):
        found = shelf.find(Query(record.user_id, record.key, frozenset(), place, AT_ONCE))
        yield from (one for one in found if one.origin == SCHEDULE_ORIGIN)
        if len(found) < AT_ONCE:
            return
        place = found[-1].identity


def _log(paused: Record) -> None:
    details = {
        "action": "auto_paused",
        "user": paused.user_id,
        "schedule": paused.id,
        "flow": paused.flow,
        "failures": paused.policies.pause_after,
    }
    logger.error("a schedule was paused: it failed again and again", extra=details)

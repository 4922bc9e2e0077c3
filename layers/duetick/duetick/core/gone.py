"""Schedules whose flow or action is gone: the deployment does not have it any more.

Each of their occurrences would die. Each deployment and each hour counts these schedules and names
the first. If the deployment says so, the hour also pauses them, and resumes them once their flow is
back.
"""

import json
import logging
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Final

from duetick.core.audit import GONE
from duetick.core.flows import Flows
from duetick.core.store import Store
from duetick.domain.attempts import died_of_gone
from duetick.domain.errors import InvalidSchedule, VersionConflict
from duetick.domain.pausing import is_paused, pause, resume
from duetick.domain.schedule import Record, ScheduleName
from duetick.domain.states import Reason
from duetick.ports import Listed

MOST_NAMED: Final = 20
PATIENCE: Final = 3_600_000
"""Milliseconds from the first death to the pause: a wrong deployment that is mended by then pauses
nothing.
"""
HOUR_MS: Final = 3_600_000
GOLDEN: Final = (5**0.5 - 1) / 2
"""The multiples of the golden ratio, without their whole part, leave no place out for long: if an
hour has time for a tenth, each has its turn within a day.
"""
LOOKED_AT: Final = 500
ENDED: Final = frozenset({Reason.FIRED, Reason.FAILED, Reason.LOST, Reason.REJECTED})

BY_ITSELF: Final = (
    ", which this schedule runs. It goes on by itself once the application has that again."
)
"""The end of the note of a pause, by which the pause is known again."""

logger = logging.getLogger("duetick.gone")


@dataclass(frozen=True, slots=True)
class Gone:
    """`schedules` counts the active schedules whose flow or action is gone, and `first` names the
    flows or actions (`flow/action`) that most of them miss. `paused` and `resumed` count the
    changes that this look made. `unfinished` says that its time ended first.
    """

    schedules: int = 0
    first: list[tuple[str, int]] = field(default_factory=list)
    paused: int = 0
    resumed: int = 0
    unfinished: bool = False


def find_gone(
    store: Store,
    flows: Flows,
    now: int,
    *,
    pauses: bool = False,
    may_go_on: Callable[[], bool] = lambda: True,
) -> Gone:
    """Look at every schedule while `may_go_on` returns True; see `GoneLook`."""
    look = GoneLook(store, flows, now, pauses=pauses)
    for one in takewhile(lambda _: may_go_on(), store.shelf.every_book()):
        look.at(one)
    return look.end(may_go_on)


def count_gone(store: Store, flows: Flows, *, may_go_on: Callable[[], bool]) -> Gone | None:
    """Count these schedules after a deployment. Return None if that fails: the log says why.

    No schedule is paused: the hour after a deployment shows if the loss was meant. A failure does
    not fail the deployment, whose steps are taken by then: the next hour looks again.
    """
    try:
        return find_gone(store, flows, store.now(), may_go_on=may_go_on)
    except Exception:
        logger.exception("not counted", extra={"action": "gone_failed"})
        return None


def time_left(seconds: float, elapsed: Callable[[], float] = time.monotonic) -> Callable[[], bool]:
    """Return a function that returns True until so many seconds have passed."""
    end = elapsed() + seconds
    return lambda: elapsed() < end


class GoneLook:
    """A look at every schedule, one after another: `at` counts those whose flow or action is gone.

    With `pauses`, its `end` pauses the schedules that have died of it for an hour. In any case it
    resumes the schedules that it paused and whose flow is back. In a deployment without any flow,
    no schedule dies of it, and none is paused.
    """

    def __init__(self, store: Store, flows: Flows, now: int, *, pauses: bool) -> None:
        self._store, self._flows, self._now = store, flows, now
        self._pauses = pauses and bool(flows)
        self._counts: Counter[str] = Counter()
        self._to_change: list[ScheduleName] = []
        self._paused = self._resumed = 0

    def at(self, one: Listed) -> None:
        """Look at a schedule, or at a row that has no record."""
        record, row = one.record, one.row
        if record is None:
            if row and self._flows.missing(row.flow):
                self._counts[row.flow] += 1
        elif record.done_at is None:
            self._look_at(record, self._flows.missing(record.flow, record.action))

    def end(self, may_go_on: Callable[[], bool]) -> Gone:
        """Pause and resume while `may_go_on` returns True. Return the counts, keep them for
        overviews, and log them if there are any.

        Each hour begins at another place: if the time is never enough for all, each has its turn.
        """
        first = int(len(self._to_change) * (self._now // HOUR_MS * GOLDEN % 1))
        for name in (*self._to_change[first:], *self._to_change[:first]):
            if not may_go_on():
                break
            self._change(*name)
        found = self._report(unfinished=not may_go_on())
        kept = {"at": self._now, "schedules": found.schedules, "first": found.first}
        self._store.shelf.keep_note(GONE, json.dumps(kept))
        if found.schedules or found.paused or found.resumed:
            log = logger.error if found.schedules else logger.info
            log("gone", extra={"action": "gone", **_fields(found)})
        return found

    def _report(self, *, unfinished: bool) -> Gone:
        counts = +self._counts
        first = counts.most_common(MOST_NAMED)
        return Gone(counts.total(), first, self._paused, self._resumed, unfinished=unfinished)

    def _look_at(self, record: Record, missing: str | None) -> None:
        may_change = _is_paused_here(record)
        if missing is not None:
            fires = not is_paused(record, self._now)
            self._counts[missing] += fires
            may_change = fires and self._pauses and record.is_users
        if may_change:
            self._to_change.append((record.user_id, record.key))

    def _change(self, user_id: str, key: str) -> None:
        """Pause or resume a schedule as it is by now."""
        record = self._store.schedules.get(user_id, key)
        if record is None or record.done_at is not None:
            return
        missing = self._flows.missing(record.flow, record.action)
        if missing is None:
            self._resumed += _is_paused_here(record) and self._put(record, resumed=True)
        elif is_paused(record, self._now):
            return
        elif self._dies_of_it(record) and self._put(record, resumed=False):
            self._paused += 1
            self._counts[missing] -= 1

    def _dies_of_it(self, record: Record) -> bool:
        """Return True if an occurrence died of it an hour ago, and each one that ended since."""
        found = self._store.ledger.find(record.user_id, record.key, limit=LOOKED_AT)
        for one in (one for one in found if one.reason in ENDED):
            if not died_of_gone(one):
                return False
            if one.updated_at <= self._now - PATIENCE:
                return True
        return False

    def _put(self, record: Record, *, resumed: bool) -> bool:
        """Pause or resume a schedule. Return False if another changed the schedule, or it may not
        fire.
        """
        changed = resume(record) if resumed else pause(record, note_of(record), None, self._now)
        with suppress(VersionConflict, InvalidSchedule):
            self._store.schedules.put(changed, now=self._now, if_version=record)
            return True
        return False


def note_of(record: Record) -> str:
    """Return the note of the pause."""
    return f"The application no longer has {record.flow}/{record.action}{BY_ITSELF}"


def _is_paused_here(record: Record) -> bool:
    """Return True if the note is ours. Its schedule may have another flow by now."""
    return record.pause is not None and record.pause.note.endswith(BY_ITSELF)


def _fields(found: Gone) -> dict[str, object]:
    return {
        "schedules": found.schedules,
        "first": [{"flow": flow, "schedules": count} for flow, count in found.first],
        "paused": found.paused,
        "resumed": found.resumed,
        "unfinished": found.unfinished,
    }

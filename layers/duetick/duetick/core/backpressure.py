"""Backpressure: a tick hands on no more than dispatch begins.

A queue takes everything. If dispatch falls behind, packs come after their leases are over and begin
nothing, and ticks would lease and send the same again and again. So dispatch notes that it takes
packs, and how late; a tick notes how much it handed on. If packs come late, or nobody takes them,
the next tick hands on a quarter; if they come in time, twice as much, until nothing bounds it. What
is not handed on stays due: its misfire policy decides about it, as behind a slow API.

No note names a user or a schedule.
"""

import json
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from duetick.core.store import Store
from duetick.domain.errors import DuetickError

TAKEN: Final = "queue taken"
LATE: Final = "queue late"
HANDED: Final = "queue handed"

BEHIND_MS: Final = 15_000
"""The lateness from which on packs come late. The shortest lease ends 36 s after its due time."""

FRESH_MS: Final = 90_000
"""The time for which a note of late packs counts: a tick comes each minute."""

APART_MS: Final = 20_000
"""The least time between two notes of one process that packs are taken, or are late."""

ROUND_MS: Final = 45_000
"""The least time between two changes of the bound: packs must have come meanwhile."""

LEAST: Final = 1_000
"""A tick always hands on so many, so that it learns whether packs come in time again."""

logger = logging.getLogger("duetick.backpressure")


class Handed(NamedTuple):
    """The note of a tick: when it began, how many it handed on, and under which bound.

    `since` is the instant of the last change of the bound. `waits_since` is the first due time of
    what nobody is known to have taken; 0 if there is none.
    """

    at: int = 0
    handed: int = 0
    bound: int | None = None
    since: int = 0
    waits_since: int = 0

    def hand_on(self, count: int, due_at: int) -> "Handed":
        """Return the note after so many were handed on, the first of them due at an instant."""
        waits_since = self.waits_since or max(due_at, self.at)
        return self._replace(handed=self.handed + count, waits_since=waits_since)


class Taken(NamedTuple):
    """The note of dispatch: when it took a pack, and how late that was."""

    at: int = 0
    late: int = 0


@dataclass(slots=True)
class Notes:
    """The notes of one process of dispatch: at most one in twenty seconds."""

    store: Store
    _taken_at: int = -APART_MS
    _late_at: int = -APART_MS

    def note(self, now: int, late: int) -> None:
        """Note that a pack was taken, so many milliseconds after it was due."""
        if late >= BEHIND_MS and now - self._late_at >= APART_MS:
            self._late_at = self._taken_at = now
            _keep(self.store, LATE, Taken(now, late))
        elif now - self._taken_at >= APART_MS:
            self._taken_at = now
            _keep(self.store, TAKEN, Taken(now, late))


def begin_handing(store: Store, now: int) -> Handed:
    """Return the note of a tick that begins: with its bound, and nothing handed on yet."""
    last = Handed(*_read(store, HANDED, len(Handed._fields)))
    late, taken = (Taken(*_read(store, name, len(Taken._fields))) for name in (LATE, TAKEN))
    waits_since = last.waits_since
    if max(late.at, taken.at) >= waits_since - APART_MS:
        waits_since = 0
    stalled = waits_since > 0 and now - waits_since >= BEHIND_MS
    comes_late = late.late >= BEHIND_MS and now - late.at < FRESH_MS
    bound, since = last.bound, last.since
    if now - since >= ROUND_MS:
        bound = _next_bound(last, is_behind=stalled or comes_late)
        since = now if bound != last.bound else since
    return Handed(now, 0, bound, since, waits_since)


def keep_handed(store: Store, handed: Handed) -> None:
    """Keep the note of a tick that handed something on."""
    _keep(store, HANDED, handed)


def _next_bound(last: Handed, *, is_behind: bool) -> int | None:
    if is_behind:
        return max(LEAST, last.handed // 4)
    if last.bound is None or last.handed < last.bound:
        return None
    return last.bound * 2


def _keep(store: Store, name: str, note: Sequence[int | None]) -> None:
    """Keep a note. Without it, the next tick is less well advised, and nothing else happens."""
    try:
        store.shelf.keep_note(name, json.dumps(note))
    except DuetickError as problem:
        logger.warning("not noted: %s", problem, extra={"action": "note_failed"})


def _read(store: Store, name: str, most: int) -> list[int]:
    """Return the fields of a note; none if it is not there."""
    found = json.loads(store.shelf.note(name) or "[]")
    return list(found)[:most]

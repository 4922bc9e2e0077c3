"""Backpressure: a tick hands on no more than dispatch begins.

A queue takes everything. If dispatch falls behind, packs come after their leases are over and begin
nothing, and ticks would lease and send the same again and again. So dispatch notes that it takes
packs, and how late; a tick notes how much it handed on. If packs come late, or nobody takes them,
ticks hand on in rounds of ten seconds. While that lasts, each round halves what it hands on;
afterwards each round adds half as much again, until nothing waits any more and the bound is gone. A
row that is not handed on stays due: its misfire policy decides about it, as behind a slow API.

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

ROUND_MS: Final = 10_000
"""The time of a round: a bound is that of one."""

ROUNDS: Final = 6
"""The rounds from one tick to the next."""

FRESH_MS: Final = 15_000
"""The time for which a note of late packs counts."""

LATE_APART_MS: Final = 5_000
APART_MS: Final = 20_000
"""The least time between two notes of one process that packs come late, or are taken."""

LEAST: Final = 1_000
"""A round always hands on so many, so that ticks learn whether packs come in time again."""

logger = logging.getLogger("duetick.backpressure")


class Handed(NamedTuple):
    """The note of a round: its begin, the number that it handed on, and its bound. Without a bound,
    a tick is one round.

    `waits_since` is the first due time of the occurrences that dispatch is not known to have taken;
    0 if there are none. `left` is 1 if the round left due occurrences behind.
    """

    at: int = 0
    handed: int = 0
    bound: int | None = None
    waits_since: int = 0
    left: int = 0

    def hand_on(self, count: int, due_at: int) -> "Handed":
        """Return the note after `count` more were handed on, the first due at an instant."""
        waits_since = self.waits_since or max(due_at, self.at)
        return self._replace(handed=self.handed + count, waits_since=waits_since)


class Takings(NamedTuple):
    """The note of dispatch: the instant at which it took a pack, and the lateness of that."""

    at: int = 0
    late: int = 0


@dataclass(slots=True)
class Notes:
    """The notes of one process of dispatch, at most one in some seconds."""

    store: Store
    _taken_at: int = -APART_MS
    _late_at: int = -LATE_APART_MS

    def note(self, now: int, late: int) -> None:
        """Note that dispatch took a pack, and its lateness in milliseconds."""
        if late >= BEHIND_MS and now - self._late_at >= LATE_APART_MS:
            self._late_at = self._taken_at = now
            _keep(self.store, LATE, Takings(now, late))
        elif now - self._taken_at >= APART_MS:
            self._taken_at = now
            _keep(self.store, TAKEN, Takings(now, late))


def begin_handing(store: Store, now: int) -> Handed:
    """Return the note of a round that begins: with its bound, and nothing handed on yet."""
    last = Handed(*_read(store, HANDED, len(Handed._fields)))
    late, taken = (Takings(*_read(store, name, len(Takings._fields))) for name in (LATE, TAKEN))
    waits_since = last.waits_since
    if max(late.at, taken.at) >= waits_since - APART_MS:
        waits_since = 0
    stalled = waits_since > 0 and now - waits_since >= BEHIND_MS
    comes_late = late.late >= BEHIND_MS and now - late.at < FRESH_MS
    bound = last.bound
    if stalled or comes_late:
        bound = max(LEAST, last.handed // (2 * ROUNDS) if bound is None else bound // 2)
    elif bound is not None:
        bound = max(bound * 3 // 2, bound + 1) if last.left else None
    return Handed(now, 0, bound, waits_since)


def keep_handed(store: Store, handed: Handed) -> None:
    """Keep the note of a tick that handed something on."""
    _keep(store, HANDED, handed)


def _keep(store: Store, name: str, note: Sequence[int | None]) -> None:
    """Keep a note. If that fails, the next tick only knows less about its bound."""
    try:
        store.shelf.keep_note(name, json.dumps(note))
    except DuetickError as problem:
        logger.warning("not noted: %s", problem, extra={"action": "note_failed"})


def _read(store: Store, name: str, most: int) -> list[int]:
    """Return the fields of a note; none if it is not there."""
    found = json.loads(store.shelf.note(name) or "[]")
    return list(found)[:most]

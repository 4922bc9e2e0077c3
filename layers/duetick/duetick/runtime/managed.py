"""Trigger=managed in a function: it keeps bells in step, and asks for a tick when one is needed.

A deployment whose tick comes each minute loads nothing of it.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from functools import cache
from typing import Final

from duetick.core.managed.counting import BellLook, CountedBells
from duetick.core.managed.keeping import BellKeeper, Each
from duetick.core.managed.moving import make_rest_pending, move, settle
from duetick.core.managed.trigger import Trigger, read_trigger
from duetick.core.store import Store
from duetick.domain.identity import SCHEDULE_ORIGIN
from duetick.domain.occurrence import Occurrence, ScheduleName
from duetick.domain.policies import MINUTE_MS
from duetick.ports.bells import Bells
from duetick.runtime.eventbridge import ScheduleGroup
from duetick.runtime.telemetry import logger

HOUR_MS: Final = 60 * MINUTE_MS
SOON_MS: Final = 10_000
"""EventBridge has at least so much time to learn of a wake."""

LATE_MS: Final = 5 * MINUTE_MS
"""The time that a bell has before a tick claims its row."""

KNOWN_FOR: Final = 60.0
"""Seconds for which a process knows the note of the trigger."""

WORKERS: Final = 8

MOST_COUNTED: Final = 1_000


@cache
def _group(trigger: Trigger) -> ScheduleGroup:
    return ScheduleGroup(trigger)


@contextmanager
def _several() -> Iterator[Each]:
    """Yield a way to do several at once: EventBridge answers in some tens of milliseconds."""
    with ThreadPoolExecutor(WORKERS, "duetick-bells") as pool:
        yield pool.map


class Managed:
    """The bells of a store, under its trigger.

    Before a deployment has named the group of the bells, they stay pending, and no tick is asked
    for.
    """

    def __init__(
        self,
        store: Store,
        elapsed: Callable[[], float] = time.monotonic,
        *,
        bells: Callable[[Trigger], Bells] = _group,
        several: Callable[[], AbstractContextManager[Each]] = _several,
    ) -> None:
        self._store = store
        self._elapsed = elapsed
        self._bells = bells
        self._several = several
        self._read: tuple[float, Trigger | None] | None = None

    def trigger(self) -> Trigger | None:
        """Return the trigger, as it was in the last minute; None unless bells ring."""
        now = self._elapsed()
        if self._read is None or now - self._read[0] >= KNOWN_FOR:
            self._read = now, read_trigger(self._store)
        _, found = self._read
        return found if found and found.is_managed else None

    def late_ms(self) -> int:
        """Return the milliseconds for which a tick leaves rows to their bells."""
        found = self.trigger()
        return LATE_MS if found and found.settled else 0

    def keep(self, name: ScheduleName) -> None:
        """Bring a bell in step."""
        keeper = self._keeper()
        if keeper:
            keeper.keep(name)

    def saw_late(self, occurrence: Occurrence) -> None:
        """Make the bell pending that, as far as a tick can see, did not ring for an occurrence."""
        first = occurrence.origin == SCHEDULE_ORIGIN and occurrence.fence == 1
        now, name = self._store.now(), (occurrence.user_id, occurrence.key)
        if first and self.late_ms() and occurrence.nominal_at <= now - LATE_MS:
            self._store.shelf.make_bells_pending([name], now)

    def mend(self, name: ScheduleName) -> None:
        """Bring a bell in step that was found out of step."""
        keeper = self._keeper()
        if keeper:
            keeper.mend(name)

    def wake(self, due: int) -> None:
        """Ask for a tick once something is due, unless the hourly one comes by then.

        A failure is logged: the hourly tick finds the rows.
        """
        found, soon = self.trigger(), self._store.now() + SOON_MS
        at = -(-max(due, soon) // MINUTE_MS) * MINUTE_MS
        if found is None or at >= (soon // HOUR_MS + 1) * HOUR_MS:
            return
        try:
            self._bells(found).wake(at)
        except Exception:
            logger.exception("no tick was asked for", extra={"action": "wake_failed"})

    def delete(self, names: Sequence[ScheduleName]) -> None:
        """Delete bells. Raises BellsUnavailable."""
        keeper = self._keeper()
        if keeper:
            with self._several() as each:
                keeper.delete(names, each)

    def go_on(self, may_go_on: Callable[[], bool]) -> int:
        """Bring pending bells in step while there is time, and ask for the next tick.

        Return the number that stay pending, up to `MOST_COUNTED`. A tick ends with this call, and
        so does a deployment that moved to bells. Until all bells are made after the move, the next
        tick comes in a minute.
        """
        self._read = None
        found = self.trigger()
        if found is None:
            return 0
        found = make_rest_pending(self._store, found, may_go_on)
        with self._several() as each:
            BellKeeper(self._store, self._bells(found)).keep_pending(may_go_on, each)
        found = settle(self._store, found)
        self._read = self._elapsed(), found
        due = self._store.shelf.next_due() if found.settled else 0
        if due is not None:
            self.wake(due)
        return len(self._store.shelf.pending_bells(MOST_COUNTED))

    def move(self, wanted: Trigger, may_go_on: Callable[[], bool]) -> None:
        """Give the store the trigger of a deployment."""
        move(self._store, wanted, may_go_on)
        self._read = None

    def look(self, now: int) -> BellLook | None:
        """Return the hourly look at the bells, if any ring."""
        found = self.trigger()
        return BellLook(self._store, self._bells(found), now) if found else None

    def end_look(self, look: BellLook, may_go_on: Callable[[], bool]) -> CountedBells:
        """End a look at the bells. Return the number of missing bells, and of bells without a
        row.
        """
        keeper = self._keeper()
        return look.end(keeper, may_go_on) if keeper else CountedBells()

    def _keeper(self) -> BellKeeper | None:
        found = self.trigger()
        return BellKeeper(self._store, self._bells(found)) if found else None

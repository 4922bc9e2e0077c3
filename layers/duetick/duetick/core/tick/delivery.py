"""The deliveries of a tick, and the slots in which they wait for their answers.

Each answer is counted; an occurrence that never began is released. There are as many slots as keep
a processor busy, as long as the endpoint takes them: the longer answers take, the more slots a tick
needs for the same pace.
"""

import logging
import threading
from collections.abc import Sequence
from typing import Final, Literal, TypeAlias

from duetick.core.log_lines import about
from duetick.core.store import Store
from duetick.core.tick.places import Places
from duetick.core.tick.report import Tally
from duetick.domain.attempts import reject
from duetick.domain.identity import why_not_carried
from duetick.domain.schedule import Occurrence
from duetick.ports import Clock, Delivered, Observer, Transport

DOWN: Final = frozenset({0, 401, 403})
"""Statuses below 500 that point to the endpoint rather than to the occurrence."""

BUSY: Final = frozenset({429, 502, 503})
"""Statuses by which an endpoint says that it has too much to do."""

EndpointState: TypeAlias = Literal["up", "busy", "down"]

PACE: Final = 5_000
"""The deliveries a second that a processor makes at best. So many slots times the seconds of an
answer keep it busy.
"""

LEAST_ANSWERS: Final = 64
"""The fewest answers whose mean says how long an answer takes."""

NOT_CARRIED: Final = '{"error": "invalid_schedule_id"}'
"""The answer that dispatch would give."""

logger = logging.getLogger("duetick.tick")


class Undelivered:
    """Claimed rows that a tick does not deliver: it gives them back, or rejects them."""

    def __init__(
        self, store: Store, tally: Tally, clock: Clock, on_dispatch: Observer | None
    ) -> None:
        self._store = store
        self._tally = tally
        self._clock = clock
        self._on_dispatch = on_dispatch

    def give_back(self, occurrence: Occurrence) -> bool:
        """Release an occurrence. Return False if it began.

        If the store does not answer, return True: the lease ends by itself.
        """
        try:
            return self._store.ledger.release(
                occurrence, now=self._clock(), on_lost=self._tally.count_lost
            )
        except Exception:
            details = {"action": "release_failed", **about(occurrence)}
            logger.warning("not released", extra=details, exc_info=True)
            return True

    def give_back_all(self, occurrences: Sequence[Occurrence], seconds: float) -> None:
        """Release occurrences while there is time. The ends of their leases free the others."""
        end = self._clock() + int(seconds * 1_000)
        for occurrence in occurrences:
            if self._clock() >= end:
                break
            self.give_back(occurrence)
        self._tally.count_given_back(len(occurrences))

    def reject(self, occurrence: Occurrence) -> Delivered | None:
        """Reject an occurrence whose name no path carries: no delivery of it could ever reach
        dispatch.

        Return None if a path carries the name.
        """
        why = why_not_carried(occurrence.flow, occurrence.user_id, occurrence.key)
        if why is None:
            return None
        message = f"No path carries the name of its row: {why} Put the row under another name."
        try:
            dead = self._store.ledger.reject(
                occurrence, reject(message), now=self._clock(), on_lost=self._tally.count_lost
            )
        except Exception as error:
            details = {"action": "reject_failed", **about(occurrence)}
            logger.exception("not rejected", extra=details)
            return Delivered(0, f"{type(error).__name__}: {error}")
        if dead:
            self._tally.count_rejected(dead)
        return Delivered(400, NOT_CARRIED)

    def observe(self, occurrence: Occurrence, delivery: Delivered) -> None:
        """Show a delivery to the observer. If that raises, nothing else changes."""
        try:
            if self._on_dispatch:
                self._on_dispatch(occurrence, delivery.status)
        except BaseException:
            details = {"action": "hook_failed", **about(occurrence)}
            logger.warning("a hook raised", extra=details, exc_info=True)


class Deliveries:
    """The transport of one tick, with counts and releases. All of its threads share it."""

    def __init__(
        self,
        transport: Transport,
        tally: Tally,
        clock: Clock,
        undelivered: Undelivered,
        *,
        places: Places,
    ) -> None:
        self._transport = transport
        self._tally = tally
        self._clock = clock
        self._undelivered = undelivered
        self._places = places

    def deliver(self, occurrence: Occurrence, timeout: float) -> EndpointState:
        """Deliver an occurrence, and count the answer. Return the state that the endpoint seems to
        have.
        """
        lateness_ms = self._clock() - occurrence.due_at
        rejected = self._undelivered.reject(occurrence)
        delivery = rejected or self._call_transport(occurrence, timeout)
        state: EndpointState = "up"
        if not self._tally.count_answer(occurrence, delivery, lateness_ms):
            never_began = self._undelivered.give_back(occurrence)
            state = _endpoint_state(delivery) if never_began else "up"
        self._places.answer(occurrence, delivery, self._clock())
        self._undelivered.observe(occurrence, delivery)
        return state

    def _call_transport(self, occurrence: Occurrence, timeout: float) -> Delivered:
        """Call the transport. It may raise anything, even SystemExit: no thread is lost to it."""
        try:
            return self._transport.deliver(occurrence, timeout=timeout)
        except BaseException as error:
            details = {"action": "transport_failed", **about(occurrence)}
            logger.exception("a transport raised", extra=details)
            return Delivered(0, f"{type(error).__name__}: {error}")


def _endpoint_state(failed: Delivered) -> EndpointState:
    if failed.status in BUSY:
        return "busy"
    return "down" if failed.status in DOWN or failed.status >= 500 else "up"


class Slots:
    """The number of slots: `least` at first, never more than `most`.

    It grows twofold at most, and only after as many answers as there are slots. The quickest mean
    so far counts: if answers become slower because there are more of them, no slot helps. If
    the endpoint says that it is busy, half of the slots remain, and the tick never again comes near
    the number at which that happened.
    """

    def __init__(self, least: int, most: int) -> None:
        self._least = least
        self._bound = max(least, most)
        self._lock = threading.Lock()
        self._answers = 0
        self._seconds = 0.0
        self._quickest: float | None = None
        self._is_busy = False
        self.most = self._bound
        self.now = least

    def note(self, seconds: float, *, is_busy: bool) -> None:
        """Count an answer that took so long."""
        with self._lock:
            self._answers += 1
            self._seconds += seconds
            self._is_busy = self._is_busy or is_busy

    def adapt(self, in_line: int) -> bool:
        """Change the number for a line of that length. Return True if the number is another one."""
        with self._lock:
            before = self.now
            if self._is_busy:
                self._shrink()
            elif self._answers >= max(LEAST_ANSWERS, self.now):
                self._grow(in_line)
            return self.now != before

    def _shrink(self) -> None:
        self._bound = max(self._least, self.now * 3 // 4)
        self.now = max(self._least, self.now // 2)
        self._is_busy = False
        self._begin_window()

    def _grow(self, in_line: int) -> None:
        mean = self._seconds / self._answers
        self._quickest = mean if self._quickest is None else min(mean, self._quickest)
        if in_line >= self.now:
            wanted = min(round(self._quickest * PACE), 2 * self.now, self._bound)
            self.now = max(self.now, wanted)
        self._begin_window()

    def _begin_window(self) -> None:
        self._answers, self._seconds = 0, 0.0

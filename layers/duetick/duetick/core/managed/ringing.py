"""A ring: the call of a bell claims its row, and delivers what that leases.

The row decides, as in a tick. The claim's own write advances the row, so a ring that comes twice,
or after a tick, finds nothing due. If occurrences wait after that, a follower asks for a tick.
"""

import logging
import time
from collections.abc import Callable, Sequence
from typing import Final

from duetick.core.log_lines import log_dead
from duetick.core.store import Store
from duetick.core.store.index import OneClaim
from duetick.core.witness import check_witness
from duetick.domain.bells import Ring, digest_of_bell
from duetick.domain.identity import schedule_id
from duetick.domain.occurrence import Occurrence, ScheduleName
from duetick.domain.paging import place_of
from duetick.domain.states import LEASED, Reason, State
from duetick.ports import Query, Tell, Witness

EARLY_MS: Final = 5_000
"""The longest that a ring waits for its row: the clocks of two services differ so much at most."""

LEAST_LEFT: Final = 5.0
"""Seconds without which a delivery does not begin."""

logger = logging.getLogger("duetick.managed")


def has_its_line(_status: int) -> bool:
    """Return True: each has a line."""
    return True


class Ringer:
    """Answers the rings of one store.

    `deliver` runs an occurrence in some seconds, and returns the status of its answer. `heal`
    brings the bell of a schedule in step; `wake` asks for a tick at an instant. `has_line` says
    whether an answer of that status has a line in the log.
    """

    def __init__(
        self,
        store: Store,
        deliver: Callable[[Occurrence, float], int],
        *,
        witness: Witness | None = None,
        heal: Callable[[ScheduleName], object],
        wake: Callable[[int], object],
        tell: Tell,
        sleep: Callable[[float], object] = time.sleep,
        has_line: Callable[[int], bool] = has_its_line,
    ) -> None:
        self._store = store
        self._deliver = deliver
        self._witness = witness
        self._heal = heal
        self._wake = wake
        self._tell = tell
        self._sleep = sleep
        self._has_line = has_line

    def answer(self, ring: Ring, left: Callable[[], float]) -> int:
        """Answer a ring while seconds are `left`. Return the number of delivered occurrences.

        An occurrence for which no time is left is released. Raises StoreRestored if the store is
        older than its witness: nothing is claimed then.
        """
        now = self._store.now()
        if self._witness:
            check_witness(self._store, self._witness, now)
        claimed = self._claim(ring, now)
        if claimed.row is None or digest_of_bell(claimed.row) != ring.digest:
            self._heal((ring.user_id, ring.key))
        if not claimed.made:
            self._look_after(ring)
        return self._deliver_all(claimed.made, left)

    def _claim(self, ring: Ring, now: int) -> OneClaim:
        claimed = self._claim_at(ring, now)
        early = claimed.row.next_fire_at - now if claimed.row else 0
        if 0 < early <= EARLY_MS:
            self._sleep(early / 1_000)
            return self._claim_at(ring, now + early)
        return claimed

    def _claim_at(self, ring: Ring, now: int) -> OneClaim:
        store = self._store
        return store.index.claim_one(
            ring.user_id,
            ring.key,
            now=now,
            pauses=store.pauses.announce(now, now),
            limits=store.limits.current(now),
        )

    def _look_after(self, ring: Ring) -> None:
        """Ask for a tick at the end of the lease that the schedule has: EventBridge or Lambda rings
        again if a process died.
        """
        query = Query(ring.user_id, ring.key, LEASED, place_of(None), 1)
        for one in self._store.shelf.find(query):
            if one.lease_until is not None:
                self._wake(one.lease_until)

    def _deliver_all(self, made: Sequence[Occurrence], left: Callable[[], float]) -> int:
        delivered = 0
        for one in made:
            if one.reason is Reason.POISONED:
                log_dead(one)
                self._tell("poisoned", one)
            elif one.state is State.QUEUED and left() >= LEAST_LEFT:
                self._log(one, self._deliver(one, left()))
                delivered += 1
            elif one.state is State.QUEUED:
                self._store.ledger.release(one)
        return delivered

    def _log(self, one: Occurrence, status: int) -> None:
        if not self._has_line(status):
            return
        details = {
            "action": "ring",
            "user": one.user_id,
            "schedule": schedule_id(one.user_id, one.key),
            "occurrence": one.id,
            "status": status,
        }
        logger.info("ring", extra=details)

"""What a tick claims: a chunk at a time, and no more than it can deliver."""

from collections.abc import Sequence
from typing import Final

from duetick.core.deaths import log_dead
from duetick.domain.schedule import Occurrence
from duetick.ports import Store

MARGIN: Final = 5.0
"""Seconds that a delivery may take beyond its action's timeout, and the least that it is given."""


class Claiming:
    """What is claimed, a chunk at a time; `over` when nothing is left to be claimed.

    `lost` counts what had run out of attempts or time, `poisoned` the rows that cannot be read.
    """

    def __init__(
        self, store: Store, now: int, chunk: int, *, look_ahead: int, budget: float
    ) -> None:
        self._store = store
        self._now = now
        self._chunk = chunk
        self._ahead = max(0, min(look_ahead, int((budget - MARGIN) * 1_000)))
        self._turns = (self._waiting, self._due)
        self.over = False
        self.lost = 0
        self.poisoned = 0

    def next(self, deliverable: int) -> Sequence[Occurrence]:
        """As many as can be delivered in the time that is left; none is the end.

        Everything is claimed as of the tick's own `now`: what is given back meanwhile is the next
        tick's, so that an endpoint that is down is not called over and over.
        """
        limit = max(1, min(self._chunk, deliverable))
        first, then = self._turns
        self._turns = then, first  # a mass of retries does not keep what is due from its turn
        claimed = first(limit) or then(limit)
        self.over = not claimed
        return claimed

    def _waiting(self, limit: int) -> Sequence[Occurrence]:
        return self._store.ledger.claim_waiting(
            self._now, limit, ahead=self._ahead, on_lost=self._count_lost
        )

    def _due(self, limit: int) -> Sequence[Occurrence]:
        return self._store.index.claim_due(
            self._now, limit, ahead=self._ahead, on_poisoned=self._count_poisoned
        )

    def _count_lost(self, occurrence: Occurrence) -> None:
        self.lost += 1
        log_dead(occurrence)

    def _count_poisoned(self, occurrence: Occurrence) -> None:
        self.poisoned += 1
        log_dead(occurrence)

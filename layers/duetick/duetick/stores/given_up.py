"""What a store gives up by itself, with nobody who waits for an answer: counted, and logged."""

import logging
import threading
from collections import Counter
from collections.abc import Iterable, Mapping

from duetick.domain.schedule import Occurrence
from duetick.domain.states import Reason

logger = logging.getLogger("duetick.store")


class GivenUp:
    """The occurrences that were lost, and the rows that cannot be read, until they are told."""

    def __init__(self) -> None:
        self._counted: Counter[Reason] = Counter()
        self._lock = threading.Lock()

    def add(self, written: Iterable[Occurrence]) -> None:
        """Those of what was written that were given up. To be called when they are committed."""
        for one in written:
            if one.reason in (Reason.LOST, Reason.POISONED):
                with self._lock:
                    self._counted[one.reason] += 1
                _log(one)

    def take(self) -> Mapping[Reason, int]:
        """How many of each since this was last asked."""
        with self._lock:
            told, self._counted = self._counted, Counter()
        return told


def _log(one: Occurrence) -> None:
    details = {
        "action": "dead",
        "occurrence": one.id,
        "schedule": one.schedule_id,
        "user": one.user_id,
        "flow": one.flow,
        "reason": one.reason,
        "attempts": one.attempts,
    }
    logger.error("dead: %s", one.reason, extra=details)

"""Who is next: users take turns, and none holds more than half of the slots while others wait."""

import threading
from collections import deque
from collections.abc import Iterable

from duetick.domain.schedule import Occurrence


class Turns:
    """Occurrences waiting to be delivered. One schedule's go one after another, in order."""

    def __init__(self, occurrences: Iterable[Occurrence], slots: int) -> None:
        self._half = max(1, slots // 2)
        self._changed = threading.Condition()
        self._waiting: dict[str, deque[Occurrence]] = {}
        self._in_flight: dict[str, int] = {}
        self._running: set[tuple[str, str]] = set()
        for occurrence in sorted(occurrences, key=_urgency):
            self._waiting.setdefault(occurrence.user_id, deque()).append(occurrence)

    def take(self) -> Occurrence | None:
        """The next one, when it may go; None when none is left."""
        with self._changed:
            while self._waiting:
                taken = self._pick()
                if taken is not None:
                    return taken
                self._changed.wait()
            return None

    def done(self, occurrence: Occurrence) -> None:
        """Its slot is free again."""
        with self._changed:
            self._running.discard((occurrence.user_id, occurrence.key))
            self._in_flight[occurrence.user_id] -= 1
            self._changed.notify_all()

    def rest(self) -> list[Occurrence]:
        """Take back all that still wait."""
        with self._changed:
            left = [one for queue in self._waiting.values() for one in queue]
            self._waiting.clear()
            self._changed.notify_all()
            return left

    def _pick(self) -> Occurrence | None:
        for user_id in list(self._waiting):
            alone = len(self._waiting) == 1
            if alone or self._in_flight.get(user_id, 0) < self._half:
                taken = self._first_free(user_id)
                if taken is not None:
                    return taken
        return None

    def _first_free(self, user_id: str) -> Occurrence | None:
        queue = self._waiting[user_id]
        for occurrence in queue:
            if (user_id, occurrence.key) not in self._running:
                queue.remove(occurrence)
                self._start(user_id, occurrence)
                return occurrence
        return None

    def _start(self, user_id: str, occurrence: Occurrence) -> None:
        queue = self._waiting.pop(user_id)
        if queue:
            self._waiting[user_id] = queue
        self._running.add((user_id, occurrence.key))
        self._in_flight[user_id] = self._in_flight.get(user_id, 0) + 1


def _urgency(occurrence: Occurrence) -> tuple[int, int, int, str, int]:
    """Ended leases and retries first, by priority, then by due time."""
    again = occurrence.fence > 1
    return (
        not again,
        -occurrence.priority,
        occurrence.due_at,
        occurrence.key,
        occurrence.nominal_at,
    )

"""The slots of a tick: as many as keep a processor busy, as long as the endpoint takes them.

While a delivery waits for its answer, its slot does nothing. So the longer answers take, the more
slots a tick needs for the same pace. What it may have is bounded by its memory.
"""

import threading
from typing import Final

PACE: Final = 5_000
"""The deliveries a second that a processor makes at best. So many slots times the seconds of an
answer keep it busy.
"""

LEARNED: Final = 64
"""The answers after which a tick knows how long they take."""

THROTTLED: Final = frozenset({429, 502, 503})
"""The answers of an endpoint that has too much to do."""


class Slots:
    """The number of slots: `least` at first, `most` at most."""

    def __init__(self, least: int, most: int) -> None:
        self._least = least
        self._most = max(least, most)
        self._lock = threading.Lock()
        self._answers = 0
        self._seconds = 0.0
        self._throttled = False
        self.now = least

    @property
    def most(self) -> int:
        """The most that there ever are."""
        return self._most

    def answered(self, seconds: float, status: int) -> None:
        """Note an answer."""
        with self._lock:
            self._answers += 1
            self._seconds += seconds
            self._throttled = self._throttled or status in THROTTLED

    def adapt(self, in_line: int) -> bool:
        """Change the number, now that so many wait in line. Return True if it is another one."""
        with self._lock:
            before, self.now = self.now, self._wanted(in_line)
            return self.now != before

    def _wanted(self, in_line: int) -> int:
        if self._throttled:
            self._throttled, self._answers, self._seconds = False, 0, 0.0
            return max(self._least, self.now // 2)
        if self._answers < LEARNED or in_line < self.now:
            return self.now
        busy = int(self._seconds / self._answers * PACE)
        return max(self.now, min(busy, self._most))

"""The slots of a tick: as many as keep a processor busy, as long as the endpoint takes them.

While a delivery waits for its answer, its slot does nothing. So the longer answers take, the more
slots a tick needs for the same pace.
"""

import threading
from typing import Final

PACE: Final = 5_000
"""The deliveries a second that a processor makes at best. So many slots times the seconds of an
answer keep it busy.
"""

LEAST_ANSWERS: Final = 64
"""The fewest answers whose mean says how long an answer takes."""


class Slots:
    """The number of slots: `least` at first, never more than `most`.

    It grows twofold at most, and only after as many answers as there are slots. What counts is the
    quickest mean so far: if answers become slower because there are more of them, no slot helps. If
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
        """Change the number, now that so many wait in line. Return True if it is another one."""
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

"""Who is next: users take turns, and none holds more than half of the slots while others wait."""

import heapq
import threading
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from duetick.domain.lifecycle import came_back
from duetick.domain.schedule import Occurrence

Urgency: TypeAlias = tuple[int, int, int, str, int]
Name: TypeAlias = tuple[str, str]


@dataclass(slots=True)
class _User:
    """One user's: the first of each schedule that is not under way, by urgency; the others behind.

    `ready` holds (urgency, number, occurrence): the number keeps occurrences from being compared.
    """

    ready: list[tuple[Urgency, int, Occurrence]] = field(default_factory=list)
    behind: dict[str, deque[Occurrence]] = field(default_factory=dict)
    waiting: int = 0
    in_flight: int = 0
    in_line: bool = False


class Turns:
    """Occurrences waiting to be delivered. One schedule's go one after another, in order.

    Every operation costs O(log n) of one user's, whatever the others have: users stand in a line,
    the first of it gives one occurrence and goes to its end. Who has half of the slots leaves the
    line until one of its own is done, unless nobody else waits.
    """

    def __init__(self, occurrences: Iterable[Occurrence], slots: int) -> None:
        self._half = max(1, slots // 2)
        lock = threading.RLock()
        self._changed, self._lower = threading.Condition(lock), threading.Condition(lock)
        self._users: dict[str, _User] = {}
        self._line: deque[str] = deque()
        self._full: dict[str, None] = {}
        self._number = 0
        self._idle = 0
        self._few, self._of_foremost = 0, False
        self._closed = False
        self.waiting = self.foremost = 0
        """All that wait; and of each user's no more than may be under way while others wait."""
        self.add(occurrences)

    def add(self, occurrences: Iterable[Occurrence]) -> None:
        """Let them wait for their turn."""
        with self._changed:
            before = self.waiting
            for occurrence in sorted(occurrences, key=_urgency):
                self._wait(occurrence)
            self._changed.notify(self.waiting - before)

    def take(self) -> Occurrence | None:
        """The next one, when it may go; None when nothing waits and nothing will come."""
        with self._changed:
            while True:
                taken = self._pick()
                if taken is not None:
                    self._wake_another()
                    return taken
                if self._closed and not self.waiting:
                    self._changed.notify_all()
                    return None
                self._idle += 1
                self._changed.wait()
                self._idle -= 1

    def done(self, occurrence: Occurrence) -> None:
        """Its slot is free again."""
        with self._changed:
            user = self._users[occurrence.user_id]
            user.in_flight -= 1
            behind = user.behind.pop(occurrence.key)
            if behind:
                user.behind[occurrence.key] = behind
                self._make_ready(user, behind.popleft())
            self._full.pop(occurrence.user_id, None)
            self._line_up(occurrence.user_id)
            if not user.behind and not user.ready:
                del self._users[occurrence.user_id]
            self._wake_another()

    def wait_until_fewer(self, than: int, seconds: float, *, foremost: bool) -> None:
        """Until fewer wait, or fewer of the foremost, or the time is over."""
        with self._changed:
            self._few, self._of_foremost = than, foremost
            self._lower.wait_for(self._are_few, seconds)
            self._few = 0

    def _are_few(self) -> bool:
        return (self.foremost if self._of_foremost else self.waiting) < self._few

    def close(self) -> None:
        """Nothing more will come."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def rest(self) -> Sequence[Occurrence]:
        """Take back all that still wait."""
        with self._changed:
            left = [one for user in self._users.values() for one in _give_up(user)]
            self._line.clear()
            self._full.clear()
            for user in self._users.values():
                user.in_line, user.waiting = False, 0
            self.waiting = self.foremost = 0
            self._changed.notify_all()
            return left

    def _wait(self, occurrence: Occurrence) -> None:
        user = self._users.setdefault(occurrence.user_id, _User())
        self.waiting += 1
        user.waiting += 1
        self.foremost += user.waiting <= self._half
        behind = user.behind.get(occurrence.key)
        if behind is not None:
            behind.append(occurrence)
            return
        user.behind[occurrence.key] = deque()
        self._make_ready(user, occurrence)
        if occurrence.user_id not in self._full:
            self._line_up(occurrence.user_id)

    def _make_ready(self, user: _User, occurrence: Occurrence) -> None:
        self._number += 1
        heapq.heappush(user.ready, (_urgency(occurrence), self._number, occurrence))

    def _line_up(self, user_id: str) -> None:
        user = self._users[user_id]
        if user.ready and not user.in_line:
            user.in_line = True
            self._line.append(user_id)

    def _pick(self) -> Occurrence | None:
        while self._line:
            user_id = self._line.popleft()
            user = self._users[user_id]
            user.in_line = False
            if user.in_flight < self._half or not (self._line or self._full):
                return self._start(user_id, user)
            self._full[user_id] = None
        if len(self._full) == 1:
            user_id, _ = self._full.popitem()
            return self._start(user_id, self._users[user_id])
        return None

    def _start(self, user_id: str, user: _User) -> Occurrence:
        occurrence = heapq.heappop(user.ready)[2]
        user.in_flight += 1
        self.waiting -= 1
        self.foremost -= user.waiting <= self._half
        user.waiting -= 1
        if self._are_few():
            self._lower.notify()
        self._line_up(user_id)
        return occurrence

    def _wake_another(self) -> None:
        """One more may go: the one who is woken looks, and wakes the next."""
        if self._idle and (self._line or self._full or (self._closed and not self.waiting)):
            self._changed.notify()


def _give_up(user: _User) -> Sequence[Occurrence]:
    left = [occurrence for _, _, occurrence in user.ready]
    ready = {occurrence.key for occurrence in left}
    left += [occurrence for behind in user.behind.values() for occurrence in behind]
    user.ready.clear()
    user.behind = {key: deque() for key in user.behind if key not in ready}
    return left


def _urgency(occurrence: Occurrence) -> Urgency:
    """Ended leases first, then by priority, then by due time: a retry is one like the others."""
    return (
        not came_back(occurrence),
        -occurrence.priority,
        occurrence.due_at,
        occurrence.key,
        occurrence.nominal_at,
    )

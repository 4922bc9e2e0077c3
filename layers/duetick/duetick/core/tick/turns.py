"""The line of a tick. Users take turns; while others wait, none has more than half of the slots."""

import heapq
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from duetick.core.threads import REAL, Threads
from duetick.domain.schedule import Occurrence
from duetick.domain.transitions import came_back

Urgency: TypeAlias = tuple[int, int, int, str, int]


@dataclass(slots=True)
class _User:
    """The occurrences of one user that wait.

    `ready` has the first of each schedule that is not under way, by urgency; `behind` has the
    others. An entry of `ready` is (urgency, number, occurrence): the number keeps occurrences from
    being compared.
    """

    ready: list[tuple[Urgency, int, Occurrence]] = field(default_factory=list)
    behind: dict[str, deque[Occurrence]] = field(default_factory=dict)
    in_line: int = 0
    in_flight: int = 0
    is_next: bool = False


class Turns:
    """The occurrences that are to be delivered, in turns. Those of one schedule go one after
    another, in order.

    Users stand in a line. The first user gives one occurrence and goes to the end. A user who has
    half of the slots leaves the line until one of them is done, unless nobody else waits. Every
    operation costs O(log n) of one user's occurrences, however many the others have.
    """

    def __init__(
        self, occurrences: Iterable[Occurrence], slots: int, threads: Threads = REAL
    ) -> None:
        self._slots = slots
        self._in_flight = 0
        self._changed, self._came_true = threads.conditions()
        self._users: dict[str, _User] = {}
        self._line: deque[str] = deque()
        self._full: dict[str, None] = {}
        self._number = 0
        self._idle = 0
        self._awaited: Callable[[], bool] = _never
        self._closed = False
        self.in_line = 0
        self.add(occurrences)

    def resize(self, slots: int) -> None:
        """Set the number of slots from now on. Calls in flight stay."""
        with self._changed:
            self._slots = slots
            self._wake_another()

    def add(self, occurrences: Iterable[Occurrence]) -> None:
        """Put occurrences into the line."""
        with self._changed:
            before = self.in_line
            for occurrence in sorted(occurrences, key=_urgency):
                self._add_one(occurrence)
            self._changed.notify(self.in_line - before)

    def take(self) -> Occurrence | None:
        """Wait for the next occurrence that may go. Return None if the line is empty and closed."""
        with self._changed:
            while True:
                taken = self._pick()
                if taken is not None:
                    self._wake_another()
                    return taken
                if self._closed and not self.in_line:
                    self._changed.notify_all()
                    return None
                self._idle += 1
                self._changed.wait()
                self._idle -= 1

    def free(self, occurrence: Occurrence) -> None:
        """Free the slot of an occurrence."""
        with self._changed:
            user = self._users[occurrence.user_id]
            user.in_flight -= 1
            self._in_flight -= 1
            behind = user.behind.pop(occurrence.key)
            if behind:
                user.behind[occurrence.key] = behind
                self._make_ready(user, behind.popleft())
            self._full.pop(occurrence.user_id, None)
            self._queue_user(occurrence.user_id)
            if not user.behind and not user.ready:
                del self._users[occurrence.user_id]
            self._wake_another()
            self._wake_waiter()

    def wait_until_fewer(self, than: int, seconds: float) -> None:
        """Wait until fewer than that stand in line, or until the time is over."""
        self.wait_until(lambda: self.in_line < than, seconds)

    def wait_until(self, ready: Callable[[], bool], seconds: float) -> None:
        """Wait until a start or an end makes it true, or until the time is over. One thread at a
        time may wait.
        """
        with self._changed:
            self._awaited = ready
            self._came_true.wait_for(ready, seconds)
            self._awaited = _never

    def _wake_waiter(self) -> None:
        """Wake the thread that waits, if it has cause: to be woken costs as much as a quick
        delivery.
        """
        if self._awaited():
            self._came_true.notify()

    def full(self, share: int, beside: Mapping[str, int]) -> set[str]:
        """Return the users who have a share in line, with the occurrences that `beside` counts."""
        with self._changed:
            counts = Counter({name: user.in_line for name, user in self._users.items()})
        counts.update(beside)
        return {name for name, count in counts.items() if count >= share}

    def close(self) -> None:
        """Close the line: nothing more will come."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def rest(self) -> Sequence[Occurrence]:
        """Take back all occurrences that still wait."""
        with self._changed:
            waiting = [one for user in self._users.values() for one in _empty(user)]
            self._line.clear()
            self._full.clear()
            for user in self._users.values():
                user.is_next, user.in_line = False, 0
            self.in_line = 0
            self._changed.notify_all()
            return waiting

    def _add_one(self, occurrence: Occurrence) -> None:
        user = self._users.setdefault(occurrence.user_id, _User())
        self.in_line += 1
        user.in_line += 1
        behind = user.behind.get(occurrence.key)
        if behind is not None:
            behind.append(occurrence)
            return
        user.behind[occurrence.key] = deque()
        self._make_ready(user, occurrence)
        if occurrence.user_id not in self._full:
            self._queue_user(occurrence.user_id)

    def _make_ready(self, user: _User, occurrence: Occurrence) -> None:
        self._number += 1
        heapq.heappush(user.ready, (_urgency(occurrence), self._number, occurrence))

    def _queue_user(self, user_id: str) -> None:
        user = self._users[user_id]
        if user.ready and not user.is_next:
            user.is_next = True
            self._line.append(user_id)

    def _pick(self) -> Occurrence | None:
        if self._in_flight >= self._slots:
            return None
        while self._line:
            user_id = self._line.popleft()
            user = self._users[user_id]
            user.is_next = False
            if user.in_flight < max(1, self._slots // 2) or not (self._line or self._full):
                return self._start(user_id, user)
            self._full[user_id] = None
        if len(self._full) == 1:
            user_id, _ = self._full.popitem()
            return self._start(user_id, self._users[user_id])
        return None

    def _start(self, user_id: str, user: _User) -> Occurrence:
        occurrence = heapq.heappop(user.ready)[2]
        user.in_flight += 1
        self._in_flight += 1
        self.in_line -= 1
        user.in_line -= 1
        self._wake_waiter()
        self._queue_user(user_id)
        return occurrence

    def _wake_another(self) -> None:
        """Wake a thread if another occurrence may go. That thread wakes the next."""
        if self._idle and (self._line or self._full or (self._closed and not self.in_line)):
            self._changed.notify()


def _never() -> bool:
    return False


def _empty(user: _User) -> Sequence[Occurrence]:
    waiting = [occurrence for _, _, occurrence in user.ready]
    ready = {occurrence.key for occurrence in waiting}
    waiting += [occurrence for behind in user.behind.values() for occurrence in behind]
    user.ready.clear()
    user.behind = {key: deque() for key in user.behind if key not in ready}
    return waiting


def _urgency(occurrence: Occurrence) -> Urgency:
    """Order by ended leases first, then priority, then due time. A retry has no precedence."""
    return (
        not came_back(occurrence),
        -occurrence.priority,
        occurrence.due_at,
        occurrence.key,
        occurrence.nominal_at,
    )

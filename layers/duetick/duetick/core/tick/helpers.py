"""The helpers of a tick: other ticks, each for a part of a backlog.

One tick at a time starts helpers. It has the lock `helpers` for as long as they may run, and other
ticks leave the backlog to them. If the time of a tick ends before its part is claimed, the next
tick of its chain goes on, a bounded number of times.
"""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from duetick.core.correlation import tick_id
from duetick.core.store import Store
from duetick.domain.workers import NamedLock
from duetick.ports import Part

LOCK: Final = "helpers"
HELD_MS: Final = 90_000
"""The longest that helpers run before one of them says that it goes on."""

AFTER: Final = 3.0
"""Seconds of claims after which a tick looks whether it needs help."""

FROM: Final = 20_000
"""The due rows from which on it needs help: as many as a tick claims in a second or two."""

MOST_IN_CHAIN: Final = 12
"""The most invocations of a part, one after another. AWS stops a function that goes on 16 times."""

logger = logging.getLogger("duetick.tick")


ALL: Final = Part(0, 1)


@dataclass(frozen=True, slots=True)
class Assignment:
    """The part of a tick, its place in the chain, and the tick under whose lock it works."""

    part: Part = ALL
    chain: int = 1
    owner: str = ""


StartTick: TypeAlias = Callable[[Assignment], object]
"""A function that starts a tick with an assignment, and does not wait for it."""


@dataclass(slots=True)
class Helpers:
    """The helpers of one tick, `most` with itself. Without `start`, it works alone.

    A tick that was started by another one has an `assignment`. If others are at the backlog
    already, `is_theirs` is True.
    """

    store: Store
    start: StartTick | None = None
    most: int = 1
    assignment: Assignment | None = None
    is_theirs: bool = False
    _has_looked: bool = False

    def share(self, spent: float, until: int, now: int) -> Part | None:
        """Start helpers if there is a backlog. Return the part that remains for this tick."""
        if self._has_looked or spent < AFTER or self.assignment or not self._may_start():
            return None
        self._has_looked = True
        if self.store.index.backlog(until, FROM) < FROM:
            return None
        self.is_theirs = not self._lock(tick_id(), now)
        if self.is_theirs:
            return None
        parts = [Part(number, self.most) for number in range(self.most)]
        mine, *others = (Assignment(part, owner=tick_id()) for part in parts)
        logger.info("a backlog is shared", extra={"action": "helpers", "ticks": self.most})
        self._start(others)
        self.assignment = mine
        return mine.part

    def go_on(self, now: int) -> bool:
        """Start the next tick of this one's chain. Return False if there may be none."""
        mine = self.assignment or Assignment(owner=tick_id())
        if self.start is None or self.is_theirs or mine.chain >= MOST_IN_CHAIN:
            return False
        if not self._lock(mine.owner, now):
            return False
        self._start([Assignment(mine.part, mine.chain + 1, mine.owner)])
        return True

    def _may_start(self) -> bool:
        return self.start is not None and self.most > 1

    def _start(self, assignments: Sequence[Assignment]) -> None:
        """Start ticks. If one cannot be started, its part waits for the next minute."""
        try:
            for one in assignments:
                if self.start:
                    self.start(one)
        except Exception:
            logger.exception("no tick was started", extra={"action": "helpers_failed"})

    def _lock(self, owner: str, now: int) -> bool:
        return self.store.shelf.acquire(NamedLock(LOCK, owner, now, now + HELD_MS), now)

"""Named locks: of several processes with the same work, one does it at a time (J-08).

A lock ends by itself, so that work goes on after a crash. Its owner extends the lock during the
work, and stops when another owner has it: nothing that a lock guards may rely on the lock alone.
"""

from typing import Final

from duetick.core.store import Store
from duetick.domain.workers import NamedLock

HELD_MS: Final = 120_000
"""The time for which a lock is taken and extended."""


class HeldLock:
    """A lock that its owner has. `is_mine` extends it when half of its time is over."""

    def __init__(self, store: Store, name: str, owner: str, until: int) -> None:
        self._store = store
        self._name, self._owner, self._until = name, owner, until

    def is_mine(self) -> bool:
        """Return True if the lock is the owner's still."""
        now = self._store.now()
        if now + HELD_MS // 2 < self._until:
            return True
        self._until = now + HELD_MS
        return self._store.shelf.extend(self._name, self._owner, self._until)


def take(store: Store, name: str, owner: str) -> HeldLock | None:
    """Take the lock; None if it is another's."""
    now = store.now()
    wanted = NamedLock(name, owner, now, now + HELD_MS)
    return HeldLock(store, name, owner, wanted.until) if store.shelf.acquire(wanted, now) else None

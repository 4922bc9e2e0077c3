"""Bells are kept in step with their rows, whatever crashes in between.

    a change of a row ──▶ its bell pending, in the same write ──▶ taken ──▶ put or deleted
                                             ──▶ no longer pending, if its token is the same

A process that takes a pending bell has it alone for a minute. If the token is another one by the
end, the row changed meanwhile, and the process takes the bell again. If the process dies, the bell
stays pending: a tick or the hourly count goes on.
"""

import logging
from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple, TypeAlias

from duetick.core.store import Store
from duetick.domain.bells import PendingBell, bell_name, bell_of
from duetick.domain.identity import schedule_id
from duetick.domain.occurrence import ScheduleName
from duetick.domain.policies import MINUTE_MS
from duetick.ports.bells import Bells

Each: TypeAlias = Callable[[Callable[[ScheduleName], bool], Iterable[ScheduleName]], Iterable[bool]]
"""A way to call a function with each of some names: one after another, or several at once."""

TAKEN_MS: Final = MINUTE_MS
"""The time for which a bell is taken. A call of EventBridge ends sooner, with all of its tries."""

TRIES: Final = 5
AT_ONCE: Final = 500

logger = logging.getLogger("duetick.managed")


class Kept(NamedTuple):
    """The bells that a pass brought in step, and those that it could not."""

    kept: int = 0
    failed: int = 0


class BellKeeper:
    """Keeps the bells of one store in step."""

    def __init__(self, store: Store, bells: Bells) -> None:
        self._store = store
        self._bells = bells

    def keep(self, name: ScheduleName) -> bool:
        """Bring a pending bell in step. Return False if that failed: it stays pending, and the log
        says why. A bell that another process has is that one's matter.
        """
        try:
            self._keep(name)
        except Exception as problem:
            user_id, key = name
            details = {
                "action": "bell_failed",
                "user": user_id,
                "schedule": schedule_id(user_id, key),
                "reason": str(problem),
            }
            logger.exception("a bell stays pending", extra=details)
            return False
        return True

    def _keep(self, name: ScheduleName) -> None:
        shelf = self._store.shelf
        for _ in range(TRIES):
            now = self._store.now()
            until = now + TAKEN_MS
            token = shelf.take_bell(name, now, until)
            if token is None:
                return
            ended = False
            try:
                self._bring(name, now)
                ended = shelf.end_bell(name, token)
            finally:
                if not ended:
                    shelf.free_bell(name, until)
            if ended:
                return

    def _bring(self, name: ScheduleName, now: int) -> None:
        row = self._store.index.get(*name)
        try:
            bell = bell_of(row, now) if row else None
        except ValueError:
            self._bells.delete(bell_name(*name))
            raise
        if bell:
            self._bells.put(bell)
        else:
            self._bells.delete(bell_name(*name))

    def mend(self, *names: ScheduleName) -> None:
        """Bring bells in step that are not pending, and out of step."""
        self._store.shelf.make_bells_pending(names, self._store.now())
        for name in names:
            self.keep(name)

    def delete(self, names: Sequence[ScheduleName], each: Each = map) -> None:
        """Delete the bells of schedules that are about to be erased. Raises BellsUnavailable."""

        def delete(name: ScheduleName) -> bool:
            self._bells.delete(bell_name(*name))
            return True

        for _ in each(delete, names):
            pass

    def keep_pending(self, may_go_on: Callable[[], bool], each: Each = map) -> Kept:
        """Bring the pending bells in step while `may_go_on` returns True: each is tried once."""
        tried: dict[ScheduleName, bool] = {}
        while may_go_on():
            pending = self._pending(len(tried) + AT_ONCE)
            names = [one.name for one in pending if one.name not in tried]
            if not names:
                break
            tried |= zip(names, each(self.keep, names), strict=True)
        return Kept(sum(tried.values()), len(tried) - sum(tried.values()))

    def _pending(self, limit: int) -> Iterable[PendingBell]:
        return self._store.shelf.pending_bells(limit)

"""The purge: what is over leaves: schedules that are done, what has ended, marks, and the like.

It is hourly work, and goes on, in batches and under the lock `purge`, until nothing is left or its
time is over. What has ended changes no more, so it needs no book.
"""

import logging
import time
from collections.abc import Callable
from typing import Final

from duetick.core.done import AT_ONCE, Purged, log_purged, look_at_done
from duetick.core.keeping import keep_retention
from duetick.core.locks import take
from duetick.core.store import Store
from duetick.domain.retention import USUAL, Retention

BATCH: Final = 500
LONGEST_REST: Final = 1.0
LOCK: Final = "purge"

logger = logging.getLogger("duetick.purge")


def purge(
    store: Store,
    now: int,
    limit: int = AT_ONCE,
    *,
    retention: Retention = USUAL,
    may_go_on: Callable[[], bool] = lambda: True,
) -> Purged:
    """Delete what is over: up to `limit` schedules, occurrences, and others of each kind."""
    done = look_at_done(store, now, limit, may_go_on=may_go_on)
    if not may_go_on():
        return done
    forgotten = store.shelf.forget(now, limit)
    keep_retention(store, retention, now)
    gone = store.shelf.retire(retention, now, limit)
    more = done.more or forgotten >= limit or gone.seen >= limit
    return Purged(done.deleted, len(gone.left), forgotten, more)


def purge_within(
    seconds: float,
    store: Store,
    limit: int = BATCH,
    *,
    retention: Retention = USUAL,
    owner: str = "purge",
    now: Callable[[], int] | None = None,
    tell: Callable[[Purged], object] = lambda _: None,
    elapsed: Callable[[], float] = time.monotonic,
    rest: Callable[[float], object] = lambda _: None,
) -> Purged | None:
    """Purge until nothing is left, or the time is over. None if another one has the lock.

    If there is more, the lock stays its owner's for a while: another invocation goes on. `tell`
    gets the sum after each batch. After each it takes a `rest` as long as the batch took, so that
    ticks have the database for half of the time at least.
    """
    lock = take(store, LOCK, owner)
    if lock is None:
        logger.info("another purge has the lock", extra={"action": "purge_locked"})
        return None
    end, done = elapsed() + seconds, Purged(more=True)

    def may_go_on() -> bool:
        return elapsed() < end

    try:
        while done.more and may_go_on() and lock.is_mine():
            began, at = elapsed(), now() if now else store.now()
            done = done.add(purge(store, at, limit, retention=retention, may_go_on=may_go_on))
            tell(done)
            if done.more:
                rest(min(elapsed() - began, LONGEST_REST))
    finally:
        log_purged(done)
        if not done.more:
            store.shelf.unlock(LOCK, owner)
    return done

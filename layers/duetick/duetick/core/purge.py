"""The purge: schedules that are done, ended occurrences past their retention, marks and the like
leave.

The purge is hourly work. It goes on, in batches and under the lock `purge`, until nothing is left
or its time is over. An ended occurrence changes no more, so its deletion needs no book.
"""

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from duetick.core.done import AT_ONCE, Purged, log_purged, look_at_done
from duetick.core.keeping import keep_retention
from duetick.core.locks import take
from duetick.core.store import Store
from duetick.domain.retention import USUAL, Retention

BATCH: Final = 500
LEAST: Final = 50
"""Less takes hardly less time: on a busy machine such a purge would not keep up."""

FIRST: Final = 100
HELD: Final = 0.015
"""Seconds that a batch shall take. SQLite has one writer: for so long, a tick may wait for it."""

RESTS: Final = 4
"""The rest after a batch, in times of the batch."""

LONGEST_REST: Final = 1.0
LOCK: Final = "purge"

logger = logging.getLogger("duetick.purge")


@dataclass(slots=True)
class BatchSize:
    """The size of the next batch, so that it takes as long as it shall: at most `most`."""

    most: int
    limit: int = field(init=False)

    def __post_init__(self) -> None:
        self.limit = min(FIRST, self.most)

    def note(self, seconds: float) -> None:
        """Note the time of a batch, and fit the size of the next one to it."""
        if seconds > 0:
            wanted = int(self.limit * max(0.5, min(HELD / seconds, 2.0)))
            self.limit = min(max(wanted, LEAST), self.most)


def purge(
    store: Store,
    now: int,
    limit: int = AT_ONCE,
    *,
    retention: Retention = USUAL,
    may_go_on: Callable[[], bool] = lambda: True,
    beside: bool = True,
) -> Purged:
    """Delete up to `limit` schedules, occurrences and others of each kind, of those whose time is
    over. Without `beside`, delete occurrences alone.
    """
    done, forgotten = Purged(), 0
    if beside:
        done = look_at_done(store, now, limit, may_go_on=may_go_on, retention=retention)
        if not may_go_on():
            return done._replace(beside=True)
        forgotten = store.shelf.forget(now, limit)
        keep_retention(store, retention, now)
    gone = store.shelf.retire(retention, now, limit)
    others = done.more or forgotten >= limit
    return Purged(done.deleted, len(gone.left), forgotten, others or gone.seen >= limit, others)


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
    """Purge until nothing is left, or the time is over. Return None if another owner has the lock.

    If more is left, the owner keeps the lock for a while: another invocation of it goes on. `tell`
    gets the sum after each batch. A batch fits into a few milliseconds, and deletes `limit` of each
    kind at most. A `rest` several times as long follows: ticks have the database for most of the
    time.
    """
    lock = take(store, LOCK, owner)
    if lock is None:
        logger.info("another purge has the lock", extra={"action": "purge_locked"})
        return None
    end, done, size = elapsed() + seconds, Purged(more=True, beside=True), BatchSize(limit)

    def may_go_on() -> bool:
        return elapsed() < end

    try:
        while done.more and may_go_on() and lock.is_mine():
            began, at = elapsed(), now() if now else store.now()
            batch = purge(
                store,
                at,
                size.limit,
                retention=retention,
                may_go_on=may_go_on,
                beside=done.beside,
            )
            done = done.add(batch)
            tell(done)
            if done.more:
                took = elapsed() - began
                size.note(took)
                rest(min(RESTS * took, LONGEST_REST))
    finally:
        log_purged(done)
        if not done.more:
            store.shelf.unlock(LOCK, owner)
    return done

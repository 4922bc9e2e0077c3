"""The schedules that are done leave: when their time has come, or with the end of their last run.

Dispatch deletes a schedule with the end of its last run. A tick that claimed occurrences of such
schedules deletes a few whose last occurrence ended otherwise. The purge deletes the others. Each
deletion is a change of its book, so that a schedule whose occurrence runs stays until it has ended.
"""

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, NamedTuple

from duetick.core.store import Store
from duetick.domain.ending import leaves_at_end
from duetick.domain.identity import is_job
from duetick.domain.schedule import Record

if TYPE_CHECKING:
    from duetick.domain.retention import Retention

AT_ONCE: Final = 50
"""The most schedules at which a tick looks."""

logger = logging.getLogger("duetick.purge")


class Purged(NamedTuple):
    """The counts of a purge: `deleted` schedules that were done, `retired` occurrences, and
    `forgotten` marks, definitions, creations, keys, counts and reports.

    `more` says that another pass would find something. `beside` says that it would find more than
    occurrences.
    """

    deleted: int = 0
    retired: int = 0
    forgotten: int = 0
    more: bool = False
    beside: bool = False

    def add(self, other: "Purged") -> "Purged":
        """Return the sums of both. `more` and `beside` are those of the later one."""
        return Purged(
            self.deleted + other.deleted,
            self.retired + other.retired,
            self.forgotten + other.forgotten,
            other.more,
            other.beside,
        )


def delete_done(
    store: Store, now: int, limit: int = AT_ONCE, *, may_go_on: Callable[[], bool] = lambda: True
) -> Purged:
    """Delete the schedules whose time has come; look at no more than `limit`."""
    purged = look_at_done(store, now, limit, may_go_on=may_go_on)
    log_purged(purged)
    return purged


def look_at_done(
    store: Store,
    now: int,
    limit: int,
    *,
    may_go_on: Callable[[], bool],
    retention: "Retention | None" = None,
) -> Purged:
    """Delete the schedules whose time has come, among the first `limit`, and log nothing.

    A purge deletes jobs: it knows their `retention`.
    """
    deleted = looked = 0
    for user_id, key in store.shelf.leaving(now, limit):
        if not may_go_on():
            break
        if retention or not is_job(key):
            deleted += store.schedules.purge(user_id, key, now=now, retention=retention)
        looked += 1
    return Purged(deleted, more=looked >= limit)


def delete_ended(store: Store, schedule: Record, now: int) -> None:
    """Delete a schedule if this was the end of its last occurrence, and it is deleted then.

    If that fails, a later look of a tick or of the hourly step deletes it.
    """
    if not leaves_at_end(schedule):
        return
    try:
        deleted = store.schedules.purge(schedule.user_id, schedule.key, now=now)
    except Exception:
        logger.exception("purge failed", extra={"action": "purge_failed"})
        return
    log_purged(Purged(deleted=int(deleted)))


def log_purged(purged: Purged) -> None:
    """Log what was deleted, if anything was."""
    if any(purged[:3]):
        logger.info("purged", extra={"action": "purge", **purged._asdict()})

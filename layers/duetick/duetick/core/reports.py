"""The reports of workers, and the named locks, as operators see them."""

from typing import Final

from duetick.core.store import Store
from duetick.core.wire import iso
from duetick.domain.schedule import Json
from duetick.domain.workers import REPORTS_KEPT_MS, NamedLock, Worker

MOST_WORKERS: Final = 1_000


def workers_json(store: Store, limit: int) -> list[dict[str, Json]]:
    """Return the newest reports of ticks and background runs, at most `limit`."""
    now = store.now()
    return [worker_json(one, now) for one in store.workers(now - REPORTS_KEPT_MS, limit)]


def worker_json(one: Worker, now: int) -> dict[str, Json]:
    """Return a report. A worker without an end is at work, or lost: then its time is over."""
    took = None if one.ended_at is None else one.ended_at - one.started_at
    return {
        "id": one.id,
        "kind": one.kind,
        "state": "lost" if one.is_lost(now) else "working" if took is None else "ended",
        "startedAt": iso(one.started_at),
        "endedAt": iso(one.ended_at),
        "milliseconds": took,
        "latenessMilliseconds": one.lateness_ms,
        "counts": dict(one.counts),
    }


def locks_json(store: Store) -> list[dict[str, Json]]:
    """Return the named locks: there is one for each kind of work."""
    now = store.now()
    return [_lock_json(one, now) for one in store.locks()]


def _lock_json(one: NamedLock, now: int) -> dict[str, Json]:
    return {
        "name": one.name,
        "state": "free" if one.until <= now else "held",
        "owner": one.owner,
        "since": iso(one.since),
        "until": iso(one.until),
    }

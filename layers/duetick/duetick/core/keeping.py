"""The instant since which the ledger is whole (A-02, J-10).

Verify does not call an entry a fault that was deleted by its age. The store keeps its retention as
a note, with the retentions before it: a longer one brings nothing back. A store that never purged,
and whose database deletes nothing, is whole.
"""

import json
from typing import Final

from duetick.core.store import Store
from duetick.domain.ending import KEPT_GONE_MS
from duetick.domain.retention import Horizon, Retention

NOTE: Final = "retention"


def find_kept_since(store: Store, now: int) -> int:
    """Return the instant since which the ledger and its definitions are whole."""
    horizon = _read(store)
    deleted = horizon.at(now) if horizon else 0
    if store.shelf.keeps_ms is not None:
        deleted = max(deleted, now - store.shelf.keeps_ms)
    return max(deleted, now - KEPT_GONE_MS)


def keep_retention(store: Store, retention: Retention, now: int) -> None:
    """Note the retention before anything is deleted by it. Usually it is noted already."""
    found, said = _read(store), retention.dump()
    shortest = retention.shortest_ms
    after = found.change(shortest, now) if found else Horizon(shortest)
    if after != found or said != read_retention(store, retention).dump():
        body = {"retention": said, "shortest_ms": after.shortest_ms, "past": after.past}
        store.shelf.keep_note(NOTE, json.dumps(body))


def read_retention(store: Store, default: Retention) -> Retention:
    """Return the retention of the last purge, or the default if there was none."""
    kept = store.shelf.note(NOTE)
    return Retention.load(json.loads(kept)["retention"]) if kept else default


def _read(store: Store) -> Horizon | None:
    kept = json.loads(store.shelf.note(NOTE) or "null")
    if kept is None:
        return None
    return Horizon(kept["shortest_ms"], [(ms, end) for ms, end in kept["past"]])

"""The backfills in a tick, which brings the next occurrences of each that stands.

The occurrences are recorded first, then the order moves on. If the tick dies in between, the next
one finds the occurrences in the ledger. If two ticks bring at once, one of them does it.
"""

import logging
from collections.abc import Callable, Iterator, Sequence

from duetick.core.store import Store
from duetick.domain.backfilling import KIND, Backfill, id_of, needs_step
from duetick.domain.occurrence import Occurrence
from duetick.domain.standing import StandingOrder
from duetick.ports import Clock

logger = logging.getLogger("duetick.tick")


def bring(
    store: Store,
    orders: Sequence[StandingOrder],
    clock: Clock,
    may_go_on: Callable[[], bool] = lambda: True,
) -> Iterator[Sequence[Occurrence]]:
    """Yield the occurrences that each backfill brings, leased. One that fails delays no other."""
    for order in orders:
        if order.kind == KIND and may_go_on():
            try:
                yield advance(store, order, clock())
            except Exception:
                details = {"action": "backfill_failed", "backfill": id_of(order)}
                logger.exception("a backfill brought nothing", extra=details)


def advance(store: Store, order: StandingOrder, now: int) -> Sequence[Occurrence]:
    """Bring the next occurrences of a backfill, and note its progress."""
    before = Backfill.load(order)
    if not needs_step(before, now):
        return ()
    step = store.ledger.backfill((before.user_id, before.key), order, now=now)
    after = step.after
    if after == before:
        return step.made
    body = after.dump()
    moved = order.end(now, body) if after.is_over else order.change(body)
    if store.shelf.keep_order(moved) and after.is_over:
        _tell(id_of(order), after)
    return step.made


def _tell(name: str, one: Backfill) -> None:
    details = {
        "action": "backfill_ended",
        "backfill": name,
        "phase": one.phase,
        "brought": one.brought,
        "succeeded": one.succeeded,
        "failed": one.failed,
        "cancelled": one.cancelled,
    }
    logger.info("a backfill ended", extra=details)

"""One pass: claim, then deliver."""

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, TypeAlias

from duetick.core.turns import Turns
from duetick.domain.schedule import Occurrence
from duetick.ports import Delivery, Store, Transport

Observer: TypeAlias = Callable[[Occurrence, int], object]

CHUNK: Final = 1_000
SLOTS: Final = 64
MARGIN: Final = 5.0
"""Seconds that a delivery may take beyond its action's timeout."""


@dataclass(slots=True)
class TickReport:
    """What a tick did. `left` was claimed and given back for want of time."""

    claimed: int = 0
    delivered: int = 0
    failed: int = 0
    poisoned: int = 0
    left: int = 0
    lateness_ms: int = 0


def run_tick(
    store: Store,
    transport: Transport,
    *,
    now: int | None = None,
    budget: float = 55.0,
    on_dispatch: Observer | None = None,
    chunk: int = CHUNK,
    slots: int = SLOTS,
    elapsed: Callable[[], float] = time.monotonic,
) -> TickReport:
    """Claim until nothing is due or `budget` seconds are nearly spent, and deliver each chunk.

    `on_dispatch` sees every delivery with its status, 0 for a transport error.
    """
    at = store.now() if now is None else now
    end = elapsed() + budget
    tick = _Tick(store, transport, at, on_dispatch, slots)
    while elapsed() < end - MARGIN:
        claimed = store.ledger.claim_waiting(at, chunk) or store.index.claim_due(at, chunk)
        if not claimed:
            break
        tick.deliver(claimed, lambda: end - elapsed())
    tick.report.poisoned = sum(row.created_at >= at for row in store.index.poisoned())
    return tick.report


class _Tick:
    def __init__(
        self,
        store: Store,
        transport: Transport,
        now: int,
        on_dispatch: Observer | None,
        slots: int,
    ) -> None:
        self._store = store
        self._transport = transport
        self._now = now
        self._on_dispatch = on_dispatch
        self._slots = slots
        self._counting = threading.Lock()
        self.report = TickReport()

    def deliver(self, claimed: Sequence[Occurrence], left: Callable[[], float]) -> None:
        """Hand on a chunk, concurrently; give back what there is no time for."""
        turns = Turns(claimed, self._slots)
        self.report.claimed += len(claimed)
        lateness = max(self._now - occurrence.due_at for occurrence in claimed)
        self.report.lateness_ms = max(self.report.lateness_ms, lateness)
        workers = min(self._slots, len(claimed))
        with ThreadPoolExecutor(workers, thread_name_prefix="deliver") as pool:
            work = [pool.submit(self._work, turns, left) for _ in range(workers)]
        for each in work:
            each.result()

    def _work(self, turns: Turns, left: Callable[[], float]) -> None:
        while (occurrence := turns.take()) is not None:
            try:
                self._one(occurrence, left())
            finally:
                turns.done(occurrence)

    def _one(self, occurrence: Occurrence, left: float) -> None:
        if left <= 0:
            self._store.ledger.release(occurrence)
            self._count("left")
            return
        timeout = min(occurrence.policies.timeout + MARGIN, left)
        delivery = self._transport.deliver(occurrence, timeout=timeout)
        delivered = 200 <= delivery.status < 300
        if not delivered:
            self._store.ledger.release(occurrence)
        self._count("delivered" if delivered else "failed")
        self._observe(occurrence, delivery)

    def _observe(self, occurrence: Occurrence, delivery: Delivery) -> None:
        if self._on_dispatch is None:
            return
        with suppress(Exception):
            self._on_dispatch(occurrence, delivery.status)

    def _count(self, name: str) -> None:
        with self._counting:
            setattr(self.report, name, getattr(self.report, name) + 1)

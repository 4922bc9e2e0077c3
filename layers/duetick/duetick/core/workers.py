"""The reports of workers: ticks, and runs in the background (J-12).

A tick that claims something reports its begin once its first deliveries are on their way. Every
tick reports its end: an idle one costs one write. A worker without an end is lost when its longest
life is over. Its occurrences come back by their leases, whatever it has reported.
"""

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Final

from duetick.core.store import Store
from duetick.domain.policies import MINUTE_MS
from duetick.domain.workers import Worker, WorkerKind
from duetick.ports import Clock

if TYPE_CHECKING:
    from duetick.core.tick.report import TickReport

LOOKS_BACK_MS: Final = 180 * MINUTE_MS
"""How far the hourly work looks for workers that are silent: an hour may have been missed."""

MOST_LOOKED_AT: Final = 10_000

logger = logging.getLogger("duetick.workers")


@dataclass(slots=True)
class Reporter:
    """The reports of one worker. A report that cannot be written costs the worker nothing."""

    store: Store
    worker: Worker

    def begin(self) -> None:
        """Report that the worker has begun."""
        self._keep(self.worker)

    def end(self, now: int, counts: Mapping[str, int], lateness_ms: int = 0) -> None:
        """Report the end of the worker."""
        ended = replace(self.worker, ended_at=now, counts=counts, lateness_ms=lateness_ms)
        self._keep(ended)

    def _keep(self, worker: Worker) -> None:
        try:
            self.store.shelf.report(worker)
        except Exception:
            logger.warning(
                "the report of a worker was not kept",
                exc_info=True,
                extra={"action": "report_failed", "worker": worker.id},
            )


def end_tick(reporter: Reporter, report: "TickReport", now: int, *, raised: bool) -> None:
    """Report the end of a tick, with the numbers that are not zero, and whether it raised."""
    numbers = {one.name: getattr(report, one.name) for one in fields(report)}
    numbers["raised"] = int(raised)
    counts = {name: count for name, count in numbers.items() if count}
    reporter.end(now, counts, counts.pop("lateness_ms", 0))


@contextmanager
def reporting(
    store: Store, kind: WorkerKind, name: str, clock: Clock, seconds: float
) -> Iterator[None]:
    """Report the begin and the end of a worker that lives for so many seconds at most."""
    began = clock()
    reporter = Reporter(store, Worker(name, kind, began, began + int(seconds * 1_000)))
    reporter.begin()
    raised = 1
    try:
        yield
        raised = 0
    finally:
        reporter.end(clock(), {"raised": raised} if raised else {})


def reap(store: Store, now: int) -> int:
    """Mark the workers that are silent as lost, each with a line. Return how many."""
    found = store.shelf.workers(now - LOOKS_BACK_MS, MOST_LOOKED_AT)
    lost = [one for one in found if one.is_lost(now) and one.lost_at is None]
    for one in lost:
        store.shelf.report(replace(one, lost_at=now))
        details = {"action": "worker_lost", "worker": one.id, "kind": one.kind}
        logger.warning("a worker has not ended", extra=details | {"started_at": one.started_at})
    return len(lost)

"""What a tick did, counted by all of its threads."""

import json
import logging
import threading
from dataclasses import dataclass
from typing import Final

from duetick.core.answers import WAITS
from duetick.core.deaths import log_dead
from duetick.domain.schedule import Occurrence
from duetick.ports import Delivery

CONFLICT: Final = 409

logger = logging.getLogger("duetick.tick")


@dataclass(slots=True)
class TickReport:
    """What a tick did. `claimed` is delivered + failed + waiting + left.

    `skipped` are those of the delivered that did not run; `failed` were not answered with success;
    `waiting` were told to wait for another one of their schedule, as its overlap policy has it;
    `left` were given back, or to the end of their leases, for want of time; `lost` ran out of
    attempts or time without an end.
    `lateness_ms` is the longest that a delivery began after its due time, but for the waiting.
    """

    claimed: int = 0
    delivered: int = 0
    skipped: int = 0
    failed: int = 0
    waiting: int = 0
    lost: int = 0
    poisoned: int = 0
    left: int = 0
    backlog: int = 0
    lateness_ms: int = 0


class Tally:
    """The report as it grows."""

    def __init__(self) -> None:
        self.report = TickReport()
        self._lock = threading.Lock()

    @property
    def done(self) -> int:
        """How many were answered."""
        return self.report.delivered + self.report.failed + self.report.waiting

    def answered(self, occurrence: Occurrence, delivery: Delivery, lateness_ms: int) -> bool:
        """Count an answer; whether dispatch has it, and nothing is to be given back."""
        success = 200 <= delivery.status < 300
        skipped = success and _told(delivery, "status") in ("skipped", "duplicate")
        waits = delivery.status == CONFLICT and _told(delivery, "message") == WAITS
        failed = not (success or waits)
        with self._lock:
            report = self.report
            report.delivered += success
            report.skipped += skipped
            report.failed += failed
            report.waiting += waits
            report.lateness_ms = max(report.lateness_ms, 0 if waits else lateness_ms)
        if failed:
            _log_failure(occurrence, delivery)
        return not failed

    def lost(self, occurrence: Occurrence) -> None:
        """What could not be given back: its time is over."""
        with self._lock:
            self.report.lost += 1
        log_dead(occurrence)

    def gave_back(self, count: int) -> None:
        """What there was no time for."""
        with self._lock:
            self.report.left += count


def _log_failure(occurrence: Occurrence, delivery: Delivery) -> None:
    """Of an answer only its code: a gateway's own words may repeat what was signed."""
    why = delivery.detail[:200] if delivery.status == 0 else _told(delivery, "error")
    details = {"action": "delivery_failed", "occurrence": occurrence.id, "why": why}
    logger.warning("delivery failed: %s", delivery.status, extra=details)


def _told(delivery: Delivery, name: str) -> str:
    try:
        return str(json.loads(delivery.detail)[name])
    except (ValueError, KeyError, TypeError):
        return ""

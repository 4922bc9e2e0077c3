"""The report of a tick, counted by all of its threads."""

import json
import logging
import threading
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from duetick.core.log_lines import about, log_dead
from duetick.domain.schedule import Occurrence
from duetick.domain.states import Reason, State
from duetick.ports import Delivered, Tell, tell_nobody

if TYPE_CHECKING:
    from duetick.domain.packs import OutgoingMessage

CONFLICT: Final = 409
DEADLY: Final = frozenset({Reason.FAILED, Reason.LOST, Reason.REJECTED})
_LONGEST_WHY: Final = 200

logger = logging.getLogger("duetick.tick")


@dataclass(slots=True)
class TickReport:
    """The result of a tick. `claimed` is delivered + failed + behind + left + handed_on.

    `handed_on` counts occurrences that a queue has, in so many `packs`. `skipped` counts delivered
    occurrences that did not run. `failed` counts answers without success. `rejected` counts the
    occurrences among them whose name no path carries: they are dead now. `behind` counts
    occurrences that wait for another one of their schedule, as its overlap policy says. `left`
    counts occurrences for which no time was left: they were released, or their leases end. `lost`
    counts occurrences that ran out of attempts or time. `lateness_ms` is the longest time between
    due time and delivery, except of those behind.
    """

    claimed: int = 0
    delivered: int = 0
    skipped: int = 0
    failed: int = 0
    rejected: int = 0
    behind: int = 0
    lost: int = 0
    poisoned: int = 0
    left: int = 0
    backlog: int = 0
    lateness_ms: int = 0
    handed_on: int = 0
    packs: int = 0


class Tally:
    """The report while it grows."""

    def __init__(self, tell: Tell = tell_nobody, late_after: int | None = None) -> None:
        """`tell` hears of each occurrence that dies, or begins more than `late_after` ms late."""
        self.report = TickReport()
        self._tell = tell
        self._late_after = late_after
        self._lock = threading.Lock()

    @property
    def done(self) -> int:
        """The number of deliveries that were answered."""
        return self.report.delivered + self.report.failed + self.report.behind

    def count_answer(self, occurrence: Occurrence, delivery: Delivered, lateness_ms: int) -> bool:
        """Count an answer. Return True if dispatch has the occurrence: nothing is released."""
        success = 200 <= delivery.status < 300
        skipped = success and read_answer(delivery, "status") in ("skipped", "duplicate")
        behind = delivery.status == CONFLICT and read_answer(delivery, "waits") is True
        failed = not (success or behind)
        with self._lock:
            report = self.report
            report.delivered += success
            report.skipped += skipped
            report.failed += failed
            report.behind += behind
            report.lateness_ms = max(report.lateness_ms, 0 if behind else lateness_ms)
        if not behind and self._late_after is not None and lateness_ms > self._late_after:
            self._tell("late", occurrence)
        if failed:
            self._count_failure(occurrence, delivery)
        return not failed

    def _count_failure(self, occurrence: Occurrence, delivery: Delivered) -> None:
        _log_failure(occurrence, delivery)
        reason = read_answer(delivery, "reason")
        if read_answer(delivery, "final") is True and isinstance(reason, str) and reason in DEADLY:
            self._tell("dead", replace(occurrence, state=State.DEAD, reason=Reason(reason)))

    def count_rejected(self, occurrence: Occurrence) -> None:
        """Count an occurrence that is dead because no path carries its name."""
        with self._lock:
            self.report.rejected += 1
        log_dead(occurrence)
        self._tell("dead", occurrence)

    def count_lost(self, occurrence: Occurrence) -> None:
        """Count an occurrence that could not be released, because its time is over."""
        with self._lock:
            self.report.lost += 1
        log_dead(occurrence)
        self._tell("dead", occurrence)

    def count_handed_on(self, message: "OutgoingMessage", lateness_ms: int) -> None:
        """Count a message that a queue has."""
        report = self.report
        report.handed_on += len(message.occurrences)
        report.packs += 1
        report.lateness_ms = max(report.lateness_ms, lateness_ms)

    def count_given_back(self, count: int) -> None:
        """Count occurrences for which there was no time."""
        with self._lock:
            self.report.left += count


def _log_failure(occurrence: Occurrence, delivery: Delivered) -> None:
    """Log a failed delivery. Log only the code of an answer: a gateway's words may repeat what was
    signed.

    An error's words lose their secrets before they are cut, so that no half of one stays.
    """
    if delivery.status == 0:
        from duetick.domain.redaction import redact_text  # for a failure: no start pays for it

        why = (redact_text(delivery.detail) or "")[:_LONGEST_WHY]
    else:
        why = str(read_answer(delivery, "error") or "")
    details = {"action": "delivery_failed", "why": why, "attempt": occurrence.attempts + 1}
    logger.warning("delivery failed: %s", delivery.status, extra=details | about(occurrence))


def read_answer(delivery: Delivered, name: str) -> object:
    """Return a field of an answer; None if it has none."""
    try:
        found: object = json.loads(delivery.detail)[name]
    except (ValueError, KeyError, TypeError):
        return None
    return found

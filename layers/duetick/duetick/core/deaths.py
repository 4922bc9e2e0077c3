"""One line of the log for each occurrence that dies, wherever it is found: an alarm sends there."""

import logging

from duetick.domain.schedule import Occurrence

logger = logging.getLogger("duetick.deaths")


def log_dead(occurrence: Occurrence) -> None:
    """For whom, and why."""
    details = {
        "action": "dead",
        "occurrence": occurrence.id,
        "schedule": occurrence.schedule_id,
        "user": occurrence.user_id,
        "flow": occurrence.flow,
        "reason": occurrence.reason,
        "attempts": occurrence.attempts,
    }
    logger.error("dead", extra=details)

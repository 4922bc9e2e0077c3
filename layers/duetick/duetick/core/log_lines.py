"""The fields of a log line about an occurrence, and the line of a dead one, which alarms cite."""

import logging
from typing import Final

from duetick.domain.schedule import Json, Occurrence
from duetick.domain.states import Reason, State

NEVER_BEGAN: Final = "It never began: no delivery reached dispatch while it could still begin."
NEVER_ENDED: Final = (
    "It began and was never settled: its process ended, or hung, or could not reach the database, "
    "until its lease was over. Whether its effects were made, only they can tell."
)

_WHY: Final = {
    Reason.FAILED: "It failed, and is not tried again; its history has the error.",
    Reason.REJECTED: "It could not be run as it is; its history has the reason.",
    Reason.POISONED: "The cron or the time zone of its row cannot be read.",
}

logger = logging.getLogger("duetick.deaths")


def about(occurrence: Occurrence) -> dict[str, Json]:
    """Return the fields that name an occurrence in a log line."""
    return {
        "user": occurrence.user_id,
        "schedule": occurrence.schedule_id,
        "flow": occurrence.flow,
        "occurrence": occurrence.id,
    }


def log_dead(occurrence: Occurrence) -> None:
    """Log a dead occurrence: its names, and why it died."""
    details = {
        "action": "dead",
        "reason": occurrence.reason,
        "attempt": occurrence.attempts,
        **about(occurrence),
    }
    why = explain_lost(occurrence) or _WHY.get(occurrence.reason or Reason.FAILED)
    logger.error("dead: %s", why, extra=details)


def explain_lost(occurrence: Occurrence) -> str | None:
    """Return the explanation of a `lost` occurrence, which has no recorded error; else None.

    A deleted occurrence has no texts any more.
    """
    if occurrence.reason is not Reason.LOST or occurrence.state is State.DELETED:
        return None
    return loss_in_words(occurrence.attempts)


def loss_in_words(attempts: int) -> str:
    """Return the explanation of a loss after so many attempts."""
    return NEVER_ENDED if attempts else NEVER_BEGAN

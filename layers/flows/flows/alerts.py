"""An alert for each record of an application: its key is the record's, and so is its outside id."""

import logging
from dataclasses import dataclass

from duetick import Context, Flow

alerts = Flow("alerts")
logger = logging.getLogger("duetick.flows.alerts")


@dataclass(frozen=True, slots=True)
class Threshold:
    """When a record is worth an alert."""

    record: str
    above: float


@alerts.action("check")
def check(threshold: Threshold, ctx: Context) -> None:
    """Look at the record; say so once it is above, then wait a day."""
    value = reading_of(threshold.record)
    if value > threshold.above:
        logger.info("%s: %s is %.1f", ctx.principal.user_id, threshold.record, value)
        ctx.schedules.pause(
            f"alert-{threshold.record}", note="told", until=ctx.dispatched_at + 86_400_000
        )


def reading_of(record: str) -> float:
    """The record's value; a real one would ask the database."""
    return float(len(record))

"""Alerts about an application's records. Key and outside id of an alert both name its record."""

import logging
from dataclasses import dataclass

from duetick import Context, Flow

alerts = Flow("alerts")
logger = logging.getLogger("duetick.flows.alerts")


@dataclass(frozen=True, slots=True)
class Threshold:
    """A record, and the value above which it is worth an alert."""

    record: str
    above: float


@alerts.action("check")
def check(threshold: Threshold, ctx: Context) -> None:
    """Check the record. If its value is above the threshold, send an alert and wait for a day."""
    value = reading_of(threshold.record)
    if value > threshold.above:
        logger.info("%s: %s is %.1f", ctx.principal.user_id, threshold.record, value)
        ctx.schedules.pause(
            f"alert-{threshold.record}", note="told", until=ctx.dispatched_at + 86_400_000
        )


def reading_of(record: str) -> float:
    """Return the record's value. A real function would query the database."""
    return float(len(record))

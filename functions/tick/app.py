"""A tick, each minute by EventBridge: claim due rows, and deliver their occurrences."""

from dataclasses import asdict
from typing import TYPE_CHECKING

from duetick.runtime.starting import without_collections

with without_collections():
    from duetick.core.correlation import in_tick
    from duetick.core.tick import never
    from duetick.runtime import wiring
    from duetick.runtime.telemetry import logger, metrics, record_tick, withhold_raised

    settings, tick, witness = wiring.settings(), wiring.tick(), wiring.witness()

if TYPE_CHECKING:
    from duetick.domain.schedule import Occurrence

RESERVE = 3.0
"""Seconds of the function's time that remain for the report."""

FOR_EVENTS = 9.0 if settings.event_bus else 0.0
"""Seconds that remain for the events: two tries."""


FOR_ONE_BELL = 10.0
"""Seconds in which the bells end that have begun: EventBridge may be slow."""


@withhold_raised
@logger.inject_lambda_context
@metrics.log_metrics
def handler(event: dict[str, object], context: wiring.LambdaContext) -> dict[str, int]:
    """Run one tick in the time that the function has. Its id is that of the invocation."""
    with in_tick(context.aws_request_id):
        try:
            report = tick(
                budget=_seconds(context) - RESERVE - FOR_EVENTS,
                witness=witness,
                look_ahead=settings.look_ahead,
                on_dispatch=observe,
                stopped=getattr(context, "stopped", never),
                tell=wiring.tell,
                late_after=wiring.late_after(),
                late=wiring.bells().late_ms() if wiring.is_managed() else 0,
                take_in=wiring.take_in,
                **wiring.helpers(event),
            )
            record_tick(report)
            if wiring.is_managed():
                keep_bells(context)
        finally:
            wiring.announce(_seconds(context) - RESERVE / 2)
    return asdict(report)


def observe(occurrence: "Occurrence", status: int) -> None:
    """Call the flows' hooks for a delivery; note the bell that did not ring for it."""
    wiring.observe(occurrence, status)
    if wiring.is_managed():
        wiring.bells().saw_late(occurrence)


def keep_bells(context: wiring.LambdaContext) -> None:
    """Bring bells in step in the time that is left, and ask for the next tick."""
    from duetick.core.gone import time_left
    from duetick.runtime.telemetry import record_pending

    may_go_on = time_left(_seconds(context) - RESERVE - FOR_EVENTS - FOR_ONE_BELL)
    record_pending(wiring.bells().go_on(may_go_on))


def _seconds(context: wiring.LambdaContext) -> float:
    return context.get_remaining_time_in_millis() / 1_000

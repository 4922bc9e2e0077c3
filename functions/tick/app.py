"""Run each minute by EventBridge: claim what is due and hand it to dispatch."""

from dataclasses import asdict

from duetick.core.tick import never, run_tick
from duetick.runtime import wiring
from duetick.runtime.telemetry import logger, metrics, record_tick

settings, store, transport = wiring.settings(), wiring.store(), wiring.transport()

RESERVE = 3.0
"""Seconds of the function's time that are left to report."""


@logger.inject_lambda_context
@metrics.log_metrics
def handler(_event: object, context: wiring.LambdaContext) -> dict[str, int]:
    """One tick, in the time that the function has."""
    report = run_tick(
        store,
        transport,
        budget=context.get_remaining_time_in_millis() / 1_000 - RESERVE,
        look_ahead=settings.look_ahead,
        on_dispatch=wiring.observe,
        stopped=getattr(context, "stopped", never),
    )
    record_tick(report)
    return asdict(report)

"""At a deploy, as its custom resource, or by hand: the schema, and the flows' static schedules."""

from typing import Any

from duetick.core.deployment import STEPS, deploy
from duetick.runtime.custom_resource import (
    RESERVE,
    Answering,
    Context,
    Event,
    is_asked_by_cloudformation,
)
from duetick.runtime.telemetry import logger


@logger.inject_lambda_context
def handler(event: dict[str, Any], context: Context) -> dict[str, object]:
    """Safe to run twice, and beside another. `{"Step": "schema"}` takes one step alone."""
    seconds = context.get_remaining_time_in_millis() / 1_000

    def work(asked: Event) -> dict[str, object]:
        # Imported here: a flow that cannot be imported fails the deployment with its reason.
        from duetick.runtime import wiring

        given = asked.get("ResourceProperties", asked).get("Step")
        steps = tuple(step for step in STEPS if given in (None, step))
        done = deploy(wiring.store(), wiring.flows, steps, patience=seconds - 2 * RESERVE)
        logger.info("deployed", action="deploy", done=done)
        return done

    if is_asked_by_cloudformation(event):
        Answering(event, context).run(work)
        return {}
    return work(event)

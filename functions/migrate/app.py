"""At a deploy, as its custom resource, or by hand; and each hour, to count what is active."""

from typing import Any

from duetick.core.deployment import STEPS, deploy
from duetick.runtime.custom_resource import (
    RESERVE,
    Answering,
    Context,
    Event,
    is_asked_by_cloudformation,
)
from duetick.runtime.telemetry import logger, record_audit


@logger.inject_lambda_context
def handler(event: dict[str, Any], context: Context) -> dict[str, object]:
    """Safe to run twice, and beside another. `{"Step": "schema"}` takes one step alone."""
    patience = context.get_remaining_time_in_millis() / 1_000 - 2 * RESERVE
    if is_asked_by_cloudformation(event):
        Answering(event, context).run(lambda asked: work(asked["ResourceProperties"], patience))
        return {}
    return work(event, patience)


def work(asked: Event, patience: float) -> dict[str, object]:
    """Take the step that is asked for, or all that a deployment takes."""
    # Imported here: a flow that cannot be imported fails the deployment with its reason.
    from duetick.core.audit import audit
    from duetick.runtime import wiring

    step = asked.get("Step")
    if step == "audit":
        return record_audit(audit(wiring.store()))
    if step not in (None, *STEPS):
        raise ValueError(f"Step {step!r} is not known; known are {', '.join(STEPS)}, audit.")
    steps = tuple(each for each in STEPS if step in (None, each))
    name = wiring.settings().deployment
    done = deploy(
        wiring.store(), wiring.flows, steps, name=name, migrate=wiring.migrate, patience=patience
    )
    logger.info("deployed", action="deploy", done=done)
    return done

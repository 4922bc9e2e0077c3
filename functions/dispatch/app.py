"""Dispatch: a call of the API delivers one occurrence, a message of the queue a pack."""

from typing import Any

from duetick.runtime.starting import without_collections

with without_collections():
    from duetick.core.answers import Answer
    from duetick.core.correlation import own_lines
    from duetick.runtime import gateway, invoking, wiring
    from duetick.runtime.telemetry import logger, metrics, record_answer, withhold_raised

    dispatch = wiring.dispatcher()

RESERVE = 1.0
"""Seconds of the function's time that remain for the events of a pack."""


RING_FIELD = "duetickRing"
"""The field of a ring, whose module no other event loads."""


@withhold_raised
@logger.inject_lambda_context
@metrics.log_metrics
def handler(
    event: dict[str, Any], context: wiring.LambdaContext
) -> gateway.Response | dict[str, object]:
    """Answer a request of API Gateway, messages of the queue, a background call, or a bell's
    ring.
    """
    if RING_FIELD in event:
        return ring(event, context)
    seconds = context.get_remaining_time_in_millis() / 1_000
    if "Records" in event:
        return _take(event, context)
    queued = invoking.from_event(event, seconds)
    with own_lines():
        if queued:
            answer = dispatch.run_queued(queued)
        else:
            request = gateway.dispatch_request(event, seconds)
            answer = request if isinstance(request, Answer) else dispatch(request)
        record_answer(answer.status)
        if wiring.has_line(answer.status):
            logger.info(
                "dispatch",
                action="dispatch",
                status=answer.status,
                path=event.get("path"),
                request=gateway.request_id(event),
            )
    return gateway.respond(answer)


def _take(event: dict[str, Any], context: wiring.LambdaContext) -> dict[str, object]:
    from duetick.runtime import receiving

    def seconds_left() -> float:
        return context.get_remaining_time_in_millis() / 1_000

    try:
        return receiving.answer_messages(event, wiring.queue(), seconds_left, wiring.run_message)
    finally:
        wiring.announce(seconds_left() - RESERVE)


def ring(event: dict[str, Any], context: wiring.LambdaContext) -> gateway.Response:
    """Claim the row for which a bell rings, and run the occurrences that the claim leases."""
    from duetick.domain.bells import Ring

    ring = Ring.read(event)
    if ring:
        wiring.ringer().answer(ring, lambda: context.get_remaining_time_in_millis() / 1_000)
    return {"statusCode": 204, "headers": {}, "body": ""}

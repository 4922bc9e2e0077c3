"""Behind the dispatch route of the API: one call, one occurrence."""

from typing import Any

from duetick.core.answers import Answer
from duetick.runtime import background, gateway, wiring
from duetick.runtime.telemetry import logger, metrics, record_answer

dispatch = wiring.dispatcher()


@logger.inject_lambda_context(correlation_id_path="requestContext.requestId")
@metrics.log_metrics
def handler(event: dict[str, Any], context: wiring.LambdaContext) -> gateway.Response:
    """Answer an API Gateway REST event, or run a background action in an invocation of its own."""
    seconds = context.get_remaining_time_in_millis() / 1_000
    queued = background.from_event(event, seconds)
    if queued:
        answer = dispatch.run_queued(queued)
    else:
        request = gateway.dispatch_request(event, seconds)
        answer = request if isinstance(request, Answer) else dispatch(request)
    record_answer(answer.status)
    logger.info("dispatch", action="dispatch", status=answer.status, path=event.get("path"))
    return gateway.respond(answer)

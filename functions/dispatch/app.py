"""Behind the dispatch route of the API: one call, one occurrence."""

from duetick.core.answers import Answer
from duetick.runtime import gateway, wiring
from duetick.runtime.telemetry import logger

dispatch = wiring.dispatcher()


@logger.inject_lambda_context(correlation_id_path="requestContext.requestId")
def handler(event: gateway.Event, _context: object) -> gateway.Response:
    """Answer an API Gateway REST event."""
    request = gateway.dispatch_request(event)
    answer = request if isinstance(request, Answer) else dispatch(request)
    logger.info("dispatch", action="dispatch", status=answer.status, path=event["path"])
    return gateway.respond(answer)

"""Behind the schedules routes: a user's own, and the operators' view of any user's."""

from aws_lambda_powertools.utilities.typing import LambdaContext
from duetick.api import browsers
from duetick.api.serving import app
from duetick.runtime import wiring
from duetick.runtime.telemetry import logger


@logger.inject_lambda_context(correlation_id_path="requestContext.requestId")
def handler(event: dict[str, object], context: LambdaContext) -> dict[str, object]:
    """Answer an API Gateway REST event."""
    origin = wiring.settings().allowed_origin
    if browsers.asks_first(event, origin):
        return browsers.told(origin)
    return browsers.readable(app.resolve(event, context), origin)

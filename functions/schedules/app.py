"""The schedules routes: a user's own schedules, and for operators those of any user."""

from aws_lambda_powertools.utilities.typing import LambdaContext
from duetick.api.serving import app
from duetick.runtime import wiring
from duetick.runtime.gateway import allow_origin
from duetick.runtime.telemetry import logger, withhold_raised


@withhold_raised
@logger.inject_lambda_context(correlation_id_path="requestContext.requestId")
def handler(event: dict[str, object], context: LambdaContext) -> dict[str, object]:
    """Answer an API Gateway REST event."""
    return allow_origin(app.resolve(event, context), wiring.settings().allowed_origin)

"""The schedules routes: a user's own schedules, and for operators those of any user."""

from typing import Any

from duetick.runtime.starting import without_collections

with without_collections():
    from duetick.api.serving import serve
    from duetick.runtime import gateway, wiring
    from duetick.runtime.telemetry import logger, withhold_raised


@withhold_raised
@logger.inject_lambda_context(correlation_id_path="requestContext.requestId")
def handler(event: dict[str, Any], context: wiring.LambdaContext) -> gateway.Response:
    """Answer an API Gateway REST event."""
    del context
    return gateway.allow_origin(serve(event), wiring.settings().allowed_origin)

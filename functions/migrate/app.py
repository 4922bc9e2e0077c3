"""Run by hand, or at a deploy: create or update the schema."""

from duetick.runtime import wiring
from duetick.runtime.telemetry import logger


@logger.inject_lambda_context
def handler(_event: object, _context: object) -> dict[str, str]:
    """Safe to run twice, and beside another."""
    store = wiring.store()
    store.migrate()
    store.check_schema()
    return {"schema": "up to date"}

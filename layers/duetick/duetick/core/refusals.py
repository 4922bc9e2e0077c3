"""What a caller did wrong, or what is down, as an answer that says what to do."""

from typing import Final

from duetick.core.answers import Answer, error
from duetick.domain.errors import (
    InvalidCursor,
    KeyReused,
    NotFound,
    QuotaReached,
    SchemaOutdated,
    StoreUnavailable,
    VersionConflict,
)
from duetick.domain.identity import InvalidId

_REFUSALS: Final[tuple[tuple[type[Exception], str, str], ...]] = (
    (InvalidId, "invalid_schedule_id", ""),
    (InvalidCursor, "invalid_cursor", ""),
    (NotFound, "schedule_not_found", ""),
    (VersionConflict, "version_conflict", ""),
    (KeyReused, "idempotency_key_reused", ""),
    (ValueError, "invalid_schedule", ""),
    (SchemaOutdated, "schema_outdated", ""),
    (StoreUnavailable, "store_unavailable", "The database did not answer; try again."),
)


def refused(problem: Exception) -> Answer | None:
    """The answer to it; None where it is nobody's fault but ours."""
    if isinstance(problem, QuotaReached):
        return error("quota_exceeded", str(problem), limit=problem.limit, value=problem.value)
    for kind, code, message in _REFUSALS:
        if isinstance(problem, kind):
            return error(code, message or str(problem))
    return None

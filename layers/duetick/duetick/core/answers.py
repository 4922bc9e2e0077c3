"""The answers of both APIs, and the table of error codes with their statuses."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from duetick.domain.limits import Limit
from duetick.domain.schedule import Json


@dataclass(frozen=True, slots=True)
class Answer:
    """An HTTP status and a JSON body."""

    status: int
    body: dict[str, Json]
    headers: Mapping[str, str] = field(default_factory=dict)


_STATUS: Final = {
    "invalid_schedule_id": 400,
    "invalid_schedule": 400,
    "invalid_cursor": 400,
    "invalid_query": 400,
    "unauthorized": 401,
    "forbidden": 403,
    "flow_not_found": 404,
    "schedule_not_found": 404,
    "backfill_not_found": 404,
    "job_not_found": 404,
    "occurrence_not_found": 404,
    "not_found": 404,
    "method_not_allowed": 405,
    "already_failed": 409,
    "in_progress": 409,
    "occurrence_conflict": 409,
    "schedule_exists": 409,
    "backfill_exists": 409,
    "idempotency_key_reused": 409,
    "schedule_paused": 409,
    "still_unreadable": 409,
    "quota_exceeded": 409,
    "version_conflict": 412,
    "too_large": 413,
    "too_many_runs": 429,
    "too_many_writes": 429,
    "limit_reached": 429,
    "resolver_failed": 500,
    "dispatch_failed": 500,
    "action_failed": 500,
    "internal": 500,
    "flow_unregistered": 503,
    "not_delivered": 503,
    "not_tried": 503,
    "store_unavailable": 503,
    "schema_outdated": 503,
}


def error(code: str, message: str, **more: Json) -> Answer:
    """Return an error as an answer. It contains no secret and no stack trace."""
    return Answer(_STATUS[code], {"error": code, "message": message, **more})


def wrong_method(*allowed: str) -> Answer:
    """Return the refusal of a method. The route takes only the allowed ones."""
    methods = ", ".join(sorted(allowed))
    refusal = error("method_not_allowed", f"This route takes {methods}.")
    return replace(refusal, headers={"allow": methods})


def retry_after(answer: Answer, at: int, now: int) -> Answer:
    """Return the answer with the seconds after which its caller may try again."""
    seconds = max(1, -(-(at - now) // 1_000))
    return replace(answer, headers={"retry-after": str(seconds)})


def limit_reached(limit: Limit, now: int) -> Answer:
    """Return the refusal of a request while a limit has no place: nothing is recorded."""
    message = "A limit that operators have set is reached. Try again as Retry-After says."
    return retry_after(error("limit_reached", message), limit.free_at(now), now)

"""What dispatch answers: the one table of statuses and codes."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, Literal

from duetick.domain.schedule import Json
from duetick.ports import Outcome

LONGEST_ERROR: Final = 500
WAITS: Final = "It waits until another one of its schedule has ended."
"""How a tick knows that nothing failed: the ledger has it, and brings it again."""


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
    "unauthorized": 401,
    "forbidden": 403,
    "flow_not_found": 404,
    "schedule_not_found": 404,
    "not_found": 404,
    "method_not_allowed": 405,
    "in_progress": 409,
    "schedule_exists": 409,
    "idempotency_key_reused": 409,
    "schedule_paused": 409,
    "quota_exceeded": 409,
    "version_conflict": 412,
    "too_large": 413,
    "too_many_runs": 429,
    "resolver_failed": 500,
    "dispatch_failed": 500,
    "action_failed": 500,
    "internal": 500,
    "flow_unregistered": 503,
    "not_delivered": 503,
    "store_unavailable": 503,
    "schema_outdated": 503,
}


def error(code: str, message: str, **more: Json) -> Answer:
    """An error body; it tells no secret and no stack."""
    return Answer(_STATUS[code], {"error": code, "message": message, **more})


def in_progress(*, waits: bool) -> Answer:
    """Another call has it, or another one of its schedule goes first."""
    return error("in_progress", WAITS if waits else "It is another call's at the moment.")


def wrong_method(*allowed: str) -> Answer:
    """A route is there, and takes these."""
    methods = ", ".join(sorted(allowed))
    refusal = error("method_not_allowed", f"This route takes {methods}.")
    return replace(refusal, headers={"allow": methods})


class Stop(Exception):
    """Ends a dispatch with an answer; what was begun is settled with the outcome."""

    def __init__(self, answer: Answer, outcome: Outcome | None = None) -> None:
        super().__init__(answer.body.get("message"))
        self.answer = answer
        self.outcome = outcome


def told(problem: BaseException, shown: Callable[[str], str] = str) -> str:
    """An error as the ledger keeps it, also one that cannot say what it is.

    Cut last: half of what is withheld would be shown.
    """
    try:
        said = str(problem)
    except Exception:
        said = "it cannot be shown"
    return shown(f"{type(problem).__name__}: {said}")[:LONGEST_ERROR]


def accepted(
    schedule_id: str,
    origin: str,
    request_id: str,
    outcome: Literal["succeeded", "queued"] = "succeeded",
) -> Answer:
    """The action ran to its end, or is durably queued."""
    return Answer(
        202,
        {
            "status": "accepted",
            "scheduleId": schedule_id,
            "origin": origin,
            "requestId": request_id,
            "outcome": outcome,
        },
    )


def duplicate(state: str) -> Answer:
    """It was dispatched before."""
    return Answer(200, {"status": "duplicate", "state": state})


def skipped(reason: str) -> Answer:
    """It ends without running."""
    return Answer(200, {"status": "skipped", "reason": reason})

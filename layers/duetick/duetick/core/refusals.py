"""The answers to errors: to mistakes of the caller, and to a database that is down."""

import logging
from dataclasses import replace
from typing import Final

from duetick.core.answers import Answer, error
from duetick.core.wire import in_json
from duetick.domain.errors import (
    BackfillNotFound,
    BackfillStands,
    DuetickError,
    Flaw,
    InvalidCursor,
    InvalidQuery,
    InvalidSchedule,
    JobNotFound,
    KeyReused,
    NotFound,
    OccurrenceConflict,
    OccurrenceNotFound,
    PoisonedRow,
    QuotaReached,
    RateReached,
    Refusal,
    SchemaOutdated,
    StoreUnavailable,
    VersionConflict,
    sentences,
)
from duetick.domain.identity import InvalidId
from duetick.domain.schedule import Json

logger = logging.getLogger("duetick.schedules")

_REFUSALS: Final[tuple[tuple[type[Exception], str, str], ...]] = (
    (InvalidId, "invalid_schedule_id", ""),
    (InvalidCursor, "invalid_cursor", ""),
    (BackfillNotFound, "backfill_not_found", ""),
    (BackfillStands, "backfill_exists", ""),
    (InvalidQuery, "invalid_query", ""),
    (JobNotFound, "job_not_found", ""),
    (OccurrenceNotFound, "occurrence_not_found", ""),
    (OccurrenceConflict, "occurrence_conflict", ""),
    (NotFound, "schedule_not_found", ""),
    (VersionConflict, "version_conflict", ""),
    (KeyReused, "idempotency_key_reused", ""),
    (PoisonedRow, "still_unreadable", ""),
    (ValueError, "invalid_schedule", ""),
    (SchemaOutdated, "schema_outdated", "The service is being updated; try again in a moment."),
    (StoreUnavailable, "store_unavailable", "The database did not answer; try again."),
)


def answer_to(problem: Exception, user_id: str, *, operator: bool = False) -> Answer | None:
    """Return the answer to an error; None if the error is a bug of ours.

    An `operator` reads the schema that the store has, and the command that updates it.
    """
    log_advice(problem, user=user_id)
    if operator and isinstance(problem, SchemaOutdated):
        from duetick.domain.redaction import redact_text  # for a failure: no start pays for it

        return error("schema_outdated", redact_text(str(problem)) or "")
    if isinstance(problem, RateReached):
        code = f"too_many_{problem.limit}"
        answer = error(code, str(problem), limit=problem.limit, value=problem.value)
        return replace(answer, headers={"retry-after": str(problem.seconds)})
    if isinstance(problem, QuotaReached):
        answer = error("quota_exceeded", str(problem), limit=problem.limit, value=problem.value)
        return with_problems(answer, problem)
    for kind, code, message in _REFUSALS:
        if isinstance(problem, kind):
            return with_problems(error(code, message or message_of(problem)), problem)
    return None


def log_advice(problem: Exception, **about: str) -> None:
    """Log the advice to operators that an error has. Callers do not see it."""
    for flaw in problem.flaws if isinstance(problem, Refusal) else ():
        if flaw.advice:
            action = "quota_reached" if flaw.code == "quota_exceeded" else "refused"
            logger.info("refused: %s", flaw.advice, extra={"action": action, **about})


def with_problems(answer: Answer, problem: Exception) -> Answer:
    """Add the flaws of a refusal to its answer, each with its field, for a form."""
    if not isinstance(problem, Refusal):
        return answer
    problems: list[Json] = [_flaw_json(flaw) for flaw in problem.flaws]
    return replace(answer, body={**answer.body, "problems": problems})


def message_of(problem: Exception) -> str:
    """Return the whole text of an error. Fields have their names in JSON."""
    if isinstance(problem, InvalidSchedule):
        return sentences(tuple(map(in_json, problem.flaws)))
    if isinstance(problem, DuetickError):
        return str(problem)
    from duetick.domain.redaction import redact_text  # somebody else's words: a driver's, a type's

    return redact_text(str(problem)) or ""


def _flaw_json(flaw: Flaw) -> Json:
    return {
        "field": "".join(map(_pointer_step, in_json(flaw).path)),
        "code": flaw.code,
        "message": flaw.problem,
    }


def _pointer_step(part: str | int) -> str:
    """Return a step of a JSON pointer. Lone surrogates are escaped."""
    written = str(part).encode(errors="backslashreplace").decode()
    return f"/{written.replace('~', '~0').replace('/', '~1')}"

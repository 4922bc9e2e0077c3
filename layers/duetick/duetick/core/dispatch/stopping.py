"""The early end of a dispatch: the answer to its caller, and the outcome of a begun attempt."""

import logging
from collections.abc import Callable
from typing import Final

from duetick.core.answers import Answer, error
from duetick.core.dispatch.calls import Request, about_call
from duetick.core.refusals import log_advice, message_of, with_problems
from duetick.domain.attempts import Outcome, reject, reject_gone
from duetick.domain.errors import (
    ActionFailed,
    ConfigurationError,
    InvalidSchedule,
    SchemaOutdated,
    StoreUnavailable,
)
from duetick.domain.expression import InvalidExpression
from duetick.domain.identity import InvalidId
from duetick.domain.states import Reason

LONGEST_ERROR: Final = 500

logger = logging.getLogger("duetick.dispatch")


class Stop(Exception):
    """The early end of a dispatch, with an answer.

    An attempt that was begun is settled with the outcome: rejected, unless another one is given.
    """

    def __init__(self, answer: Answer, outcome: Outcome | None = None) -> None:
        message = str(answer.body.get("message", ""))
        super().__init__(message)
        self.answer = answer
        self.outcome = outcome or reject(message)


class NotDeployed(Stop):
    """The end of a dispatch whose flow, or action, the deployment does not have."""

    def __init__(self, answer: Answer) -> None:
        super().__init__(answer, reject_gone(str(answer.body.get("message", ""))))


def answer_to(request: Request, dispatch: Callable[[], Answer]) -> Answer:
    """Return the answer of a dispatch. An error becomes an answer that shows no secret and no
    stack.
    """
    try:
        return dispatch()
    except Stop as stop:
        return stop.answer
    except (InvalidSchedule, InvalidExpression) as problem:
        return refuse_invalid(problem)
    except Exception as problem:
        details = {"action": "dispatch_failed", **about_call(request)}
        logger.exception("dispatch failed", extra=details)
        if isinstance(problem, SchemaOutdated):
            from duetick.domain.redaction import redact_text  # for a failure: no start pays for it

            return error("dispatch_failed", redact_text(str(problem)) or "")
        down = isinstance(problem, StoreUnavailable)
        why = "The database did not answer" if down else "Something unexpected happened"
        return error("dispatch_failed", f"{why}; the log says more. Try again.")


def refuse_invalid(problem: ValueError) -> Answer:
    """Return the answer to an invalid schedule or call."""
    log_advice(problem)
    code = "invalid_schedule_id" if isinstance(problem, InvalidId) else "invalid_schedule"
    return with_problems(error(code, message_of(problem)), problem)


def describe_error(problem: BaseException, redact: Callable[[str], str] = str) -> str:
    """Return the text of an error for the ledger; some errors cannot even be turned into text.

    The text is cut last. A secret that was cut before would not be found, and half of it would be
    shown.
    """
    try:
        text = str(problem)
    except Exception:
        text = "it cannot be shown"
    cause = problem.__cause__ if isinstance(problem, ActionFailed) else None
    why = f" (because of {type(cause).__name__}: {cause})" if cause else ""
    return redact(f"{type(problem).__name__}: {text}{why}")[:LONGEST_ERROR]


def words_for_user(problem: BaseException, redact: Callable[[str], str]) -> str | None:
    """Return the words that an action chose to tell its user; None if it chose none."""
    return redact(str(problem))[:LONGEST_ERROR] if isinstance(problem, ActionFailed) else None


def reason_of_error(problem: BaseException) -> Reason:
    """Return the reason of an attempt that raised. A wrong configuration fails at every retry."""
    return Reason.REJECTED if isinstance(problem, ConfigurationError) else Reason.FAILED

"""The answers of dispatch that are not errors of the caller: the table of CONTRACT's D-03."""

from dataclasses import replace
from typing import TYPE_CHECKING

from duetick.core.answers import Answer, error, retry_after
from duetick.core.wire import iso
from duetick.domain.attempts import Refused
from duetick.domain.policies import LAST_INSTANT
from duetick.domain.states import Reason, State

if TYPE_CHECKING:
    from duetick.domain.schedule import Json, Occurrence


def answer_in_progress(*, waits: bool) -> Answer:
    """Return the answer if another call runs it. If it `waits`, a tick brings it again."""
    if waits:
        return error("in_progress", "It waits, and a tick brings it again.", waits=True)
    return error("in_progress", "It is another call's at the moment.")


def answer_held_back(refused: Refused, now: int) -> Answer:
    """Return the answer if a limit has no place for it: a tick brings it again."""
    message = "It waits for a limit that operators have set, and a tick brings it again."
    answer = error("in_progress", message, waits=True, limited=True)
    return retry_after(answer, refused.due_at or now, now)


def answer_failed(refused: Refused, now: int) -> Answer:
    """Return the answer to a call whose attempt failed before. If `final`, the caller may stop."""
    details: dict[str, Json] = {"state": refused.state, "reason": refused.reason or Reason.FAILED}
    if refused.state is State.DEAD:
        message = "It failed, and is not tried again. The history says why."
        return error("already_failed", message, **details, final=True)
    due_at = max(now, refused.due_at or now)
    if due_at > LAST_INSTANT:
        message = "It failed, and is tried again once its schedule is resumed."
        return error("already_failed", message, **details, final=False)
    message = "It failed, and is tried again by itself. Ask again after that."
    answer = error("already_failed", message, **details, final=False, nextAttemptAt=iso(due_at))
    return retry_after(answer, due_at, now)


def add_final(answer: Answer, dead: "Occurrence") -> Answer:
    """Return the answer with the death of the occurrence, for a tick: its call names the tick."""
    details: dict[str, Json] = {"final": True, "reason": dead.reason or Reason.FAILED}
    return replace(answer, body={**answer.body, **details})


def answer_accepted(
    schedule_id: str,
    origin: str,
    request_id: str,
    *,
    queued: bool = False,
) -> Answer:
    """Return the answer if the action ran to its end, or is durably queued."""
    return Answer(
        202,
        {
            "status": "accepted",
            "scheduleId": schedule_id,
            "origin": origin,
            "requestId": request_id,
            "outcome": "queued" if queued else "succeeded",
        },
    )


def answer_duplicate(state: str) -> Answer:
    """Return the answer if the occurrence was dispatched before."""
    return Answer(200, {"status": "duplicate", "state": state})


def answer_skipped(reason: str) -> Answer:
    """Return the answer if the occurrence ends without a run."""
    return Answer(200, {"status": "skipped", "reason": reason})


def answer_missing() -> Answer:
    """Return one answer for a schedule that never existed and for another caller's."""
    return error("schedule_not_found", "No such schedule.")


def to_tick(refused: Refused, now: int) -> Answer:
    """Return the answer to a tick. Its fence decides whether dispatch has the occurrence."""
    if refused.limit is not None:
        return answer_held_back(refused, now)
    match refused.verdict:
        case "duplicate" if refused.state is not State.CANCELLED:
            return answer_duplicate(refused.state or State.SUCCEEDED)
        case "cancelled" | "duplicate":
            return answer_skipped(refused.reason or "")
        case "unknown":
            return answer_missing()
        case "stale" | "in_progress":
            return answer_in_progress(waits=refused.reason is not None)


def to_caller(refused: Refused, now: int) -> Answer:
    """Return the answer to an outside caller. It reports a success only if there was one."""
    match refused.state:
        case State.DEAD | State.RETRYING:
            return answer_failed(refused, now)
        case State.SCHEDULED:
            return error("in_progress", "It is recorded, and fires by itself when it is due.")
        case _:
            return to_tick(refused, now)

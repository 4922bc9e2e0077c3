"""An agent that follows up on its work: each follow-up is a schedule of its user."""

import logging
from dataclasses import dataclass

from duetick import Context, Flow

assistant = Flow("assistant")
logger = logging.getLogger("duetick.flows.assistant")


@dataclass(frozen=True, slots=True)
class Task:
    """A task for the agent: a case, and what to do about it."""

    case: int
    instructions: str


@dataclass(frozen=True, slots=True)
class FollowUp:
    """A case to look at again."""

    case: int


@assistant.action("work")
def work(task: Task, ctx: Context) -> None:
    """Work on a case now, and schedule a follow-up.

    The key names the case, so a repeat makes no second one. `ctx.schedules` acts as the agent's
    user, with that user's quotas.
    """
    logger.info("case %d: %s", task.case, task.instructions)
    ctx.schedules.create(
        f"followup-{task.case}",
        cron="0 10 * * MON-FRI",
        timezone="Europe/Berlin",
        action="follow_up",
        input={"case": task.case},
    )


@assistant.action("follow_up")
def follow_up(task: FollowUp, ctx: Context) -> None:
    """Look at the case again. If it has an answer, end the follow-ups."""
    logger.info("case %d again, for %s", task.case, ctx.principal.user_id)
    if has_answer(task.case):
        ctx.schedules.delete(f"followup-{task.case}")


def has_answer(case: int) -> bool:
    """Return True if the case has an answer. A real function would look."""
    return case % 2 == 0

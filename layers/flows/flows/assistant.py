"""An agent that follows up: what it is asked to do later becomes a schedule of its user."""

import logging
from dataclasses import dataclass

from duetick import Context, Flow

assistant = Flow("assistant")
logger = logging.getLogger("duetick.flows.assistant")


@dataclass(frozen=True, slots=True)
class Task:
    """What the agent is to do, and which case it is about."""

    case: int
    instructions: str


@dataclass(frozen=True, slots=True)
class FollowUp:
    """Which case to look at again."""

    case: int


@assistant.action("work")
def work(task: Task, ctx: Context) -> None:
    """Do a part now, and come back to it. The key names the case: asked twice, it is made once.

    `ctx.schedules` acts as the user for whom the agent works, with that user's quotas.
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
def follow_up(asked: FollowUp, ctx: Context) -> None:
    """Look again; when there is nothing left to do, end the follow-ups."""
    logger.info("case %d again, for %s", asked.case, ctx.principal.user_id)
    if answered(asked.case):
        ctx.schedules.delete(f"followup-{asked.case}")


def answered(case: int) -> bool:
    """Whether somebody has replied; a real one would look."""
    return case % 2 == 0

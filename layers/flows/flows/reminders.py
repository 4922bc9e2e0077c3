"""An example to start from: one flow, one action."""

import logging
from dataclasses import dataclass

from duetick import Context, Flow

reminders = Flow("reminders")
logger = logging.getLogger("duetick.flows.reminders")


@dataclass(frozen=True, slots=True)
class Reminder:
    """What a user wants to be told."""

    text: str


@reminders.action("remind")
def remind(reminder: Reminder, ctx: Context) -> None:
    """Tell the user; a real one would send a message."""
    logger.info("%s: %s", ctx.principal.user_id, reminder.text, extra={"schedule": ctx.schedule_id})

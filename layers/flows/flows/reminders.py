"""The smallest example: one flow, one action."""

import logging
from dataclasses import dataclass

from duetick import Context, Flow

reminders = Flow("reminders")
logger = logging.getLogger("duetick.flows.reminders")


@dataclass(frozen=True, slots=True)
class Reminder:
    """The text of a reminder."""

    text: str


@reminders.action("remind")
def remind(reminder: Reminder, ctx: Context) -> None:
    """Remind the user. A real action would send a message."""
    logger.info("%s: %s", ctx.principal.user_id, reminder.text, extra={"schedule": ctx.schedule_id})

"""Logs for a person at a terminal instead of a log store."""

import logging
from typing import Final

from aws_lambda_powertools.logging.formatter import LambdaPowertoolsFormatter

from duetick.runtime.telemetry import logger

SHOWN: Final = (
    "schedule", "flow", "occurrence", "attempt", "why", "status", "path", "claimed", "delivered",
    "failed", "behind", "poisoned", "left",
)  # fmt: skip


class PlainFormatter(LambdaPowertoolsFormatter):
    """A formatter of one short line, followed by the stack if there is one."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the time, the message and the fields in `SHOWN`."""
        fields = vars(record)
        present = [name for name in SHOWN if fields.get(name) not in (None, "")]
        extra = " ".join(f"{name}={fields[name]}" for name in present)
        time = self.formatTime(record, "%H:%M:%S")
        line = f"{time} {record.levelname.lower():7} {record.getMessage()}  {extra}"
        line = "".join(c if c.isprintable() else repr(c)[1:-1] for c in line)
        stack = self.formatException(record.exc_info) if record.exc_info else ""
        trace = stack or fields.get("exception", "")
        return line.rstrip() + (f"\n{trace.rstrip()}" if trace else "")


def speak_plainly() -> None:
    """Use this format from now on."""
    for name in (logger.name, "duetick"):
        for handler in logging.getLogger(name).handlers:
            handler.setFormatter(PlainFormatter())

"""Logs for a person at a terminal instead of a log store."""

import logging
from typing import Final

from aws_lambda_powertools.logging.formatter import LambdaPowertoolsFormatter

from duetick.runtime.telemetry import logger

SHOWN: Final = (
    "schedule", "status", "path", "claimed", "delivered", "failed", "waiting", "poisoned", "left",
)  # fmt: skip


class PlainFormatter(LambdaPowertoolsFormatter):
    """One short line, and the stack where there is one."""

    def format(self, record: logging.LogRecord) -> str:
        """The time, the message and the fields that tell what happened."""
        fields = vars(record)
        extra = " ".join(f"{name}={fields[name]}" for name in SHOWN if name in fields)
        time = self.formatTime(record, "%H:%M:%S")
        line = f"{time} {record.levelname.lower():7} {record.getMessage()}  {extra}"
        line = "".join(c if c.isprintable() else repr(c)[1:-1] for c in line)
        stack = self.formatException(record.exc_info) if record.exc_info else ""
        told = stack or fields.get("exception", "")
        return line.rstrip() + (f"\n{told.rstrip()}" if told else "")


def speak_plainly() -> None:
    """Log so from now on."""
    for name in (logger.name, "duetick"):
        for handler in logging.getLogger(name).handlers:
            handler.setFormatter(PlainFormatter())

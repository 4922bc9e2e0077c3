"""Logs for a person at a terminal instead of a log store."""

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from aws_lambda_powertools.logging.formatter import LambdaPowertoolsFormatter

from duetick.runtime.telemetry import logger

SHOWN: Final = (
    "schedule", "flow", "occurrence", "attempt", "why", "status", "path", "claimed", "delivered",
    "failed", "behind", "poisoned", "left",
)  # fmt: skip


OF_PACKS: Final = ("handed_on", "packs", "succeeded", "refused", "not_begun", "lateness_ms")
"""Shown if they are not 0: most ticks have none of them."""


class PlainFormatter(LambdaPowertoolsFormatter):
    """A formatter of one short line, followed by the stack if there is one."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the time, the message and the fields in `SHOWN` and `OF_PACKS`."""
        fields = vars(record)
        present = [name for name in SHOWN if fields.get(name) not in (None, "")]
        present += [name for name in OF_PACKS if fields.get(name)]
        extra = " ".join(f"{name}={fields[name]}" for name in present)
        time = self.formatTime(record, "%H:%M:%S")
        line = f"{time} {record.levelname.lower():7} {record.getMessage()}  {extra}"
        line = "".join(c if c.isprintable() else repr(c)[1:-1] for c in line)
        stack = self.formatException(record.exc_info) if record.exc_info else ""
        trace = stack or fields.get("exception", "")
        return line.rstrip() + (f"\n{trace.rstrip()}" if trace else "")


def speak_plainly() -> None:
    """Use this format from now on."""
    for one in _loggers():
        for handler in one.handlers:
            handler.setFormatter(PlainFormatter())


@contextmanager
def log_to_stderr() -> Iterator[None]:
    """Write logs to stderr, from warnings on: the answer of a command stands alone on stdout."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setLevel(logging.WARNING)
    handler.setFormatter(PlainFormatter())
    before = [(one, [*one.handlers]) for one in _loggers()]
    try:
        for one, _ in before:
            one.handlers[:] = [handler]
        yield
    finally:
        for one, handlers in before:
            one.handlers[:] = handlers


def _loggers() -> tuple[logging.Logger, ...]:
    names = {logger.name, "duetick"}
    return tuple(logging.getLogger(name) for name in names)

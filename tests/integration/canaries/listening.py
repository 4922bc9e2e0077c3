"""The texts that are written during the acts, by outlet."""

import io
import json
import logging
import traceback
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from typing import TypeAlias

from aws_lambda_powertools.logging.formatter import LambdaPowertoolsFormatter
from duetick.cli.plain_log import PlainFormatter

from tests.integration.canaries.outlets import LINES

Written: TypeAlias = defaultdict[str, list[str]]


class Listener(logging.Handler):
    """Every line of every logger, as Lambda's log and as a terminal show it."""

    def __init__(self, written: Written) -> None:
        super().__init__()
        self._written = written
        self._formats = LambdaPowertoolsFormatter(), PlainFormatter()

    def emit(self, record: logging.LogRecord) -> None:
        """Keep it under its action."""
        stored, printed = (each.format(record) for each in self._formats)
        action = vars(record).get("action")
        self._written[f"line {action}" if action in LINES else "other lines"].append(stored)
        self._written["lines of a terminal"].append(printed)


@contextmanager
def listening(written: Written) -> Iterator[None]:
    """Keep all lines, and both streams, of the block."""
    listener, out, err = Listener(written), io.StringIO(), io.StringIO()
    root = logging.getLogger()
    root.addHandler(listener)
    try:
        with redirect_stdout(out), redirect_stderr(err):
            yield
    finally:
        root.removeHandler(listener)
        for line in (*out.getvalue().splitlines(), *err.getvalue().splitlines()):
            written["metrics" if '"_aws"' in line else "streams"].append(line)


def as_lambda_logs(problem: BaseException) -> str:
    """Return an error as Lambda's runtime writes it: to the log, and to the failures' place."""
    stack = traceback.format_tb(problem.__traceback__)
    return json.dumps([type(problem).__name__, str(problem), stack])

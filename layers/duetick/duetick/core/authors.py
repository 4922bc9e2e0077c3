"""The errors that the type of an action's input raises: its author's words, or a bug's."""

import logging
import sys
from opcode import opmap
from traceback import walk_tb
from types import FrameType
from typing import Final

UNFIT: Final = "is not what is expected here."
"""The message for users if the author of the type wrote none."""

_RAISE: Final = opmap["RAISE_VARARGS"]

logger = logging.getLogger("duetick.flows")


def words_of(problem: Exception) -> str:
    """Return the message of an error for users: the text of the author's `raise` or `assert`.

    The texts of Python's errors (`int("x")`, a missing key, a wrong type) are for programmers, and
    users do not see them. The log has the place of such an error, but not its text: it may quote a
    secret.
    """
    words = str(problem).strip() if _is_authors(problem) else ""
    if not words:
        details = {
            "action": "input_failed",
            "why": f"{type(problem).__name__} at {_place(problem)}",
        }
        logger.warning("the type of an input raised: %s", details["why"], extra=details)
    return words or UNFIT


def _is_authors(problem: Exception) -> bool:
    """Return True if the last line that ran is a `raise` outside of Python's library."""
    last = problem.__traceback__
    while last and last.tb_next:
        last = last.tb_next
    if last is None or not isinstance(problem, ValueError | AssertionError):
        return False
    raised = last.tb_frame.f_code.co_code[last.tb_lasti] == _RAISE
    return raised and not _is_pythons(last.tb_frame)


def _is_pythons(frame: FrameType) -> bool:
    package = str(frame.f_globals.get("__name__", "")).partition(".")[0]
    return package in sys.stdlib_module_names


def _place(problem: Exception) -> str:
    """Return the last file and line outside of Python's library."""
    lines = [
        f"{frame.f_code.co_filename}:{line}"
        for frame, line in walk_tb(problem.__traceback__)
        if not _is_pythons(frame)
    ]
    return lines[-1] if lines else "an unknown line"

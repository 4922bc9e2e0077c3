"""The errors of the command: it prints their text and ends with their exit code."""

from typing import ClassVar


class CliProblem(Exception):
    """A refusal or a failure whose text says what to do. The exit code is 1."""

    code: ClassVar[int] = 1


class WrongUsage(CliProblem):
    """Arguments that contradict each other, or are missing: exit code 2."""

    code = 2

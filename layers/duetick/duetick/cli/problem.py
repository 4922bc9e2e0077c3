"""The errors of the command: it prints their text and ends with their exit code."""

from typing import ClassVar


class CliProblem(Exception):
    """A problem whose text says what to do. It was refused, or it failed: exit code 1."""

    code: ClassVar[int] = 1


class WrongUsage(CliProblem):
    """Arguments that contradict each other, or are missing: exit code 2."""

    code = 2

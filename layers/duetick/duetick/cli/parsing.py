"""The arguments of the command. Errors show the usage of the wrong part, and the valid numbers."""

import argparse
import io
import re
import sys
from argparse import ArgumentTypeError
from collections.abc import Callable, Sequence
from contextlib import redirect_stderr
from itertools import pairwise
from math import inf
from typing import Any, Final, TypeVar

from duetick.domain.redaction import WITHHELD, redact_text

_Number = TypeVar("_Number", int, float)

ERROR: Final = ": error: "
"""The text between the usage and the reason."""

OF_TOKENS: Final = "--token"


class Parser(argparse.ArgumentParser):
    """A parser that takes each option by its whole name. By its beginning, `--to` is `--token`, and
    the name of a file is sent as one.
    """

    def __init__(self, **given: Any) -> None:  # noqa: ANN401 -- whatever argparse takes
        super().__init__(**{"allow_abbrev": False, **given})


def read(parser: argparse.ArgumentParser, arguments: Sequence[str] | None) -> argparse.Namespace:
    """Return the arguments. If they are wrong, end the command with the usage and the reason.

    An unknown argument shows the usage of its own verb, not that of the whole command. The reason
    repeats no secret: a token may stand at a wrong place.
    """
    told = io.StringIO()
    try:
        with redirect_stderr(told):
            return _read(parser, arguments)
    finally:
        usage, mark, reason = told.getvalue().rpartition(ERROR)
        given = sys.argv[1:] if arguments is None else arguments
        sys.stderr.write(f"{usage}{mark}{_withhold(reason, given)}")


def _read(parser: argparse.ArgumentParser, arguments: Sequence[str] | None) -> argparse.Namespace:
    chosen, unknown = parser.parse_known_args(arguments)
    if unknown:
        nearest: argparse.ArgumentParser = chosen.parser
        nearest.error(f"unknown: {' '.join(unknown)}")
    return chosen


def _withhold(reason: str, given: Sequence[str]) -> str:
    """Return the reason without the secrets among the arguments."""
    for one in given:
        reason = reason.replace(one, redact_text(one) or "")
    pairs = [one.partition("=")[::2] for one in given if "=" in one]
    for option, value in (*pairwise(given), *pairs):
        if option.startswith("-") and value and _is_secret(option, value):
            reason = re.sub(rf"(?<![\w-]){re.escape(value)}(?![\w-])", WITHHELD, reason)
    return reason


def _is_secret(option: str, value: str) -> bool:
    """Return True if an option has a secret: by its name, or as the beginning of `--token`."""
    named = redact_text(f"{option} {value}") == f"{option} {WITHHELD}"
    return named or (len(option) > len("--") and OF_TOKENS.startswith(option))


def note_parser(parser: argparse.ArgumentParser) -> argparse.ArgumentParser:
    """Let the arguments name the parser that read their last part."""
    parser.set_defaults(parser=parser)
    return parser


def whole(least: float = -inf, most: float = inf) -> Callable[[str], int]:
    """Return a parser of whole numbers within these bounds."""
    wanted = "expected a whole number" + (f" from {least} to {most}" if most < inf else "")

    def read(text: str) -> int:
        try:
            number = int(text)
        except ValueError:
            raise ArgumentTypeError(f"{wanted}, got {text[:40]!r}") from None
        if not least <= number <= most:
            raise ArgumentTypeError(f"{wanted}, got {text[:40]!r}")
        return number

    return read


def not_empty(text: str) -> str:
    """Parse a name. An empty one, such as an unset variable of a script, is no name: it must not
    count as an option that is left out.
    """
    if not text:
        raise ArgumentTypeError("expected a name, got ''; leave the option out if you mean none")
    return text


def several(read: Callable[[str], _Number]) -> Callable[[str], list[_Number]]:
    """Return a parser of numbers with commas between them."""
    return lambda text: [read(one) for one in text.split(",")]


def more_than_nothing(text: str) -> float:
    """Parse a number above 0."""
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number < inf:
        raise ArgumentTypeError(f"expected a number of more than 0, got {text[:40]!r}")
    return number

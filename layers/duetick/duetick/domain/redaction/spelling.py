"""Texts without their quoting and escapes. Each character keeps its place in the original.

JSON, Python, queries, HTML, SQL and shells add backslashes, double their quotes, and escape the
characters that their texts may not contain.
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final, TypeAlias
from urllib.parse import unquote

Span: TypeAlias = tuple[int, int]

# `re` compiles these texts on first use: the cold start of a tick does not need them.
_PAIR: Final = r"\\++u[Dd][89ABab][0-9A-Fa-f]{2}\\++u[Dd][C-Fc-f][0-9A-Fa-f]{2}"
_CODE: Final = r"u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|x[0-9A-Fa-f]{2}"
_LETTER: Final = "%(?:2[DdEe]|3[0-9]|[46][1-9A-Fa-f]|5[0-9AaFf]|7[0-9AaEe])"
_ENTITY: Final = r"&(?:amp;)*(?:amp|lt|gt|quot|apos|#[0-9]{1,7}|#[Xx][0-9A-Fa-f]{1,6});"
_PERCENT: Final = "%(?:25)*[0-9A-Fa-f]{2}"
_PERCENT_AGAIN: Final = "%(?:25)+(?=[0-9A-Fa-f]{2})"
BARE: Final = r"\\++"
BACKSLASHED: Final = rf"{_PAIR}|\\++(?:{_CODE}|[nrtbf])?"
ON_THE_WEB: Final = rf"(?:{_PERCENT})++|{_ENTITY}"
LETTERS: Final = rf"{_PAIR}|\\++(?:{_CODE})?|{_LETTER}"
"""The characters that are written as their codes. With `%`, only those that need no escape."""

_CONTROLS: Final = {"n": "\n", "r": "\r", "t": "\t", "b": "\b", "f": "\f"}
_NAMED: Final = {"amp": "&", "lt": "<", "gt": ">", "quot": '"', "apos": "'"}

# A query may have a + for a blank.
_ALIKE: Final = str.maketrans('"`+', "'' ")
_QUOTES: Final = "''++"


@dataclass(frozen=True, slots=True)
class Unquoted:
    """A text without its quoting, and the place of each character in the original."""

    text: str
    origins: list[Span]

    @classmethod
    def of(cls, text: str) -> "Unquoted":
        """Return a text as it is."""
        return cls(text, [(at, at + 1) for at in range(len(text))])

    def rewrite(self, escapes: str, decode: Callable[[str], str]) -> "Unquoted":
        """Return the text with each match of `escapes` replaced by `decode` of it."""
        parts, origins, at = list[str](), list[Span](), 0
        for found in re.finditer(escapes, self.text):
            start, end = found.span()
            decoded = decode(found[0])
            if decoded != found[0]:
                parts += (self.text[at:start], decoded)
                origins += self.origins[at:start]
                origins += [self.span(start, end)] * len(decoded)
                at = end
        return Unquoted("".join((*parts, self.text[at:])), origins + self.origins[at:])

    @classmethod
    def read(cls, text: str, readings: Iterable[str]) -> "Unquoted":
        """Return the text, decoded by each reading in turn, with one kind of quote and blank."""
        read = cls.of(text)
        for escapes in readings:
            read = read.rewrite(escapes, decode)
        one = cls(read.text.translate(_ALIKE), read.origins)
        return one.rewrite(_QUOTES, lambda _quotes: "'")

    def is_word(self, at: int) -> bool:
        """Return True if a letter, a digit or a `_` is at that place."""
        return 0 <= at < len(self.text) and (self.text[at].isalnum() or self.text[at] == "_")

    def span(self, start: int, end: int) -> Span:
        """Return the place of a part in the original."""
        return self.origins[start][0], self.origins[end - 1][1]


def decode(escape: str) -> str:
    """Return the characters of an escape; none if it is only backslashes."""
    if escape[0] == "%":
        return unquote(re.sub(_PERCENT_AGAIN, "%", escape))
    if escape[0] == "&":
        return _entity(escape[1:-1].rpartition(";")[2])
    codes = [code for code in escape.split("\\") if code]
    if not codes or codes[0] in _CONTROLS:
        return _CONTROLS["".join(codes)] if codes else ""
    units = [int(code[1:], 16) for code in codes]
    if len(units) > 1:
        return chr(0x10000 + ((units[0] - 0xD800) << 10) + units[1] - 0xDC00)
    return _character(units[0])


def _entity(name: str) -> str:
    if name[0] != "#":
        return _NAMED[name]
    return _character(int(name[2:], 16) if name[1] in "Xx" else int(name[1:]))


def _character(code: int) -> str:
    return chr(code) if code <= 0x10FFFF else ""


def decode_letter(escape: str) -> str:
    """Return the character of an escape. A quote or a backslash keeps the backslashes before it.

    They show how deep it is quoted.
    """
    letter = decode(escape)
    depth = escape[: len(escape) - len(escape.lstrip("\\"))]
    if not letter:
        return escape
    if letter == "\\":
        return depth * 2
    return depth + letter if letter in ("'", '"', "`") else letter

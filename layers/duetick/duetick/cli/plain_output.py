"""The output of the command as a terminal can show it: no character steers the terminal, and one
that the output's encoding lacks is written as an escape.
"""

import io
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from typing import TextIO, cast


def plain(text: str) -> str:
    """Return the text without the characters that would steer a terminal."""
    return "".join(one if one.isprintable() else " " for one in text)


class PlainOutput:
    """An output that writes the lines of a text, each of them plain."""

    def __init__(self, raw: TextIO) -> None:
        self.raw = raw
        self.encoding = raw.encoding or "utf-8"

    def write(self, text: str) -> int:
        """Write a text."""
        lines = "\n".join(map(plain, text.split("\n")))
        self.raw.write(lines.encode(self.encoding, "backslashreplace").decode(self.encoding))
        return len(text)

    def flush(self) -> None:
        """Write what is held back."""
        self.raw.flush()

    def isatty(self) -> bool:
        """Return True for a terminal."""
        return self.raw.isatty()

    def fileno(self) -> int:
        """Return the number of the file."""
        return self.raw.fileno()


@contextmanager
def plain_output() -> Iterator[None]:
    """Let what the block prints be plain, on both outputs."""
    out, errors = (_plain_of(one) for one in (sys.stdout, sys.stderr))
    with redirect_stdout(out), redirect_stderr(errors):
        yield


def _plain_of(raw: TextIO | None) -> TextIO:
    """Return a plain output. One that the caller has closed is None in Python."""
    return cast("TextIO", PlainOutput(raw or io.StringIO()))


@contextmanager
def data_output() -> Iterator[TextIO]:
    """Open the standard output for data, as it is and in UTF-8; a terminal gets plain text."""
    raw = sys.stdout.raw if isinstance(sys.stdout, PlainOutput) else sys.stdout
    if raw.isatty() or not hasattr(raw, "buffer"):
        yield sys.stdout
        return
    raw.flush()
    data = io.TextIOWrapper(raw.buffer, "utf-8", "backslashreplace")
    try:
        yield data
    finally:
        data.detach()

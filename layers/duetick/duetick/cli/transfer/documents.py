"""JSON documents one after another, as the commands of AWS print them, or one to a line."""

import io
import json
from collections.abc import Iterator
from typing import NamedTuple

from duetick.cli.problem import CliProblem
from duetick.domain.schedule import Json

BLANK = " \t\r\n"


def lines_of(text: str) -> Iterator[str]:
    """Yield the lines of a text. A separator of Unicode's ends none: it belongs to the text."""
    return (line.removesuffix("\n") for line in io.StringIO(text, newline=None))


class Document(NamedTuple):
    """A JSON value, and the line at which it begins."""

    line: int
    value: Json


def documents(name: str, text: str) -> Iterator[Document]:
    """Yield each JSON value of a text. Raises CliProblem at the first that cannot be read."""
    decoder, at, line, counted = json.JSONDecoder(), 0, 1, 0
    while True:
        while at < len(text) and text[at] in BLANK:
            at += 1
        line += text.count("\n", counted, at)
        counted = at
        if at == len(text):
            return
        try:
            value, at = decoder.raw_decode(text, at)
        except (json.JSONDecodeError, RecursionError) as problem:
            raise CliProblem(f"{name}:{line} is not JSON: {problem}.") from None
        yield Document(line, value)


def objects(name: str, text: str) -> Iterator[Document]:
    """Yield each JSON object of a text. The objects of a list come one by one."""
    for line, value in documents(name, text):
        for place, one in enumerate(value if isinstance(value, list) else [value]):
            if not isinstance(one, dict):
                raise CliProblem(f"{name}:{line + place}: expected JSON objects.")
            yield Document(line, one)

"""The output of the command: tables for people, and with `--json` one document for scripts.

A table has no colours and no lines, so it reads the same in a pipe. In a terminal that is too
narrow for it, cells are folded; in one that is far too narrow, each row is a block of lines.
"""

import json
import os
import shutil
import sys
import textwrap
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import Any, Final, NamedTuple, TypeAlias

from duetick.cli.plain_output import plain

ShownItem: TypeAlias = Mapping[str, Any]

GAP: Final = 2
NARROWEST: Final = 10
"""The least width to which a column is folded."""


class Column(NamedTuple):
    """A column of a table: its title, and its cell of an item."""

    title: str
    cell: Callable[[ShownItem], object]


def field(title: str, name: str) -> Column:
    """Return the column of a field."""
    return Column(title, lambda item: item.get(name))


def span(item: ShownItem) -> str:
    """Return the nominal time of an occurrence; of a range its two ends and its count."""
    first, last, count = item["nominalFireTime"], item.get("until"), item.get("count")
    return f"{first} to {last}, {count:,} times" if last and count != 1 else str(first)


NOMINAL_TIME: Final = Column("NOMINAL TIME", span)


def show_many(
    items: Iterable[ShownItem],
    columns: Sequence[Column],
    *,
    as_json: bool,
    limit: int | None = None,
    none: str = "None.",
) -> None:
    """Print items as a table, or as a JSON array, a line for each. Say on stderr if there are more
    than `limit`.
    """
    rest = iter(items)
    shown = rest if limit is None else islice(rest, limit)
    if as_json:
        _print_array(shown)
    else:
        rows = [[_text(column.cell(item)) for column in columns] for item in shown]
        titles = [column.title for column in columns]
        for line in table(titles, rows, terminal_width()) if rows else [none]:
            print(line)
    if limit is not None and next(rest, None) is not None:
        say(f"There are more than {limit}: --limit {10 * limit} shows more, --limit all shows all.")


def _print_array(items: Iterator[ShownItem]) -> None:
    first = next(items, None)
    if first is None:
        print("[]")
        return
    print("[", end="")
    for place, item in enumerate(chain([first], items)):
        print(",\n" if place else "\n", in_json(item), sep="", end="")
    print("\n]")


def show_one(item: ShownItem, *, as_json: bool) -> None:
    """Print one thing: a line for each field, or a JSON object."""
    if as_json:
        print(in_json(item))
        return
    longest = max((_width(name) for name in item), default=0)
    for name, value in item.items():
        print(f"{_pad(name, longest)}{' ' * GAP}{_text(value)}")


def say(text: str) -> None:
    """Print a sentence on stderr, beside the output."""
    print(f"duetick: {plain(text)}", file=sys.stderr)


def in_json(value: object) -> str:
    """Return a value as JSON on one line: what would steer a terminal is escaped, and what the
    output's encoding lacks.
    """
    if not (sys.stdout.encoding or "utf").lower().startswith("utf"):
        return json.dumps(value)
    found = json.dumps(value, ensure_ascii=False)
    return "".join(one if one.isprintable() else json.dumps(one)[1:-1] for one in found)


def terminal_width() -> int | None:
    """Return the columns of the terminal; None if the output goes elsewhere, where all fits."""
    if not sys.stdout.isatty() and "COLUMNS" not in os.environ:
        return None
    return shutil.get_terminal_size().columns


def table(titles: Sequence[str], rows: Sequence[Sequence[str]], width: int | None) -> list[str]:
    """Return the lines of a table that fits the width."""
    every = [titles, *rows]
    widths = [max(_width(row[place]) for row in every) for place in range(len(titles))]
    fitted = _fit(widths, width)
    if fitted is None:
        return _blocks(titles, rows)
    return [line for row in every for line in _fold_row(row, fitted)]


def _fit(widths: Sequence[int], width: int | None) -> list[int] | None:
    """Return the widths of columns that fit; None if that would fold a column too narrowly."""
    fitted = list(widths)
    while width is not None and sum(fitted) + GAP * (len(fitted) - 1) > width:
        widest = max(range(len(fitted)), key=fitted.__getitem__)
        if fitted[widest] <= NARROWEST:
            return None
        fitted[widest] -= 1
    return fitted


def _fold_row(row: Sequence[str], widths: Sequence[int]) -> Iterator[str]:
    cells = [_fold(text, width) for text, width in zip(row, widths, strict=True)]
    for line in range(max(map(len, cells))):
        parts = [cell[line] if line < len(cell) else "" for cell in cells]
        padded = map(_pad, parts, widths)
        yield (" " * GAP).join(padded).rstrip()


def _fold(text: str, width: int) -> list[str]:
    return [text] if _width(text) <= width else textwrap.wrap(text, width) or [""]


def _blocks(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    lines: list[str] = []
    for row in rows:
        lines += [f"{title}: {text}" for title, text in zip(titles, row, strict=True)]
        lines.append("")
    return lines[:-1]


def _text(value: object) -> str:
    if value is None or value == "":
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict | list):
        return in_json(value)
    return plain(f"{value:,}" if isinstance(value, int) else str(value))


def _pad(text: str, width: int) -> str:
    return text + " " * (width - _width(text))


def _width(text: str) -> int:
    """Return the columns that a text takes: a wide character takes two, a combining mark none."""
    return sum(
        0 if unicodedata.combining(one) else 1 + (unicodedata.east_asian_width(one) in "WF")
        for one in text
    )

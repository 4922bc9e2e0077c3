"""The walks that tests/README.md shows: each file, name and test of theirs is there."""

import re
from pathlib import Path

import pytest

from tests.documents import DEVELOPERS, PAGES, TOP, inline, rows, section

PACKAGE = TOP / "layers/duetick/duetick"
WEB = TOP / "layers/duetick/web"
PATH = re.compile(r"\w[\w./-]*/[\w./-]*|[\w-]+\.(?:py|yaml|toml|sql|csv)")
IN_FILE = re.compile(r"`([\w./-]+\.\w+)` \((`[^)]*`)\)")
"""A path, and in brackets behind it the names to look for."""

CHANGES = [
    "A policy field",
    "A route",
    "A purge job",
    "A store",
    "One more fact in every store",
    "A state or a reason",
    "A metric with its alarm",
    "A setting and its parameter",
    "A verb of a book",
    "A page, or an action in one",
    "A version",
    "Other changes",
    "The simulator",
]


def test_each_file_that_a_developer_is_sent_to_is_there() -> None:
    paths = {path for path in inline(PAGES[DEVELOPERS]) if PATH.fullmatch(path)}
    assert [path for path in sorted(paths) if not _places(path)] == []


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_belongs_to_files_that_are_there(change: str) -> None:
    """Paths are below the package, unless they begin with a folder of the top level."""
    found = rows(section(DEVELOPERS, change))
    paths = [path for row in found for path in inline("".join(row)) if PATH.fullmatch(path)]
    assert len(paths) > 3
    for path in paths:
        assert _places(path), path


@pytest.mark.parametrize("change", CHANGES)
def test_the_names_to_look_for_are_in_their_files(change: str) -> None:
    found = rows(section(DEVELOPERS, change))
    named = [one for row in found for cell in row for one in IN_FILE.findall(cell)]
    for path, names in named:
        texts = [place.read_text() for place in _places(path)]
        for name in inline(names):
            assert any(re.search(rf"\b{re.escape(name)}\b", text) for text in texts), (path, name)


def test_the_tests_that_show_what_was_forgotten_are_there() -> None:
    named = re.findall(r"`([\w/.]+)::(\w+)`", PAGES[DEVELOPERS])
    assert len(named) > 30
    for path, name in named:
        found = (TOP / path).read_text()
        assert re.search(rf"^ *def {name}\(", found, re.MULTILINE), (path, name)


def _places(path: str) -> list[Path]:
    """Return the places of a path: at the top level, below the package or among the sources of
    pages. A step of the schema stands in two folders.
    """
    if path.endswith(".sql") and "/" not in path:
        return sorted((PACKAGE / "stores").rglob(path))
    return [place for place in (TOP / path, PACKAGE / path, WEB / path) if place.exists()]

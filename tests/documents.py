"""The READMEs: one for everybody, and one beside the code for each other reader."""

import re
from pathlib import Path
from typing import Final

TOP: Final = Path(__file__).parents[1]
FOLDERS: Final = [
    path for path in sorted(TOP.iterdir()) if path.is_dir() and not path.name.startswith(".")
]
"""Where READMEs are looked for: in every folder of the tree."""

FENCED: Final = re.MULTILINE | re.DOTALL
LINK: Final = re.compile(r"\]\(([^)]+)\)")

PAGES: Final = {
    str(path.relative_to(TOP)): path.read_text()
    for path in (
        TOP / "README.md",
        *sorted(path for folder in FOLDERS for path in folder.rglob("README.md")),
    )
    if not {"node_modules", "skeleton"} & set(path.parts)
}
"""Their texts, by path."""

EVERYBODY: Final = "README.md"
OPERATORS: Final = "functions/README.md"
AUTHORS: Final = "layers/duetick/README.md"
ADDERS: Final = "layers/duetick/duetick/stores/README.md"
DEVELOPERS: Final = "tests/README.md"

TEXT: Final = "\n".join(PAGES.values())
"""All of them in a row."""


def blocks(language: str) -> list[str]:
    """Return the code that is shown in a language."""
    return re.findall(rf"^```{language}\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)


def inline(text: str = TEXT) -> list[str]:
    """Return the code that is shown within sentences and tables."""
    prose = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    return re.findall(r"`((?:[^`\n]|\n(?!\n))+)`", prose)


def section(page: str, heading: str) -> str:
    """Return the text under a heading, up to the next heading of its level or above."""
    found = re.search(rf"^(#+) {re.escape(heading)}\n", PAGES[page], re.MULTILINE)
    assert found, f"{page} has no heading {heading!r}."
    rest = PAGES[page][found.end() :]
    end = re.search(
        rf"^#{{1,{len(found[1])}}} ",
        re.sub(r"^```.*?^```", _blank, rest, flags=FENCED),
        re.MULTILINE,
    )
    return rest[: end.start()] if end else rest


def _blank(code: re.Match[str]) -> str:
    """Return a text of the same length without a heading: in code a `#` begins a comment."""
    return "." * len(code[0])


def rows(text: str) -> list[list[str]]:
    """Return the cells of each line of a text's tables, without their headings."""
    lines = re.findall(r"^\|(?!-)(.*)\|$(?!\n\|-)", text, re.MULTILINE)
    return [[cell.strip() for cell in line.split("|")] for line in lines]


def anchors(page: str) -> set[str]:
    """Return the places of a page that a link can lead to."""
    headings = re.findall(r"^#+ (.*)$", PAGES[page], re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}

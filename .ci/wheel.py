"""Put into the wheel what a stack is made of, as it stands in the tree: `duetick package` builds it.

The READMEs are there too, beside each other as in the tree. A link to what the wheel has not becomes
its text; so does each link of the wheel's own description, which is no file among others.

A tree that is installed as it stands (`pip install -e`) has these files already.
"""

import atexit
import os
import re
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

PARTS = (
    "functions/dispatch",
    "functions/migrate",
    "functions/schedules",
    "functions/tick",
    "layers/deps",
    "layers/duetick/Makefile",
    "template.yaml",
)
DOCS = (
    "README.md",
    "functions/README.md",
    "layers/duetick/CHANGELOG.md",
    "layers/duetick/README.md",
    "layers/duetick/duetick/stores/README.md",
)
LINK = re.compile(r"(!?)\[([^\]]+)\]\(([^)\s]+)\)")
ELSEWHERE = re.compile(r"[a-z]+:|#")
"""How a link begins that leads out of the tree, or stays in its file."""


class Deployable(BuildHookInterface):
    """Adds the parts and the READMEs, under the same paths, below `duetick/deployable`."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version != "standard":
            return
        tree, made = Path(self.root), Path(mkdtemp(prefix="duetick-docs-"))
        atexit.register(shutil.rmtree, made, ignore_errors=True)
        included = {part: part for part in PARTS}
        for doc in DOCS:
            target = made / doc
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(with_links((tree / doc).read_text(), partial(is_there, doc)))
            included[str(target)] = doc
        build_data["force_include"] |= {
            source: f"duetick/deployable/{part}" for source, part in included.items()
        }


class Description(MetadataHookInterface):
    """Makes the wheel's description of the README."""

    def update(self, metadata: dict[str, Any]) -> None:
        text = with_links((Path(self.root) / "README.md").read_text(), lambda _to: False)
        metadata["readme"] = {"content-type": "text/markdown", "text": text}


def with_links(text: str, stays: Callable[[str], bool]) -> str:
    """Return a text in which those links that do not stay are their text. Such a picture goes."""

    def change(found: re.Match[str]) -> str:
        picture, told, target = found.groups()
        if ELSEWHERE.match(target) or stays(target):
            return found[0]
        return "" if picture else told

    return LINK.sub(change, text)


def is_there(doc: str, target: str) -> bool:
    """Return True if a link of one README leads to a file that the wheel has."""
    path = os.path.normpath(Path(doc).parent / target.partition("#")[0])
    return path in DOCS or path in PARTS

"""Put into the wheel what a stack is made of, as it stands in the tree: `duetick package` builds it.

A tree that is installed as it stands (`pip install -e`) has these files already.
"""

from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PARTS = (
    "functions",
    "layers/deps",
    "layers/duetick/CHANGELOG.md",
    "layers/duetick/Makefile",
    "template.yaml",
)


class Deployable(BuildHookInterface):
    """Adds the parts, under the same paths, below `duetick/deployable`."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "standard":
            build_data["force_include"] |= {part: f"duetick/deployable/{part}" for part in PARTS}

"""The deployable of this tree, built once: tests that deploy or compare it take a copy."""

import os
import shutil
from pathlib import Path
from unittest import mock

from duetick.cli.folders import digest
from duetick.cli.package import make
from duetick.cli.tree import PACKAGE

from tests.lab.cache import CACHE, TOP, made_once
from tests.lab.wheels import offline

NAME = "deployable-"


def deployable() -> Path:
    """Return the folder of the deployable."""
    parts = [PACKAGE, *(TOP / part for part in ("functions", "layers/deps", "template.yaml"))]
    name = f"{NAME}{digest(parts)[:12]}"
    return made_once(name, lambda place: _make(place, name)) / "stack"


def _make(place: Path, name: str) -> None:
    """Make the deployable, after the last one: an unchanged part is not built again."""
    others = sorted(CACHE.glob(f"{NAME}*/stack"), key=lambda one: one.stat().st_mtime)
    if others:
        shutil.copytree(others[-1], place / "stack")
    with mock.patch.dict(os.environ, offline()):
        make(place / "stack")
    for other in others[:-1]:
        if not other.is_relative_to(CACHE / name):
            shutil.rmtree(other.parent, ignore_errors=True)

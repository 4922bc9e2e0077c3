"""The layer as `sam build` makes it, without the packages that pip would install."""

import os
import shutil
import subprocess
from pathlib import Path

from tests.lab.cache import TOP


def make_layer(folder: Path) -> Path:
    """Make the layer below a folder, with a Python that does nothing. Return the layer's folder."""
    python = folder / "bin/python3.13"
    python.parent.mkdir()
    python.symlink_to(shutil.which("true") or "")  # nothing needs to be compiled here
    subprocess.run(
        ["make", "build-DuetickLayer", f"ARTIFACTS_DIR={folder}/made"],
        cwd=TOP / "layers/duetick",
        env={**os.environ, "PATH": f"{python.parent}{os.pathsep}{os.environ['PATH']}"},
        capture_output=True,
        check=True,
    )
    return folder / "made"

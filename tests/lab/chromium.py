"""Chromium, in which the pages are tested: Debian's, or the one that the machine has."""

import os
import shutil
import subprocess
from functools import cache
from pathlib import Path
from typing import Final

from tests.lab.cache import locked
from tests.lab.missing import missing

PART: Final = "Chromium"
NAMED: Final = "DUETICK_TEST_CHROMIUM"
PROGRAMS: Final = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
PACKAGES: Final = ("chromium", "fonts-dejavu-core")
WHAT_TO_DO: Final = (
    f"Install it (Debian: apt install {' '.join(PACKAGES)}), or name one: {NAMED}=/path/to/it."
)


@cache
def chromium() -> Path:
    """Return the browser: the one that is named, or on the PATH, or that apt installs where it
    may.
    """
    named = os.environ.get(NAMED)
    if named:
        return Path(named)
    found = _on_the_path() or _installed()
    return found or missing(PART, "no Chromium on the PATH, and apt installed none", WHAT_TO_DO)


def is_on_the_path() -> bool:
    """Return True if there is one already."""
    return NAMED in os.environ or _on_the_path() is not None


def _on_the_path() -> Path | None:
    found = next(filter(None, map(shutil.which, PROGRAMS)), None)
    return Path(found) if found else None


def _installed() -> Path | None:
    """Let apt install it, if this is a Debian and we may."""
    apt = shutil.which("apt-get")
    if not apt or os.geteuid() != 0:
        return None
    with locked(PART):
        if _on_the_path():
            return _on_the_path()
        install = [apt, "install", "--yes", "--no-install-recommends", *PACKAGES]
        for command in (install, [apt, "update"], install):
            environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
            done = subprocess.run(command, env=environment, capture_output=True, check=False)
            if done.returncode == 0 and _on_the_path():
                break
        return _on_the_path()

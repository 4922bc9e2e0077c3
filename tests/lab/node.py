"""The tools that build and check the pages: packages of npm, pinned by a lock file."""

import hashlib
import shutil
from functools import cache
from pathlib import Path

from tests.lab.cache import TOP, made_once
from tests.lab.missing import missing
from tests.lab.process import run

WEB = TOP / "layers" / "duetick" / "web"
PART = "The tools of the pages"
OLDEST = 20


def node_modules() -> Path:
    """Return the folder of the packages, installed once for each lock file."""
    return made_once(tools_name(), _install) / "node_modules"


def tools_name() -> str:
    """Return the name that the packages are kept by."""
    digest = hashlib.sha256((WEB / "package-lock.json").read_bytes()).hexdigest()
    return f"node-{digest[:12]}"


@cache
def node(part: str = PART) -> Path:
    """Return a Node.js that runs, and is new enough."""
    found = shutil.which("node")
    version = run([found, "--version"]).strip() if found else ""
    if found and int(version.removeprefix("v").partition(".")[0] or 0) >= OLDEST:
        return Path(found)
    why = f"`node` is {version}" if found else "no `node` on the PATH"
    return missing(part, why, f"Install Node.js {OLDEST} or later with npm, then run again.")


def npm(part: str = PART) -> Path:
    """Return the npm of the PATH, which fetches packages."""
    found = shutil.which("npm")
    if found:
        return Path(found)
    return missing(part, "no `npm` on the PATH", "Install Node.js with npm, then run again.")


def _install(place: Path) -> None:
    node()
    for name in ("package.json", "package-lock.json"):
        shutil.copy(WEB / name, place)
    run([npm(), "ci", "--ignore-scripts", "--no-audit", "--no-fund"], cwd=place)

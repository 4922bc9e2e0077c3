"""Pythons that really run, and the lab's environments made of them."""

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from tests.lab.cache import made_once
from tests.lab.missing import missing
from tests.lab.process import run

VERSION = "3.13"
LOCKS = Path(__file__).parent


@cache
def working_python(part: str) -> Path:
    """Return a Python 3.13 with pip and venv, as `sam build` and the emulated AWS need it."""
    for candidate in _candidates():
        if _works(candidate):
            return candidate
    return missing(
        part,
        f"no working Python {VERSION} with pip and venv on the PATH or under pyenv",
        f"Install Python {VERSION} (for example `pyenv install {VERSION}`), then run again.",
    )


def environment(name: str, part: str) -> Path:
    """Return a virtual environment, made once from tests/lab/{name}.lock."""
    lock = LOCKS / f"{name}.lock"
    return made_once(environment_name(name), lambda place: _make(place, lock, part))


def environment_name(name: str) -> str:
    digest = hashlib.sha256((LOCKS / f"{name}.lock").read_bytes()).hexdigest()
    return f"{name}-{digest[:12]}"


def _make(place: Path, lock: Path, part: str) -> None:
    run([working_python(part), "-m", "venv", place])
    pip: list[str | Path] = [
        place / "bin" / "python",
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-deps",
    ]
    run([*pip, "--disable-pip-version-check", "--require-hashes", "-r", lock])


def _candidates() -> Iterator[Path]:
    yield Path(sys.executable)
    for folder in os.environ.get("PATH", "").split(os.pathsep):
        yield Path(folder) / f"python{VERSION}"
    yield from _of_pyenv()


def _of_pyenv() -> Iterator[Path]:
    root = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    for version in sorted(root.glob(f"versions/{VERSION}*"), reverse=True):
        yield version / "bin" / f"python{VERSION}"


def _works(python: Path) -> bool:
    """Try it: pyenv puts a shim on the PATH for each version, and most of them refuse to run."""
    if not shutil.which(python):
        return False
    check = "import sys, pip, venv, ensurepip; print('%d.%d' % sys.version_info[:2])"
    done = subprocess.run([python, "-c", check], capture_output=True, text=True, check=False)
    return done.returncode == 0 and done.stdout.strip() == VERSION

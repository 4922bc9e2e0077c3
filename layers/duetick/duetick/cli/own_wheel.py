"""The wheel of the Duetick that runs, for a repository whose Duetick is in no index.

It is the wheel from which Duetick came, or one built of the sources from which it came. If neither
is known (`pip install --find-links`), the installed files are put together again.
"""

import base64
import hashlib
import sys
from collections.abc import Iterable
from importlib.metadata import Distribution
from importlib.util import find_spec
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Final

from duetick.cli.folders import archive, copy
from duetick.cli.problem import CliProblem
from duetick.cli.programs import ProgramFailed, Words, run
from duetick.version import VERSION

WHEEL: Final = f"duetick-{VERSION}-py3-none-any.whl"
BUILDER: Final = "hatchling"
PATIENCE: Final = "5"
"""Seconds in which an index has to answer."""

OF_INSTALLER: Final = frozenset({"INSTALLER", "REQUESTED", "RECORD", "direct_url.json"})
"""The files beside the wheel's own that an installation has."""


def is_in_an_index() -> bool:
    """Return True if pip finds this version in the indexes that it asks, as it is configured."""
    asked = ["--no-deps", "--quiet", "--disable-pip-version-check"]
    impatient = ["--retries", "0", "--timeout", PATIENCE]
    variables = {"PIP_FIND_LINKS": ""}
    with TemporaryDirectory() as name:
        words: Words = [sys.executable, "-m", "pip", "download", *asked, *impatient]
        try:
            run([*words, "--dest", name, f"duetick=={VERSION}"], Path(name), variables)
        except ProgramFailed:
            return False
    return True


def take_wheel(place: Path, source: str, into: Path) -> None:
    """Put the wheel at a place into a folder, or one that is built of the sources there."""
    if place.suffix == ".whl":
        copy(place, into / place.name)
        return
    words: Words = [sys.executable, "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check"]
    here = ["--no-build-isolation"] if find_spec(BUILDER) else []
    run([*words, "--no-deps", *here, "--wheel-dir", into, source], into)


def rebuild_wheel(installed: Distribution, into: Path) -> None:
    """Put the files of an installation together to a wheel. Raise CliProblem if none are noted."""
    files = [one for one in installed.files or () if _is_of_wheel(one)]
    about = next((one.parent for one in files if one.name == "WHEEL"), None)
    if about is None or PurePosixPath("duetick/version.py") not in files:
        raise CliProblem(
            f"pip has noted no files of duetick {VERSION}, of which a wheel could be made. Install "
            "it from its wheel, then run this again."
        )
    with TemporaryDirectory() as name:
        made = Path(name)
        for one in files:
            target = made / one
            target.parent.mkdir(parents=True, exist_ok=True)
            copy(Path(str(installed.locate_file(one))), target)
        record = made / about / "RECORD"
        record.write_text(_record(made, files, record))
        archive(made, into / WHEEL)


def _is_of_wheel(file: PurePosixPath) -> bool:
    """Return True for a file of the wheel. A file that an install or a run has made is none."""
    is_outside = ".." in file.parts or file.is_absolute()
    of_installer = file.parent.suffix == ".dist-info" and file.name in OF_INSTALLER
    return not (is_outside or of_installer or "__pycache__" in file.parts)


def _record(folder: Path, files: Iterable[PurePosixPath], record: Path) -> str:
    lines = [f"{one},{_digest(folder / one)},{(folder / one).stat().st_size}" for one in files]
    return "".join(f"{line}\n" for line in [*lines, f"{record.relative_to(folder).as_posix()},,"])


def _digest(file: Path) -> str:
    found = hashlib.sha256(file.read_bytes()).digest()
    return f"sha256={base64.urlsafe_b64encode(found).decode().rstrip('=')}"

"""`duetick new`: a repository of your own, which uses Duetick as a package."""

import json
import re
from collections.abc import Mapping
from importlib.metadata import distribution
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from duetick.cli.folders import files_of, fill
from duetick.cli.own_wheel import is_in_an_index, rebuild_wheel, take_wheel
from duetick.cli.problem import CliProblem, WrongUsage
from duetick.cli.showing import say
from duetick.version import VERSION

SKELETON: Final = Path(__file__).with_name("skeleton")
OWN_NAME: Final = "my-app"
"""The name that the skeleton's files have in the place of the repository's."""

DOT: Final = "dot_"
"""A name begins with this in place of a dot, so that no tool of ours minds the file."""

LONGEST: Final = 80
"""A stack's name has 128 characters, and names of what stands in it go on from there."""

EXTRAS: Final = "duetick[cli,testing]"
PINNED: Final = f"{EXTRAS}=={VERSION}\n"
WHEELS: Final = "wheels"


def make_repository(folder: Path) -> None:
    """Write the repository, whole or not at all, into a folder that is not there, or empty."""
    _check(folder)
    with TemporaryDirectory() as name:
        made = Path(name) / folder.name
        for file in files_of(SKELETON):
            if "__pycache__" not in file.parts:
                _write(file, made)
        file = made / "requirements.txt"
        file.write_text(file.read_text().replace(f"{EXTRAS}\n", _requirement(made)))
        fill(folder, made)


def _check(folder: Path) -> None:
    """Raise CliProblem unless a stack can have the folder's name, and nothing is in the way."""
    name = folder.name
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9]*(-[A-Za-z0-9]+)*", name) or len(name) > LONGEST:
        better = re.sub(r"[^A-Za-z0-9]+", "-", name).strip("-0123456789")[:LONGEST]
        raise WrongUsage(
            f"{name!r} cannot be the name of a stack: a letter, then letters, digits and single "
            f"hyphens, {LONGEST} characters at most. For example {better or OWN_NAME}."
        )
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise CliProblem(f"{folder} is there already, and is not empty. Nothing was written.")


def _write(file: Path, folder: Path) -> None:
    inside = file.relative_to(SKELETON)
    parts = [part.replace(DOT, ".", 1) if part.startswith(DOT) else part for part in inside.parts]
    path = folder.joinpath(*parts)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(file.read_text().replace(OWN_NAME, folder.name))


def _requirement(folder: Path) -> str:
    """Return the lines by which pip finds this Duetick.

    If Duetick came from no index, its wheel is put into the repository.
    """
    installed = distribution("duetick")
    told = installed.read_text("direct_url.json")
    origin = json.loads(told) if told else {"url": ""}
    address = urlsplit(origin["url"])
    if address.scheme not in ("", "file"):
        return f"{EXTRAS} @ {_source(origin)}\n"
    if not told and is_in_an_index():
        return PINNED
    wheels, place = folder / WHEELS, Path(unquote(address.path))
    wheels.mkdir()
    if told and place.exists():
        take_wheel(place, _source(origin), wheels)
    else:
        rebuild_wheel(installed, wheels)
        say(f"pip finds duetick {VERSION} in no index: a wheel of what runs here is in {WHEELS}.")
    return f"--find-links {WHEELS}\n{PINNED}"


def _source(origin: Mapping[str, Any]) -> str:
    """Return the origin of this Duetick, as pip reads it: of a repository the commit, too."""
    url: str = origin["url"]
    if found := origin.get("vcs_info"):
        url = f"{found['vcs']}+{url}@{found['commit_id']}"
    inside = origin.get("subdirectory")
    return f"{url}#subdirectory={inside}" if inside else url

"""`duetick layer`: the layer of a project's flows, with the packages that they need.

One process has one of each package, so the requirements are installed under the pins of Duetick's
own layers. The layer leaves out the packages that these have.
"""

import re
import shutil
from collections.abc import Mapping, Sequence
from importlib.metadata import Distribution, distributions
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from duetick.cli.folders import copy, replace
from duetick.cli.problem import CliProblem
from duetick.cli.programs import NAMED, ProgramFailed, Words, lambdas_python, run
from duetick.cli.tree import tree
from duetick.version import VERSION

MACHINES: Final = {"arm64": "aarch64", "x86_64": "x86_64"}
GLIBC: Final = ("2_34", "2_28", "2_17")
"""The versions of glibc that wheels are built for, up to that of Lambda's Python."""

PIN: Final = re.compile(r"^([A-Za-z0-9._-]+)==([^\s;\\]+)", re.MULTILINE)
OPT: Final = "/opt/python"


def make_layer(
    packages: Sequence[Path], requirements: Path | None, folder: Path, architecture: str
) -> None:
    """Make the layer in a folder."""
    _check(packages, requirements, folder)
    with replace(folder) as made:
        python = made / "python"
        python.mkdir()
        if requirements:
            _install(requirements, python, architecture)
        for package in packages:
            copy(package, python / package.name, "requirements.txt")
        options: Words = ["-q", "--invalidation-mode", "unchecked-hash", "-s", python, "-p", OPT]
        same = {"PYTHONHASHSEED": "0"}
        run([lambdas_python(), "-m", "compileall", *options, python], made, same)


def _check(packages: Sequence[Path], requirements: Path | None, folder: Path) -> None:
    """Raise CliProblem for a missing part, and for a folder that holds anything but a layer."""
    for package in packages:
        if not package.exists() or package.name in ("", "..", "duetick"):
            raise CliProblem(f"{package} is no package of yours.")
    if requirements and not requirements.is_file():
        raise CliProblem(f"There is no file {requirements}.")
    theirs = [path.resolve() for path in (*packages, *filter(None, [requirements]))]
    near = any(folder.resolve() in (path, *path.parents) for path in theirs)
    inside = any(path in folder.resolve().parents for path in theirs)
    if near or inside or not _is_layer(folder):
        raise CliProblem(f"{folder} has something else in it. Name another folder: --to.")


def _is_layer(folder: Path) -> bool:
    """Return True if the folder is not there, or holds nothing but a layer."""
    if folder.is_dir():
        return {path.name for path in folder.iterdir()} <= {"python"}
    return not folder.exists()


def _install(requirements: Path, python: Path, architecture: str) -> None:
    """Install the requirements for Lambda, without the packages of Duetick's layers."""
    pins = own_pins()
    with TemporaryDirectory() as name:
        constraints = Path(name) / "constraints.txt"
        constraints.write_text("".join(f"{one}=={pin}\n" for one, pin in pins.items()))
        command: Words = [lambdas_python(), "-m", "pip", "install", "--no-compile"]
        options = ["--disable-pip-version-check", "--implementation", "cp"]
        wheels = ["--only-binary=:all:", "--python-version", NAMED, *_platforms(architecture)]
        files: Words = ["--target", python, "-r", requirements.name, "-c", constraints]
        try:
            run([*command, *options, *wheels, *files], requirements.absolute().parent)
        except ProgramFailed as problem:
            raise CliProblem(f"{problem}\n{_advice(problem.said, pins, architecture)}") from None
    shutil.rmtree(python / "bin", ignore_errors=True)  # its files name the Python of this machine
    for one in distributions(path=[str(python)]):
        if _plain(one.name) in pins:
            _remove(one)
    for name in ("RECORD", "direct_url.json"):  # digests of those files; a folder of this machine
        for told in python.glob(f"*.dist-info/{name}"):
            told.unlink()


def own_pins() -> dict[str, str]:
    """Return the packages of Duetick's own layers with their versions, and Duetick itself."""
    found = PIN.findall((tree() / "layers/deps/requirements.txt").read_text())
    return {"duetick": VERSION} | {_plain(name): version for name, version in found}


def _platforms(architecture: str) -> list[str]:
    names = [f"manylinux_{version}_{MACHINES[architecture]}" for version in GLIBC]
    return [f"--platform={name}" for name in (*names, f"manylinux2014_{MACHINES[architecture]}")]


def _plain(name: str) -> str:
    """Return the name of a package in the one spelling that all others stand for."""
    return re.sub(r"[-_.]+", "-", name).lower()


def _remove(one: Distribution) -> None:
    for file in one.files or ():
        Path(str(one.locate_file(file))).unlink(missing_ok=True)


def _advice(said: str, pins: Mapping[str, str], architecture: str) -> str:
    """Name the pin that is in the way, if one is, or say what Lambda takes."""
    named = re.findall(r"\(constraint\) ([A-Za-z0-9._-]+)==", said)
    clashing = sorted({_plain(name) for name in named} & pins.keys())
    if clashing:
        told = " and ".join(f"{name} {pins[name]}" for name in clashing)
        return (
            f"Duetick's own layers bring {told}, and one process has one of each package: ask for "
            "a range that has it in it."
        )
    return (
        f"Does pip find it? Lambda runs Python {NAMED} on {architecture}: each requirement needs a "
        "wheel for that, or one for any machine."
    )

"""Folders that a command makes: whole or not at all, and the same bytes from the same contents."""

import hashlib
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from fnmatch import fnmatch
from pathlib import Path
from typing import Final
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from duetick.cli.problem import CliProblem

LEFT_OUT: Final = ("__pycache__", "*.py[co]")
"""Python's compiled files are in no folder that is made here."""

THE_FIRST: Final = (1980, 1, 1, 0, 0, 0)
"""The time of each file in an archive: the earliest that an archive knows."""

MODE: Final = 0o644 << 16
UNIX: Final = 3


@contextmanager
def replace(folder: Path) -> Iterator[Path]:
    """Yield an empty folder that takes the place of this one when the block ends. If the block
    raises, the folder stays as it was.
    """
    made = folder.with_name(f".{folder.name}-new")
    try:
        with tell_what_refuses(folder):
            folder.parent.mkdir(parents=True, exist_ok=True)
            shutil.rmtree(made, ignore_errors=True)
            made.mkdir()
            yield made
            shutil.rmtree(folder, ignore_errors=True)
            made.rename(folder)
    finally:
        shutil.rmtree(made, ignore_errors=True)


def fill(folder: Path, source: Path) -> None:
    """Copy all of a source into a folder that is not there, or empty; if that fails, nothing."""
    was_there = folder.exists()
    try:
        with tell_what_refuses(folder):
            folder.parent.mkdir(parents=True, exist_ok=True)
            copy(source, folder)
    except BaseException:
        for one in folder.iterdir() if folder.is_dir() else ():
            shutil.rmtree(one) if one.is_dir() else one.unlink()
        if folder.is_dir() and not was_there:
            folder.rmdir()
        raise


@contextmanager
def tell_what_refuses(folder: Path) -> Iterator[None]:
    """Raise CliProblem if the system refuses to make a folder: it is read-only, or full."""
    try:
        yield
    except OSError as problem:
        raise CliProblem(
            f"{folder} cannot be made ({_reason(problem)}). Name a folder of yours, where there is "
            "room. Nothing was written."
        ) from problem


def _reason(problem: OSError) -> str:
    """Return the words of the system. Of a copy of many files they are those of the first."""
    if isinstance(problem, shutil.Error):
        _, _, first = problem.args[0][0]
        return str(first).removeprefix("[Errno ").partition("] ")[2].partition(": ")[0]
    return problem.strerror or str(problem)


def copy(source: Path, into: Path, *left_out: str) -> None:
    """Copy a file, or a folder without compiled files and without files of these names."""
    if source.is_dir():
        ignored = shutil.ignore_patterns(*LEFT_OUT, *left_out)
        shutil.copytree(source, into, ignore=ignored, dirs_exist_ok=True)
    else:
        shutil.copyfile(source, into)


def archive(folder: Path, into: Path) -> None:
    """Write a folder into an archive. Its bytes depend on names and contents alone."""
    with ZipFile(into, "w") as made:
        for path in files_of(folder):
            entry = ZipInfo(path.relative_to(folder).as_posix(), THE_FIRST)
            entry.external_attr, entry.create_system = MODE, UNIX
            made.writestr(entry, path.read_bytes(), ZIP_DEFLATED)


def files_of(folder: Path) -> list[Path]:
    """Return the files of a folder, at any depth, in an order that is the same everywhere."""
    found = (path for path in folder.rglob("*") if path.is_file())
    return sorted(found, key=lambda path: path.relative_to(folder).as_posix())


def digest(paths: Iterable[Path]) -> str:
    """Return one digest of files, and of the files of folders that Python has not compiled."""
    found = hashlib.sha256()
    for path in paths:
        for file in files_of(path) if path.is_dir() else [path]:
            inside = file.relative_to(path).as_posix()
            if not any(fnmatch(part, each) for part in Path(inside).parts for each in LEFT_OUT):
                found.update(f"{path.name}/{inside}\n{digest_of(file)}\n".encode())
    return found.hexdigest()


def digest_of(file: Path) -> str:
    """Return the SHA-256 of a file."""
    return hashlib.sha256(file.read_bytes()).hexdigest()

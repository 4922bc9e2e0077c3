"""The programs that the command runs: Python with pip, make, and the AWS SAM CLI."""

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Final, TypeAlias

from duetick.cli.problem import CliProblem

Words: TypeAlias = list[str | Path]
"""A program and its arguments, or a part of them."""

LAMBDAS: Final = (3, 13)
"""The Python that the functions run on."""

NAMED: Final = ".".join(map(str, LAMBDAS))
SHOWN: Final = 12
"""The last lines of a program that failed, which are shown."""


class ProgramFailed(CliProblem):
    """A program ended with an error; `said` is all that it printed."""

    def __init__(self, program: str, said: str) -> None:
        lines = [line for line in said.splitlines() if line.strip()]
        super().__init__("\n".join([f"{program} failed:", *lines[-SHOWN:]]))
        self.said = said


def run(command: Words, folder: Path, variables: Mapping[str, str] | None = None) -> str:
    """Run a program in a folder, and return its output. Raise ProgramFailed if it fails."""
    done = subprocess.run(
        [str(word) for word in command],
        cwd=folder,
        env={**os.environ, **(variables or {})},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        check=False,
    )
    if done.returncode:
        program = command[2] if command[1] == "-m" else Path(command[0]).name
        raise ProgramFailed(str(program), done.stdout)
    return done.stdout


def find(program: str, why: str) -> str:
    """Return the path of a program. Raise CliProblem if it is not there."""
    found = shutil.which(program)
    if found is None:
        raise CliProblem(f"There is no {program} on the PATH. {why}")
    return found


@cache
def lambdas_python() -> Path:
    """Return a Python of Lambda's version that runs and has pip: this one, or one on the PATH."""
    own = sys.executable if sys.version_info[:2] == LAMBDAS else None
    for candidate in (own, shutil.which(f"python{NAMED}")):
        if candidate and _has_pip(Path(candidate)):
            return Path(candidate)
    raise CliProblem(
        f"Python {NAMED} with pip is needed, for Lambda runs it: what is compiled has to be its. "
        f"Make .venv with it (python{NAMED} -m venv .venv), or put it on the PATH."
    )


def _has_pip(python: Path) -> bool:
    """Return True if it runs: pyenv puts a shim on the PATH for a version that may not be there."""
    try:
        said = run([python, "-c", "import pip, sys; print(*sys.version_info[:2])"], Path())
    except (ProgramFailed, OSError):
        return False
    return said.split() == [str(part) for part in LAMBDAS]

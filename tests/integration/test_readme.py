"""The README tells the truth: what it shows can be run."""

import doctest
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from duetick.domain.policies import LEASE_MARGIN, Policies

TOP = Path(__file__).parents[2]
TEXT = (TOP / "README.md").read_text()


def blocks(language: str) -> list[str]:
    """The code that is shown in a language."""
    return re.findall(rf"^```{language}\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)


def files() -> dict[str, str]:
    """The examples that are files: each begins with its path."""
    named = (re.match(r"# (\S+\.py)\n", code) for code in blocks("python"))
    return {found[1]: found.string for found in named if found}


@pytest.mark.parametrize(
    "code", [code for code in blocks("python") if code not in files().values()]
)
def test_each_python_example_runs(code: str) -> None:
    if code.startswith(">>>"):
        test = doctest.DocTestParser().get_doctest(code, {}, "README.md", None, 0)
        assert doctest.DocTestRunner().run(test).failed == 0
    else:
        exec(compile(code, "README.md", "exec"), {"__name__": "readme"})


@pytest.fixture
def followed(tmp_path: Path) -> Path:
    """A folder in which somebody has done what the README says."""
    shutil.copytree(TOP / "layers" / "flows", tmp_path / "layers" / "flows")
    shutil.copy(TOP / "pyproject.toml", tmp_path)
    for path, code in files().items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(code)
    return tmp_path


def done(folder: Path, *command: str) -> str:
    """What a module of Python's prints there; it has to succeed."""
    paths = os.pathsep.join([str(folder / "layers/flows"), str(TOP / "layers/duetick")])
    ran = subprocess.run(
        [sys.executable, "-m", *command],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


def test_the_flow_that_is_shown_passes_the_test_that_is_shown(followed: Path) -> None:
    assert sorted(files()) == ["layers/flows/flows/garden.py", "tests/test_garden.py"]
    assert "2 passed" in done(followed, "pytest", "-p", "no:cacheprovider", "tests/test_garden.py")


def test_the_flow_that_is_shown_passes_make_lint(followed: Path) -> None:
    done(followed, "ruff", "check", "--no-cache", *files())
    done(followed, "ruff", "format", "--no-cache", "--check", *files())


def test_there_are_python_examples() -> None:
    assert len(blocks("python")) > 1


def test_each_make_target_that_is_named_is_there() -> None:
    named = set(re.findall(r"make ([a-z]+)", " ".join(blocks("sh")) + _inline()))
    made = set(re.findall(r"^([a-z]+):", (TOP / "Makefile").read_text(), re.MULTILINE))
    assert {"run", "test", "quick"} <= named
    assert named <= made


def test_each_duetick_command_that_is_named_is_there() -> None:
    named = set(re.findall(r"duetick ([a-z]+)", _inline()))
    for command in named:
        shown = subprocess.run(
            [TOP / ".venv/bin/duetick", command, "--help"], capture_output=True, check=False
        )
        assert shown.returncode == 0, command
    assert named


def test_the_table_of_defaults_is_the_code() -> None:
    policies = Policies()
    for said in (
        f"| delivery | `{policies.delivery}` |",
        f"{policies.retry.backoff}, {policies.retry.attempts} attempts, {policies.retry.first} s",
        f"| `{policies.overlap}` (or",
        f"| `{policies.misfire}` (or",
        f"a grace of {policies.grace} s, catch-up at most {policies.catch_up}",
        f"| `{policies.gap}`, `{policies.repeat}` |",
        f"| {policies.timeout} s; the lease is {LEASE_MARGIN} s longer |",
    ):
        assert said in TEXT, said


def _inline() -> str:
    return " ".join(re.findall(r"`((?:make|duetick) [^`]+)`", TEXT))

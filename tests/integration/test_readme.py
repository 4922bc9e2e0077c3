"""The READMEs tell the truth: the code and the commands that they show can be run."""

import doctest
import os
import re
import shlex
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from duetick.cli.main import main
from duetick.cli.new import SKELETON
from duetick.cli.problem import CliProblem

from tests.documents import TOP, blocks, inline


def files() -> dict[str, str]:
    """Return the examples that are files: each begins with its path."""
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
    """Make a repository as the README says."""
    shutil.copytree(SKELETON, tmp_path, dirs_exist_ok=True)
    for path, code in files().items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(code)
    return tmp_path


def done(folder: Path, *command: str) -> str:
    """Return the output of Python there; it has to succeed."""
    paths = os.pathsep.join([str(folder), str(TOP / "layers/duetick")])
    ran = subprocess.run(
        [sys.executable, *command],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


@pytest.mark.slow
def test_the_flow_that_is_shown_passes_the_test_that_is_shown(followed: Path) -> None:
    assert sorted(files()) == ["flows/garden.py", "tests/test_garden.py"]
    passed = done(followed, "-m", "pytest", "-p", "no:cacheprovider", "tests/test_garden.py")
    assert "2 passed" in passed


def test_the_flow_that_is_shown_passes_make_lint_in_a_clone(tmp_path: Path) -> None:
    shutil.copytree(TOP / "layers/flows", tmp_path / "layers/flows")
    shutil.copy(TOP / "pyproject.toml", tmp_path)
    there = {path.replace("flows/", "layers/flows/flows/"): code for path, code in files().items()}
    for path, code in there.items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(code)
    done(tmp_path, "-m", "ruff", "check", "--no-cache", *there)
    done(tmp_path, "-m", "ruff", "format", "--no-cache", "--check", *there)


def test_there_are_python_examples() -> None:
    assert len(blocks("python")) > 1


def commands(program: str) -> list[list[str]]:
    """Return the commands of a program that are shown, as a shell would split them."""
    lines = "\n".join(blocks("sh")).replace("\\\n", " ").splitlines()
    shown = [*lines, *(text for text in inline() if text.startswith(".venv/bin/"))]
    return [
        shlex.split(line, comments=True)
        for line in shown
        if line.startswith(f".venv/bin/{program}")
    ]


def test_each_make_target_that_is_named_is_there() -> None:
    named = set(re.findall(r"make ([a-z]+)", "\n".join(blocks("sh"))))
    named |= {found[1] for text in inline() if (found := re.match(r"make ([a-z]+)", text))}
    both = (TOP / "Makefile").read_text() + (SKELETON / "Makefile").read_text()
    made = set(re.findall(r"^([a-z]+):", both, re.MULTILINE))
    assert {"run", "test", "quick"} <= named
    assert named <= made


def test_each_duetick_command_that_is_named_is_there(capsys: pytest.CaptureFixture[str]) -> None:
    named = {found.split()[1] for found in inline() if found.startswith("duetick ")}
    assert {"costs", "migrate", "schedules"} <= named
    for command in named:
        with pytest.raises(SystemExit) as stopped:
            main([command, "--help"])
        assert stopped.value.code == 0, capsys.readouterr().err


@pytest.mark.parametrize("command", commands("duetick"), ids=" ".join)
def test_each_duetick_command_that_is_shown_is_understood(
    command: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The command comes as far as a call, which nobody answers here; or it needs no call."""

    def unreachable(*_: object) -> None:
        raise CliProblem("understood")

    for asked in ("asking.place_of", "deployed.Deployed.find", "stores.open_store"):
        monkeypatch.setattr(f"duetick.cli.{asked}", unreachable)
    for asked in ("doctor.open_store", "doctor.place_of"):
        monkeypatch.setattr(f"duetick.cli.{asked}", unreachable)
    assert main(command[1:]) == (0 if command[1] in NEEDS_NOBODY else 1)


NEEDS_NOBODY = ("upcoming", "costs")


def test_each_module_that_is_run_is_there() -> None:
    named = [module for _, _, module, *_ in commands("python -m")]
    assert "tests.benchmarks.oracle" in named
    for module in named:
        assert find_spec(module), module


def test_each_folder_that_pytest_is_given_is_there() -> None:
    named = [
        word for command in commands("pytest") for word in command if word.startswith("tests/")
    ]
    assert named
    for path in named:
        assert path in files() or (TOP / path).exists(), path


def test_the_runbook_finds_a_log_and_its_lines(tmp_path: Path) -> None:
    aws = tmp_path / "aws"
    aws.write_text("#!/bin/sh\nprintf '<%s>' \"$@\"\n")
    aws.chmod(0o755)
    (block,) = [one for one in blocks("sh") if one.startswith("name()")]
    env = {"PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"}
    said = subprocess.run(["sh", "-c", block], env=env, capture_output=True, text=True, check=True)
    assert "<--logical-resource-id><DispatchLog>" in said.stdout
    assert said.stdout.endswith('<--filter-pattern><{ $.action = "dead" }>')

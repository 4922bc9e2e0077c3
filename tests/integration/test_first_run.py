"""What someone meets whose machine is not as it should be: a message that says what to do."""

import os
import shutil
import socket
import subprocess
from pathlib import Path

import pytest

TOP = Path(__file__).parents[2]
TOOLS = ("sh", "ls", "sort", "cat", "cksum", "tr", "dirname", "mkdir", "rm", "id", "tail", "mktemp")


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A folder with what the set-up reads, as after a clone."""
    place = tmp_path / "clone"
    shutil.copytree(TOP / ".ci", place / ".ci")
    for name in ("requirements.lock", "pyproject.toml"):
        shutil.copy(TOP / name, place)
    return place


@pytest.fixture
def tools(tmp_path: Path) -> Path:
    """A PATH with the tools of any machine, and no Python."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in TOOLS:
        found = shutil.which(name)
        assert found
        (folder / name).symlink_to(found)
    return folder


def setup(clone: Path, path: Path, **more: str) -> subprocess.CompletedProcess[str]:
    """Run the set-up with that PATH and no home."""
    env = {"PATH": str(path), "HOME": "/nonexistent", **more}
    return subprocess.run(
        [clone / ".ci" / "setup"], env=env, capture_output=True, text=True, check=False
    )


def fake_python(folder: Path, name: str, version: str) -> None:
    """A Python that tells its version and is too old for anything else."""
    script = f'#!/bin/sh\ncase "$2" in *print*) echo {version};; *) exit 1;; esac\n'
    (folder / name).write_text(script)
    (folder / name).chmod(0o755)


def test_an_old_python_is_named_with_what_to_do(clone: Path, tools: Path) -> None:
    fake_python(tools, "python3", "3.9")
    done = setup(clone, tools)
    assert done.returncode == 1
    assert "python3 is 3.9" in done.stderr
    assert "3.11 or newer" in done.stderr
    assert "make run PYTHON=" in done.stderr


def test_no_python_at_all_is_said(clone: Path, tools: Path) -> None:
    done = setup(clone, tools)
    assert done.returncode == 1
    assert "no Python on the PATH" in done.stderr


def test_a_folder_that_cannot_be_written_to_is_named(
    clone: Path, tools: Path, tmp_path: Path
) -> None:
    real = shutil.which("python3.13") or shutil.which("python3")
    assert real
    # A file where the folder would be made stops root as well as anyone.
    (clone / ".venv").mkdir()
    (tools / "rm").unlink()
    (tools / "rm").write_text("#!/bin/sh\nexit 1\n")
    (tools / "rm").chmod(0o755)
    env = {"PYTHON": os.path.realpath(TOP / ".venv" / "bin" / "python")}
    done = setup(clone, tools, **env)
    assert done.returncode == 1
    assert f"The folder {clone} cannot be written to" in done.stderr
    assert "chown" in done.stderr


def duetick(*arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """The command, in a folder."""
    return subprocess.run(
        [TOP / ".venv" / "bin" / "duetick", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
    )


def test_a_port_in_use_is_named_with_another_one() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = duetick("local", "--port", str(port), "--store", "sqlite://", folder=TOP)
    assert done.returncode == 1
    assert f"Port {port} is in use" in done.stderr
    assert f"make run PORT={port + 1}" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_store_that_cannot_be_opened_is_named(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path}/nowhere/file.db"
    done = duetick("local", "--port", "0", "--store", store, folder=TOP)
    assert done.returncode == 1
    assert store in done.stderr
    assert "--store" in done.stderr


def test_the_wrong_folder_is_named(tmp_path: Path) -> None:
    done = duetick("local", "--port", "0", "--store", "sqlite://", folder=tmp_path)
    assert done.returncode == 1
    assert "template.yaml" in done.stderr


def test_an_address_that_no_store_has_names_those_that_are_known(tmp_path: Path) -> None:
    done = duetick("migrate", "--store", "mysql://db", folder=tmp_path)
    assert done.returncode == 1
    assert "mysql" in done.stderr
    assert "sqlite:///" in done.stderr

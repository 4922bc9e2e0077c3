"""First runs on a machine that lacks something: a message says what to do."""

import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

TOP = Path(__file__).parents[2]
PYTHON = os.path.realpath(TOP / ".venv" / "bin" / "python")
NOBODY = 65534
TOOLS = ("sh", "ls", "sort", "cat", "cksum", "tr", "dirname", "mkdir", "rm", "id", "tail", "sleep")


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder that anyone may look into: pytest's own are closed to all but their owner."""
    with tempfile.TemporaryDirectory() as made:
        Path(made).chmod(0o755)
        yield Path(made)


@pytest.fixture
def clone(place: Path) -> Path:
    """Make a folder with the files that the set-up reads, as after a clone."""
    made = place / "clone"
    shutil.copytree(TOP / ".ci", made / ".ci")
    for name in ("requirements.lock", "pyproject.toml"):
        shutil.copy(TOP / name, made)
    return made


@pytest.fixture
def tools(place: Path) -> Path:
    """A PATH with the tools of any machine, and no Python."""
    folder = place / "bin"
    folder.mkdir()
    for name in TOOLS:
        found = shutil.which(name)
        assert found
        (folder / name).symlink_to(found)
    return folder


def setup(
    clone: Path, path: Path, *, unprivileged: bool = False, **more: str
) -> subprocess.CompletedProcess[str]:
    """Run the set-up with that PATH and no home, as somebody without rights where it is said."""
    env = {"PATH": str(path), "HOME": "/nonexistent", **more}
    nobody = NOBODY if unprivileged and os.geteuid() == 0 else None
    return subprocess.run(
        [clone / ".ci" / "setup"],
        env=env,
        user=nobody,
        capture_output=True,
        text=True,
        check=False,
    )


def fake_python(folder: Path, name: str, version: str) -> None:
    """Make a Python that tells its version and is too old for anything else."""
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


def test_a_python_that_is_named_and_does_not_do_is_told(clone: Path, tools: Path) -> None:
    done = setup(clone, tools, PYTHON="/nope")
    assert done.returncode == 1
    assert "PYTHON=/nope does not run" in done.stderr


def test_a_folder_that_cannot_be_written_to_is_named(clone: Path, tools: Path) -> None:
    (tools / "python3").write_text("#!/bin/sh\nexit 0\n")
    (tools / "python3").chmod(0o755)
    clone.chmod(0o555)
    done = setup(clone, tools, unprivileged=True)
    clone.chmod(0o755)
    assert done.returncode == 1
    assert f"The folder {clone} cannot be written to" in done.stderr
    assert "chown" in done.stderr


@pytest.mark.slow
def test_a_set_up_that_was_killed_does_not_hold_up_the_next_one(clone: Path, tools: Path) -> None:
    lock = clone / ".cache" / "setup.lock"
    lock.mkdir(parents=True)
    gone = subprocess.Popen(["true"])
    gone.wait()
    (lock / "pid").write_text(str(gone.pid))
    done = setup(clone, tools, PYTHON=PYTHON, PIP_INDEX_URL="http://127.0.0.1:9", PIP_RETRIES="0")
    assert "Setting up .venv" in done.stdout
    assert "network" in done.stderr
    assert not lock.exists()


@pytest.mark.slow
def test_a_clone_that_was_moved_is_set_up_again(clone: Path, tools: Path) -> None:
    assert "Setting up" in setup(clone, tools, PYTHON=PYTHON, PIP_NO_INDEX="1").stdout
    moved = clone.rename(clone.with_name("moved"))
    assert "Setting up" in setup(moved, tools, PYTHON=PYTHON, PIP_NO_INDEX="1").stdout


def duetick(
    *arguments: str, folder: Path, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run the command in a folder."""
    return subprocess.run(
        [TOP / ".venv" / "bin" / "duetick", *arguments],
        cwd=folder,
        env={**os.environ, **(env or {})},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
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


def test_a_port_that_cannot_be_is_told() -> None:
    done = duetick("local", "--port", "99999", "--store", "sqlite://", folder=TOP)
    assert done.returncode == 1
    assert "There is no port 99999: the last one is 65535. Choose another" in done.stderr
    assert "--port 8080" in done.stderr
    assert "listens there" not in done.stderr


FLOW = "from duetick import Flow; flow = Flow('f'); act = flow.action('a')\n"
BROKEN = [
    ("\nclass:\n", "SyntaxError: invalid syntax"),
    ("\nimport no_such_module\n", "ModuleNotFoundError: No module named 'no_such_module'"),
    ("\n{}['key']\n", "KeyError: 'key'"),
    ("import sys\nsys.exit(3)\n", "SystemExit: 3"),
    ("import sys\nsys.exit()\n", "SystemExit"),
    ("from duetick import Flow\nFlow('a b')\n", "flow: expected a letter"),
    (f"{FLOW}act(lambda one: None)\n", "action: 'a' must take two arguments"),
    (f"{FLOW}[act(lambda given, ctx: None) for _ in range(2)]\n", "action: 'a' has its target or"),
    (f"{FLOW}flow.schedule('s', cron='x', action='a')\n", "f/s: 'x' has 1 field, and cron has"),
]


def with_flows(folder: Path, text: str) -> subprocess.CompletedProcess[str]:
    """Start the local stack with that text for flows."""
    flows = folder / "broken_flows"
    flows.mkdir()
    (flows / "__init__.py").write_text(text)
    local = ("local", "--port", "0", "--store", "sqlite://")
    env = {"DUETICK_FLOWS": flows.name, "PYTHONPATH": str(folder)}
    return duetick(*local, folder=TOP, env=env)


@pytest.mark.parametrize(("text", "said"), BROKEN)
def test_flows_that_cannot_be_loaded_are_one_line_with_their_place(
    tmp_path: Path, text: str, said: str
) -> None:
    done = with_flows(tmp_path, text)
    assert done.returncode == 1
    place = f"{tmp_path}/broken_flows/__init__.py:2"
    assert done.stderr.startswith(f"duetick: The flows cannot be loaded. {place}: {said}")
    assert (done.stdout, len(done.stderr.splitlines())) == ("", 1)


STOPPED = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.raise_signal(signal.SIGINT)
"""
"""Flows that are interrupted. A process that was started in the background ignores the signal."""


def test_a_stop_while_the_flows_are_loaded_is_told_without_a_stack(tmp_path: Path) -> None:
    done = with_flows(tmp_path, STOPPED)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "Stopped.\n")


def test_a_damaged_file_is_told_without_a_stack(tmp_path: Path) -> None:
    (tmp_path / "file.db").write_bytes(b"x" * 4096)
    store = f"sqlite:///{tmp_path}/file.db"
    done = duetick("local", "--port", "0", "--store", store, folder=TOP)
    assert done.returncode == 1
    assert "no SQLite database, or it is damaged" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_password_of_a_store_is_never_printed(tmp_path: Path) -> None:
    store = "postgresql://bob:hunter2@127.0.0.1:9/x?sslmode=disable&password=hunter2"
    done = duetick("local", "--port", "0", "--store", store, folder=TOP)
    assert done.returncode == 1
    assert "bob:…@127.0.0.1" in done.stderr
    assert "hunter2" not in done.stdout + done.stderr
    assert "sqlite" not in done.stderr


def test_the_wrong_folder_is_named(tmp_path: Path) -> None:
    done = duetick("local", "--port", "0", "--store", "sqlite://", folder=tmp_path)
    assert done.returncode == 1
    assert "template.yaml" in done.stderr


def test_an_address_that_no_store_has_names_those_that_are_known(tmp_path: Path) -> None:
    done = duetick("migrate", "--store", "mysql://db", folder=tmp_path)
    assert done.returncode == 1
    assert "mysql" in done.stderr
    assert "sqlite:///" in done.stderr

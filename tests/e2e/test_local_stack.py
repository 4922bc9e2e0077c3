"""`make run` as a newcomer meets it: its printed commands work, and a schedule fires by itself."""

import json
import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from duetick.stores import open_store

from tests.lab.process import free_port

TOP = Path(__file__).parents[2]
PATIENCE = 150

pytestmark = pytest.mark.slow


class Terminal:
    """A running `make run` and its output."""

    def __init__(self, folder: Path, *more: str) -> None:
        self._output = folder / "output"
        arguments = [f"PORT={free_port()}", f"STORE=sqlite:///{folder}/duetick.db", *more]
        with self._output.open("w") as output:
            self._process = subprocess.Popen(
                ["make", "run", *arguments],
                cwd=TOP,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def wait_for(self, text: str) -> str:
        """Wait until the output holds the text. Return all of it."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            printed = self._output.read_text()
            if text in printed:
                return printed
            time.sleep(0.1)
        raise AssertionError(f"{text!r} was not printed:\n{self._output.read_text()}")

    def stop(self) -> int:
        """Press Ctrl-C, which a terminal sends to all that it runs. Return the exit code."""
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGINT)
        return self._process.wait(60)


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    """A local stack."""
    started = Terminal(tmp_path)
    yield started
    started.stop()


@pytest.fixture
def with_queue(tmp_path: Path) -> Iterator[Terminal]:
    """Start a local stack whose ticks hand on packs."""
    started = Terminal(tmp_path, "TRANSPORT=queue")
    yield started
    started.stop()


def commands(printed: str) -> list[str]:
    """Return the commands that the welcome shows."""
    return re.findall(r"^  (curl .*?)(?=\n\n)", printed, re.MULTILINE | re.DOTALL)


def url_of(command: str) -> str:
    """Return the address of the stack. The command finds the operator's token by it."""
    (found,) = re.findall(r"http://[\d.:]+", command)
    return str(found)


def paste(command: str) -> dict[str, object]:
    """Run a shown command in a shell; its JSON."""
    done = subprocess.run(
        ["sh", "-c", command], capture_output=True, text=True, check=True, timeout=60, cwd=TOP
    )
    answer: dict[str, object] = json.loads(done.stdout)
    return answer


def test_q04_by_the_queue_in_the_same_process_a_schedule_fires_too(with_queue: Terminal) -> None:
    put, history = commands(with_queue.wait_for("Ctrl-C stops."))
    assert paste(put)["key"] == "hello"
    with_queue.wait_for("you: hello")
    with_queue.wait_for("packs=1 succeeded=1")
    rows = paste(history)["history"]
    assert isinstance(rows, list)
    assert rows[-1]["state"] == "succeeded"
    with_queue.stop()
    assert "Traceback" not in with_queue.wait_for("handed_on=")


def test_the_commands_that_it_prints_make_a_schedule_that_fires(terminal: Terminal) -> None:
    put, history = commands(terminal.wait_for("Ctrl-C stops."))
    assert paste(put)["key"] == "hello"
    terminal.wait_for("you: hello")
    terminal.wait_for("claimed=1 delivered=1")
    shown = paste(f".venv/bin/duetick overview --json --url {url_of(put)}")
    assert shown["unreadable"] == {"count": 0, "more": False}
    answer = paste(history)["history"]
    assert isinstance(answer, list)
    assert answer[-1]["state"] == "succeeded"
    terminal.stop()
    assert "Traceback" not in terminal.wait_for("claimed=1")


def test_the_flows_static_schedules_are_there(terminal: Terminal, tmp_path: Path) -> None:
    terminal.wait_for("claimed=0")
    store = open_store(f"sqlite:///{tmp_path}/duetick.db")
    assert store.index.get("", "digests/nightly")
    store.close()

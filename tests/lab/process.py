"""The lab's servers: each has a process group and a log, and is stopped after the tests."""

import atexit
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

LOCALHOST = "127.0.0.1"
# Its input ends with whoever holds the other end, however that one died.
GUARD = 'read -r _; kill -s TERM -- "-$0"; sleep 5; kill -s KILL -- "-$0"'
Command = Sequence[str | Path]

_held: list[socket.socket] = []


class LabError(Exception):
    """A failure of a program that the lab runs: its name, and its last words."""


def free_port() -> int:
    """Return a TCP port of this machine on which nothing listens, and which nobody else gets.

    A port that is only looked up goes to the next connection: a server that takes its time to
    start, or that is down for a while, would find it taken. So it stays bound here. Nobody gets
    such a port, and a server that names it may still listen on it.
    """
    holder = socket.socket()
    holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    holder.bind((LOCALHOST, 0))
    port: int = holder.getsockname()[1]
    if sys.platform == "linux":
        _held.append(holder)
    else:  # there a bound port is one that nobody may listen on
        holder.close()
    return port


class Server:
    """A child process and all that it starts. It ends with this one, even where that is killed."""

    def __init__(
        self,
        command: Command,
        log: Path,
        *,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        user: int | None = None,
    ) -> None:
        self.name = Path(command[0]).name
        self.log = log
        with log.open("ab") as output:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=env,
                cwd=cwd,
                user=user,
                start_new_session=True,
            )
        self._guard = subprocess.Popen(
            ["/bin/sh", "-c", GUARD, str(self.pid)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        atexit.register(self.stop)

    @property
    def pid(self) -> int:
        return self._process.pid

    def processor_ms(self) -> float:
        """Return the processor time of the server and its child processes so far."""
        ticks = 0
        for process in Path("/proc").glob("[0-9]*/stat"):
            with suppress(OSError):
                told = process.read_text().rpartition(")")[2].split()
                ticks += sum(map(int, told[11:15])) if int(told[3]) == self.pid else 0
        return ticks * 1_000 / os.sysconf("SC_CLK_TCK")

    def running(self) -> bool:
        return self._process.poll() is None

    def wait_until(self, ready: Callable[[], bool], *, seconds: float = 60) -> None:
        """Poll until ready; a server that exits, or takes too long, is an error with its log."""
        give_up = time.monotonic() + seconds
        while not ready():
            if not self.running():
                raise self.failure(f"stopped with status {self._process.returncode}")
            if time.monotonic() > give_up:
                raise self.failure(f"was not ready after {seconds:.0f} s")
            time.sleep(0.02)

    def stop(self, *, with_signal: int = signal.SIGTERM, grace: float = 10) -> None:
        """Ask the process to stop, then end the rest of its group."""
        if self.running():
            self._process.send_signal(with_signal)
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(grace)
        self.kill()
        atexit.unregister(self.stop)

    def kill(self) -> None:
        """End the whole group at once, as a crash would."""
        self._guard.kill()
        self._guard.communicate()
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)
        self._process.wait()

    def failure(self, what: str) -> LabError:
        return LabError(f"{self.name} {what}. The end of its log, {self.log}:\n{self.tail()}")

    def tail(self, lines: int = 40) -> str:
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])


def answers(port: int) -> bool:
    """Return True if a server accepts connections on this port."""
    with suppress(OSError), socket.create_connection((LOCALHOST, port), timeout=1):
        return True
    return False


def run(
    command: Command,
    *,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    user: int | None = None,
) -> str:
    """Run a command to its end. Return its output; a failure shows all of it."""
    __tracebackhide__ = True  # pytest would print the environment
    done = subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=env,
        cwd=cwd,
        user=user,
        check=False,
        text=True,
    )
    if done.returncode:
        line = " ".join(map(str, command))
        raise LabError(f"`{line}` ended with status {done.returncode}:\n{done.stdout}")
    return done.stdout

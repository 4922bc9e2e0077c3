"""Databases that go away and come back: behind a shut door, locked, or without their folder."""

import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from tests.lab.process import LOCALHOST, free_port

LOCK = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("BEGIN IMMEDIATE")
print("locked", flush=True)
sys.stdin.read()
"""


class Outage(Protocol):
    """An outage that a test makes of a database."""

    def begin(self) -> None:
        """It does not answer any more."""

    def end(self) -> None:
        """It does again, with all that it held."""


class Door:
    """A port of this machine that leads to another, and can be shut."""

    def __init__(self, target: int) -> None:
        self._target = target
        self._open: list[socket.socket] = []
        self._lock = threading.Lock()
        self._listener: socket.socket | None = None
        self.port = free_port()
        self.end()

    def begin(self) -> None:
        """Cut the open connections, and refuse new ones."""
        with self._lock:
            listener, self._listener = self._listener, None
            connected = list(self._open)
        if listener:
            listener.shutdown(socket.SHUT_RDWR)
            listener.close()
        for each in connected:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def count(self) -> int:
        """Return the number of connections."""
        return len(self._open) // 2

    def end(self) -> None:
        """Let everybody in."""
        self._listener = socket.create_server((LOCALHOST, self.port), backlog=128)
        threading.Thread(target=self._accept, args=(self._listener,), daemon=True).start()

    def _accept(self, listener: socket.socket) -> None:
        with suppress(OSError):
            while True:
                client, _ = listener.accept()
                try:
                    server = socket.create_connection((LOCALHOST, self._target))
                except OSError:
                    client.close()
                    continue
                self._let_through(listener, client, server)

    def _let_through(
        self, listener: socket.socket, client: socket.socket, server: socket.socket
    ) -> None:
        """Unless the door was shut behind who had just come in."""
        with self._lock:
            if self._listener is not listener:
                client.close()
                server.close()
                return
            self._open += (client, server)
        for ends in ((client, server), (server, client)):
            threading.Thread(target=self._pump, args=ends, daemon=True).start()

    def _pump(self, source: socket.socket, sink: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(65_536):
                sink.sendall(data)
        for each in (source, sink):
            with suppress(OSError, ValueError):
                each.shutdown(socket.SHUT_RDWR)
        with self._lock:
            self._open.remove(source)
        source.close()


@contextmanager
def door(target: int) -> Iterator[Door]:
    """Yield a door that is shut in the end."""
    made = Door(target)
    yield made
    made.begin()


@dataclass(slots=True)
class Locked:
    """Another process writes to the file, and does not come to an end."""

    path: Path
    holder: list["subprocess.Popen[str]"] = field(default_factory=list)

    def begin(self) -> None:
        """Wait until it has the lock."""
        process = subprocess.Popen(
            [sys.executable, "-c", LOCK, self.path],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert process.stdout
        assert process.stdout.readline() == "locked\n"
        self.holder.append(process)

    def end(self) -> None:
        """It comes to its end."""
        self.holder.pop().communicate("", timeout=60)


@dataclass(slots=True)
class Gone:
    """The folder is not there: a volume that is not mounted."""

    folder: Path

    def begin(self) -> None:
        """Take it away."""
        shutil.move(self.folder, self.folder.with_name("elsewhere"))

    def end(self) -> None:
        """Bring it back."""
        shutil.move(self.folder.with_name("elsewhere"), self.folder)

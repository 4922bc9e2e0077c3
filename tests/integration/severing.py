"""A wire to Postgres that can be cut at a chosen word, before or after it arrives."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Literal

from tests.lab.process import LOCALHOST

Moment = Literal["before", "after"]


class SeveringProxy:
    """Forwards to a port of this machine. Once `cut` is told, the next such message is the last."""

    def __init__(self, port: int) -> None:
        self._target = port
        self._word = b""
        self._moment: Moment = "before"
        self.connections = 0
        self._listener = socket.create_server((LOCALHOST, 0))
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self, word: bytes, moment: Moment) -> None:
        """Break the connection around the next message of a client that holds `word`."""
        self._moment, self._word = moment, word

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                self.connections += 1
                server = socket.create_connection((LOCALHOST, self._target))
                for pump in (self._up, self._down):
                    threading.Thread(target=pump, args=(client, server), daemon=True).start()

    def _up(self, client: socket.socket, server: socket.socket) -> None:
        with suppress(OSError), _closing(client), _closing(server):
            while data := client.recv(65_536):
                word = self._word
                if not word or word not in data:
                    server.sendall(data)
                    continue
                self._word = b""
                if self._moment == "after":
                    # No answer gets through any more, and only then the message goes.
                    client.shutdown(socket.SHUT_RDWR)
                    server.sendall(data)
                return

    def _down(self, client: socket.socket, server: socket.socket) -> None:
        with suppress(OSError), _closing(client), _closing(server):
            while data := server.recv(65_536):
                client.sendall(data)


@contextmanager
def _closing(end: socket.socket) -> Iterator[None]:
    """Closing alone tells the other side nothing while a thread still waits for it to speak."""
    try:
        yield
    finally:
        with suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)
        end.close()

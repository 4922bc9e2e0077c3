"""A dispatch endpoint that misbehaves as it is told to, over real sockets."""

import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

Behave = Callable[["Endpoint", socket.socket, str], bool]
"""Answer one request; True keeps the connection."""

OK = b"HTTP/1.1 202 Accepted\r\ncontent-length: 22\r\n\r\n" + b'{"status": "accepted"}'


def answer(text: bytes) -> Behave:
    """Answer with that and keep the connection."""

    def behave(_endpoint: "Endpoint", connection: socket.socket, _request: str) -> bool:
        connection.sendall(text)
        return True

    return behave


def status(number: int, body: str = "{}") -> Behave:
    """Answer with a status, and with a body if one is given."""
    return answer(f"HTTP/1.1 {number} X\r\ncontent-length: {len(body)}\r\n\r\n{body}".encode())


def hang_up(_endpoint: "Endpoint", _connection: socket.socket, _request: str) -> bool:
    """Cut the connection when the request has arrived."""
    return False


def hang(endpoint: "Endpoint", _connection: socket.socket, _request: str) -> bool:
    """Say nothing until the endpoint stops."""
    endpoint.stopping.wait(100)
    return False


def drip(endpoint: "Endpoint", connection: socket.socket, _request: str) -> bool:
    """Answer a byte at a time, for ever."""
    connection.sendall(b"HTTP/1.1 200 OK\r\nx: ")
    while not endpoint.stopping.wait(0.05):
        connection.sendall(b"H")
    return False


@dataclass(slots=True)
class Endpoint:
    """An endpoint that notes its calls, and behaves as it is told."""

    behave: Behave
    port: int = 0
    requests: list[str] = field(default_factory=list)
    connections: int = 0
    tls: ssl.SSLContext | None = None
    refused: list[str] = field(default_factory=list)
    stopping: threading.Event = field(default_factory=threading.Event)

    @property
    def url(self) -> str:
        """The address at which the endpoint listens."""
        return (
            f"https://localhost:{self.port}/v1" if self.tls else f"http://127.0.0.1:{self.port}/v1"
        )

    def serve(self, listener: socket.socket) -> None:
        """Serve each connection in a thread."""
        while not self.stopping.is_set():
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            self.connections += 1
            threading.Thread(target=self._talk, args=(connection,), daemon=True).start()

    def _talk(self, plain: socket.socket) -> None:
        try:
            connection = self.tls.wrap_socket(plain, server_side=True) if self.tls else plain
        except OSError as error:
            self.refused.append(str(error))
            plain.close()
            return
        with connection, suppress(OSError):  # a client that hung up is no news
            while request := _read(connection):
                self.requests.append(request)
                if not self.behave(self, connection, request):
                    return


def _read(connection: socket.socket) -> str:
    data = b""
    while b"\r\n\r\n" not in data:
        part = connection.recv(65_536)
        if not part:
            return ""
        data += part
    head, _, body = data.partition(b"\r\n\r\n")
    length = int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0] or b"0")
    while len(body) < length:
        body += connection.recv(65_536)
    return (head + b"\r\n\r\n" + body).decode()


@contextmanager
def endpoint(behave: Behave, tls: ssl.SSLContext | None = None) -> Iterator[Endpoint]:
    """Yield an endpoint that listens."""
    with socket.create_server(("127.0.0.1", 0), backlog=256) as listener:
        made = Endpoint(behave, listener.getsockname()[1], tls=tls)
        thread = threading.Thread(target=made.serve, args=(listener,), daemon=True)
        thread.start()
        yield made
        made.stopping.set()
        listener.shutdown(socket.SHUT_RDWR)
        thread.join(60)

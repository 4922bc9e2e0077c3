"""An HTTPS server for webhooks, and the requests that it got."""

import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from duetick.actions import Webhook
from duetick.actions.webhook import Network

from tests.lab.process import LOCALHOST
from tests.lab.serving import serve_in_thread

HOST, OTHER = "hooks.example.org", "other.example.org"
SIGNING = "only for this test"


@dataclass(slots=True)
class Hooks:
    """A server, its requests, and its answers."""

    port: int = 0
    certificate: Path = Path()
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    delay: float = 0
    drip: bool = False
    answers: threading.Event = field(default_factory=threading.Event)
    seen: list[tuple[str, dict[str, str], bytes]] = field(default_factory=list)

    def webhook(self, **more: object) -> Webhook:
        """Return a webhook that finds the server under its name."""
        network = Network(
            resolve=lambda _host, _port: [LOCALHOST],
            admits=lambda address: address == LOCALHOST,
            context=lambda: ssl.create_default_context(cafile=str(self.certificate)),
            port=self.port,
        )
        made = Webhook(f"https://{HOST}/due", lambda: SIGNING, (HOST,), network=network, timeout=30)
        return _replaced(made, more)


def _replaced(made: Webhook, more: dict[str, Any]) -> Webhook:
    return replace(made, **more)


@contextmanager
def serving(state: Hooks) -> Iterator[Hooks]:
    """Serve webhooks. The fields of `state` decide the answers."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            state.seen.append((self.path, dict(self.headers), body))
            time.sleep(state.delay)
            state.answers.wait(60)
            if state.drip:
                return self._drip()
            self.send_response(state.status)
            for name, value in state.headers.items():
                self.send_header(name, value)
            self.send_header("content-length", "0")
            self.end_headers()
            return None

        def _drip(self) -> None:
            with suppress(OSError):
                self.wfile.write(b"HTTP/1.1 200 OK\r\nx: ")
                while True:
                    self.wfile.write(b"H")
                    time.sleep(0.05)

        def log_message(self, *_: object) -> None:
            """Quiet."""

    server = ThreadingHTTPServer((LOCALHOST, 0), Handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(state.certificate)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    with serve_in_thread(server):
        state.port = server.server_port
        state.answers.set()
        yield state
        state.answers.set()

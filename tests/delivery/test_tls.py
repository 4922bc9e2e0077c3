"""Deliveries over TLS: a connection is kept, and the one who answers is checked."""

import ssl
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from duetick.domain.schedule import Occurrence
from duetick.runtime.secrets import given
from duetick.transports import exchange
from duetick.transports.http import HttpTransport, bearer

from tests.delivery.scene import NINE
from tests.integration.test_postgres_tls import certificate
from tests.lab.process import LOCALHOST

DUE = Occurrence("ada", "digest", "* * * * *", None, NINE, 1, flow="mail", id="occ_1", due_at=NINE)


class Accepting(BaseHTTPRequestHandler):
    """Answers 202, and counts its connections."""

    protocol_version = "HTTP/1.1"
    connections: list[int]

    def setup(self) -> None:
        super().setup()
        self.connections.append(1)

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        self.send_response(202)
        self.send_header("content-length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, *_said: object) -> None:
        """Nothing."""


@pytest.fixture
def authority(tmp_path: Path) -> Path:
    """Of localhost, and of nobody else."""
    return certificate(tmp_path, "here")


@pytest.fixture
def url(authority: Path) -> Iterator[str]:
    """Where localhost answers over TLS."""
    Accepting.connections = []
    server = ThreadingHTTPServer((LOCALHOST, 0), Accepting)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(authority)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield f"https://localhost:{server.server_port}/v1"
    server.shutdown()
    server.server_close()
    thread.join(10)


def through(url: str) -> list[tuple[int, str]]:
    """Status and detail of three deliveries."""
    transport = HttpTransport(url, bearer(given(("s3cret",))))
    told = [transport.deliver(DUE, timeout=5) for _ in range(3)]
    transport.close()
    return [(each.status, each.detail) for each in told]


def trust(monkeypatch: pytest.MonkeyPatch, authority: Path) -> None:
    """Let it be the only one that this machine trusts."""
    context = ssl.create_default_context(cafile=str(authority))
    monkeypatch.setattr(exchange, "_tls", lambda: context)


def test_a_connection_over_tls_is_kept(
    url: str, authority: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trust(monkeypatch, authority)
    assert through(url) == [(202, "{}")] * 3
    assert len(Accepting.connections) == 1


def test_one_whom_nobody_vouches_for_is_told_nothing(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trust(monkeypatch, certificate(tmp_path, "other"))
    assert all(detail.startswith("SSLCertVerificationError") for _, detail in through(url))


def test_one_of_another_name_is_told_nothing(
    url: str, authority: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trust(monkeypatch, authority)
    elsewhere = through(url.replace("localhost", LOCALHOST))
    assert all(detail.startswith("SSLCertVerificationError") for _, detail in elsewhere)

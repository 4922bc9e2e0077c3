"""TLS to Postgres fails closed, and a token of AWS is made anew for each connection."""

import socket
import ssl
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import SimpleNamespace

import pytest
from duetick.domain.errors import StoreUnavailable
from duetick.stores.postgres import connecting
from duetick.stores.postgres.address import Address
from duetick.stores.postgres.connecting import connect_to, iam_token

from tests.lab.process import LOCALHOST

SELF_SIGNED = ("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2")
LOCAL = ("-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost")


def certificate(folder: Path, name: str) -> Path:
    """Return a certificate for this machine that signs itself, and its key, in one file."""
    made = folder / f"{name}.pem"
    key = folder / f"{name}.key"
    subprocess.run(
        [*SELF_SIGNED, *LOCAL, "-keyout", key, "-out", made],
        check=True,
        capture_output=True,
    )
    made.write_text(made.read_text() + key.read_text())
    return made


@contextmanager
def server(answer: bytes, certificate: Path | None = None) -> Iterator[tuple[int, list[bytes]]]:
    """Yield a server that answers a request for TLS, and keeps the bytes that it reads after
    that.
    """
    listener, read = socket.create_server((LOCALHOST, 0)), list[bytes]()

    def serve() -> None:
        with suppress(OSError):
            client, _ = listener.accept()
            with client:
                client.recv(8)
                client.sendall(answer)
                if certificate:
                    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
                    context.load_cert_chain(certificate)
                    client = context.wrap_socket(client, server_side=True)
                read.append(client.recv(1_000))
                client.close()

    thread = threading.Thread(target=serve)
    thread.start()
    yield listener.getsockname()[1], read
    thread.join()
    listener.close()


def address(port: int, authority: Path, host: str = "localhost") -> Address:
    return Address(
        user="me",
        database="base",
        host=host,
        port=port,
        tls="verify-full",
        root_certificate=str(authority),
    )


def test_a_server_without_tls_gets_nothing_else_to_read(tmp_path: Path) -> None:
    authority = certificate(tmp_path, "authority")
    with server(b"N") as (port, read), pytest.raises(StoreUnavailable):
        connect_to(address(port, authority))()
    assert read in ([], [b""])


def test_a_certificate_of_another_authority_is_refused(tmp_path: Path) -> None:
    ours, theirs = certificate(tmp_path, "ours"), certificate(tmp_path, "theirs")
    with (
        server(b"S", theirs) as (port, read),
        pytest.raises(StoreUnavailable, match="is not trusted"),
    ):
        connect_to(address(port, ours))()
    assert read in ([], [b""])


def test_a_certificate_for_another_host_is_refused(tmp_path: Path) -> None:
    authority = certificate(tmp_path, "authority")
    with (
        server(b"S", authority) as (port, read),
        pytest.raises(StoreUnavailable, match="certificate is not valid for"),
    ):
        connect_to(address(port, authority, LOCALHOST))()
    assert read in ([], [b""])


def test_the_given_authority_is_trusted(tmp_path: Path) -> None:
    authority = certificate(tmp_path, "authority")
    with server(b"S", authority) as (port, read), pytest.raises(StoreUnavailable):
        connect_to(address(port, authority))()
    assert b"user\0me\0" in read[0]


def test_a_token_is_made_anew_for_each_connection(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[dict[str, object]] = []

    def generate(**given: object) -> str:
        asked.append(given)
        return f"token {len(asked)}"

    client = SimpleNamespace(generate_db_auth_token=generate)
    monkeypatch.setattr(connecting, "client_of", lambda *_: client)
    token = iam_token(address(5_432, certificate(tmp_path, "authority")), "eu-west-1")
    assert [token(), token()] == ["token 1", "token 2"]
    assert asked[0] == {"DBHostname": "localhost", "Port": 5_432, "DBUsername": "me"}

"""TLS of the HTTP transport over real sockets: who is not trusted learns nothing."""

import socket
import ssl
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from duetick.domain.schedule import Occurrence
from duetick.network import exchange
from duetick.runtime.secrets import fixed_source
from duetick.transports.http import HttpTransport, bearer

from tests.delivery.endpoint import OK, Endpoint, answer, endpoint
from tests.delivery.scene import NINE
from tests.lab.certificates import EXPIRED, VALID, Authority
from tests.lab.process import LOCALHOST
from tests.lab.waiting import wait

DUE = Occurrence("ada", "digest", "* * * * *", None, NINE, 1, flow="mail", id="occ_1", due_at=NINE)


@pytest.fixture(autouse=True)
def trusted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Authority]:
    """The one authority that this machine trusts here."""
    authority = Authority(tmp_path / "trusted")
    monkeypatch.setenv("SSL_CERT_FILE", str(authority.certificate))
    monkeypatch.setenv("SSL_CERT_DIR", str(tmp_path))
    exchange._tls.cache_clear()
    yield authority
    exchange._tls.cache_clear()


def serving(
    authority: Authority,
    dates: tuple[str, str] = VALID,
    *,
    version: ssl.TLSVersion = ssl.TLSVersion.MAXIMUM_SUPPORTED,
) -> ssl.SSLContext:
    """Return the side of a server that is called localhost."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*authority.sign("localhost", dates))
    context.maximum_version = version
    return context


def through(url: str, *, connect_to: str = "") -> HttpTransport:
    """Return a transport with a secret."""
    return HttpTransport(url, bearer(fixed_source(("s3cret",))), connect_to=connect_to)


def test_a_trusted_server_is_called_on_one_kept_connection(trusted: Authority) -> None:
    with endpoint(answer(OK), serving(trusted)) as place:
        transport = through(place.url)
        assert [transport.deliver(DUE, timeout=30).status for _ in range(3)] == [202] * 3
        transport.close()
    assert (len(place.requests), place.connections) == (3, 1)
    assert "authorization: Bearer s3cret" in place.requests[0]


@pytest.fixture
def look(monkeypatch: pytest.MonkeyPatch) -> threading.Semaphore:
    """Return a semaphore that lets the far end of a kept connection go right after a look at it."""
    look, looked = threading.Semaphore(0), exchange.Channel.silent

    def silent(line: exchange.Channel) -> bool:
        look.release()
        wait(lambda: not looked(line))
        return True

    monkeypatch.setattr(exchange.Channel, "silent", silent)
    return look


def closes(_connection: socket.socket) -> None:
    """Hang up."""


def resets(connection: socket.socket) -> None:
    """Reset the connection."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def says_goodbye(connection: socket.socket) -> None:
    """Hang up as TLS wants it. The other end does not answer that."""
    connection.settimeout(0.05)
    with suppress(OSError):
        if isinstance(connection, ssl.SSLSocket):
            connection.unwrap()


@pytest.mark.parametrize("version", [None, ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
@pytest.mark.parametrize("goes", [closes, resets, says_goodbye])
def test_t03_a_kept_connection_that_ends_unseen_costs_no_delivery(
    trusted: Authority,
    look: threading.Semaphore,
    version: ssl.TLSVersion | None,
    goes: Callable[[socket.socket], None],
) -> None:
    """This holds with TLS too: nobody has read the call, and it is made again at once."""

    def once_each(place: Endpoint, connection: socket.socket, request: str) -> bool:
        answer(OK)(place, connection, request)
        if look.acquire(timeout=30):
            goes(connection)
        return False

    with endpoint(once_each, serving(trusted, version=version) if version else None) as place:
        transport = through(place.url)
        assert [transport.deliver(DUE, timeout=30).status for _ in range(3)] == [202] * 3
        transport.close()
        look.release()
    assert (len(place.requests), place.connections) == (3, 3)


def test_t03_what_tls_could_not_send_is_sent_again(
    trusted: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    """OpenSSL's error for an end that it meets while it writes differs by version and moment."""
    with endpoint(answer(OK), serving(trusted)) as place:
        transport = through(place.url)
        assert transport.deliver(DUE, timeout=30).status == 202
        with monkeypatch.context() as patch:
            patch.setattr(ssl.SSLSocket, "sendall", fails_once(ssl.SSLSocket.sendall))
            assert transport.deliver(DUE, timeout=30).status == 202
        transport.close()
    assert (len(place.requests), place.connections) == (2, 2)


def fails_once(sendall: Callable[..., None]) -> Callable[..., None]:
    """Raise the first time as OpenSSL does, then go on as usual."""
    failures = iter([ssl.SSLEOFError(ssl.SSL_ERROR_EOF, "EOF occurred in violation of protocol")])

    def send(connection: ssl.SSLSocket, data: bytes) -> None:
        for failure in failures:
            raise failure
        sendall(connection, data)

    return send


@pytest.mark.parametrize("secure", [False, True])
def test_t03_a_call_whose_answer_had_begun_is_not_made_again(
    trusted: Authority, monkeypatch: pytest.MonkeyPatch, secure: bool
) -> None:
    """Dispatch has read the call: the ledger knows its outcome."""
    receive = exchange.Channel._receive

    def cut_in_the_middle(line: exchange.Channel) -> bool:
        if line._ahead:
            raise ConnectionResetError("cut")
        return receive(line)

    def half_of_the_second(place: Endpoint, connection: socket.socket, request: str) -> bool:
        half = len(OK) // (1 if len(place.requests) == 1 else 2)
        return answer(OK[:half])(place, connection, request)

    monkeypatch.setattr(exchange.Channel, "_receive", cut_in_the_middle)
    with endpoint(half_of_the_second, serving(trusted) if secure else None) as place:
        transport = through(place.url)
        assert [transport.deliver(DUE, timeout=30).status for _ in range(2)] == [202, 0]
        transport.close()
    assert (len(place.requests), place.connections) == (2, 1)


def test_one_of_an_unknown_authority_gets_nothing(tmp_path: Path) -> None:
    with endpoint(answer(OK), serving(Authority(tmp_path / "unknown"))) as place:
        delivery = through(place.url).deliver(DUE, timeout=30)
        wait(lambda: len(place.refused) == 1)
    assert delivery.status == 0
    assert "certificate verify failed" in delivery.detail
    assert place.requests == []
    assert "s3cret" not in delivery.detail


def test_one_whose_certificate_is_over_gets_nothing(trusted: Authority) -> None:
    with endpoint(answer(OK), serving(trusted, EXPIRED)) as place:
        delivery = through(place.url).deliver(DUE, timeout=30)
    assert (delivery.status, place.requests) == (0, [])
    assert "expired" in delivery.detail


def test_one_with_a_certificate_for_another_host_gets_nothing(trusted: Authority) -> None:
    with endpoint(answer(OK), serving(trusted)) as place:
        delivery = through(f"https://{LOCALHOST}:{place.port}/v1").deliver(DUE, timeout=30)
    assert (delivery.status, place.requests) == (0, [])
    assert "certificate is not valid for" in delivery.detail


def test_one_that_speaks_no_tls_reads_no_secret() -> None:
    read: list[bytes] = []
    with socket.create_server((LOCALHOST, 0)) as listener:

        def serve() -> None:
            with suppress(OSError):
                client, _ = listener.accept()
                with client:
                    read.append(client.recv(65_536))
                    client.sendall(OK)

        thread = threading.Thread(target=serve)
        thread.start()
        port = listener.getsockname()[1]
        delivery = through(f"https://localhost:{port}/v1").deliver(DUE, timeout=30)
        thread.join(30)
    assert delivery.status == 0
    assert b"s3cret" not in read[0]
    assert b"digest" not in read[0]


def test_a_private_door_shows_its_own_certificate(trusted: Authority) -> None:
    """The API's name does not lead there; who answers at the door's name is checked."""
    with endpoint(answer(OK), serving(trusted)) as place:
        api = "https://abc.execute-api.eu-west-1.amazonaws.com/v1"
        transport = through(api, connect_to=f"https://localhost:{place.port}")
        assert transport.deliver(DUE, timeout=30).status == 202
        transport.close()
        other = through(api, connect_to=f"https://{LOCALHOST}:{place.port}")
        assert other.deliver(DUE, timeout=30).status == 0
    assert "host: abc.execute-api.eu-west-1.amazonaws.com" in place.requests[0]
    assert len(place.requests) == 1

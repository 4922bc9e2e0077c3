"""The reader of answers: it takes some, refuses others, and says if the connection goes on."""

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import replace

import pytest
from duetick.domain.schedule import Occurrence
from duetick.network.exchange import LONGEST_BODY, BadAnswer, Channel, HttpAnswer
from duetick.runtime.secrets import fixed_source
from duetick.transports.http import HttpTransport, bearer
from hypothesis import given
from hypothesis import strategies as st

from tests.delivery.endpoint import OK, Endpoint, answer, endpoint
from tests.delivery.scene import NINE

DUE = Occurrence("ada", "digest", "* * * * *", None, NINE, 1, flow="mail", id="occ_1", due_at=NINE)
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
LONG = b"x" * 10_000


@contextmanager
def line() -> Iterator[tuple[Channel, socket.socket]]:
    """Yield a connection, and its far end."""
    near, far = socket.socketpair()
    with closing(near), closing(far):
        yield Channel(near), far


def read(*parts: bytes, ends: bool = True) -> HttpAnswer:
    """Read an answer that comes in parts."""
    with line() as (near, far):
        for part in parts:
            far.sendall(part)
        if ends:
            far.shutdown(socket.SHUT_WR)
        return near.exchange(b"POST", time.monotonic() + 30)


def sized(length: str, body: bytes = b"") -> bytes:
    """Return an answer that says its length."""
    return f"HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n".encode() + body


@pytest.mark.parametrize(
    ("sent", "status", "body"),
    [
        (OK, 202, b'{"status": "accepted"}'),
        (sized("0"), 200, b""),
        (sized("4096", LONG[:4096]), 200, LONG[:4096]),
        (b"HTTP/1.1 204 No Content\r\n\r\n", 204, b""),
        (b"HTTP/1.1 200\r\ncontent-length:2 \r\nx:\r\n\r\n{}", 200, b"{}"),
        (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early\r\nlink: x\r\n\r\n" + OK, 202, None),
        (CHUNKED + b"3\r\nabc\r\nA ; x=y\r\n0123456789\r\n0\r\n\r\n", 200, b"abc0123456789"),
        (CHUNKED + b"1\r\na\r\n0\r\nx-sum: 1\r\nx-more: 2\r\n\r\n", 200, b"a"),
    ],
)
def test_a_whole_answer_leaves_the_connection_for_the_next(
    sent: bytes, status: int, body: bytes | None
) -> None:
    found = read(sent, ends=False)
    assert (found.status, found.kept) == (status, True)
    assert body is None or found.body == body


@pytest.mark.parametrize(
    "sent",
    [
        b"HTTP/1.1 200 OK\r\n\r\n{}",
        b"HTTP/1.0 200 OK\r\ncontent-length: 2\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nConnection: Keep-Alive, Close\r\n\r\n{}",
        sized("2", b"{}HTTP/1.1 200 OK"),
    ],
)
def test_a_connection_whose_answer_does_not_end_it_clearly_is_not_used_again(sent: bytes) -> None:
    assert read(sent) == HttpAnswer(200, b"{}", kept=False)


@pytest.mark.parametrize(
    "sent",
    [
        sized("10000", LONG),
        sized("999999999999999", LONG),
        b"HTTP/1.1 200 OK\r\n\r\n" + LONG,
        CHUNKED + b"2710\r\n" + LONG,
        CHUNKED + b"400\r\n" + LONG[:1024] + b"\r\nfffffffff\r\n" + LONG,
    ],
)
def test_of_a_long_answer_the_beginning_is_read(sent: bytes) -> None:
    assert read(sent) == HttpAnswer(200, LONG[:LONGEST_BODY], kept=False)


@pytest.mark.parametrize(
    "sent",
    [
        b"SSH-2.0-OpenSSH_9.2\r\n",
        b"\x15\x03\x01\x00\x02\x02\x46",
        b"HTTP/2 200\r\n\r\n",
        b"HTTP/1.1\r\n\r\n",
        b"HTTP/1.1 2000 OK\r\n\r\n",
        b"HTTP/1.1 099 Low\r\n\r\n",
        b"HTTP/1.1 600 High\r\n\r\n",
        b"HTTP/1.1 twenty OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n: nameless\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nx: 1\r\n folded: 2\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length : 2\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\nx: " + b"y" * 20_000,
        b"HTTP/1.1 200 OK\r\nx: " + b"y" * 20_000 + b"\r\n\r\n",
        b"HTTP/1.1 100 Continue\r\n\r\n" * 9 + OK,
        b"HTTP/1.1 101 Switching\r\nupgrade: x\r\n\r\n",
        *(sized(wrong, b"{}") for wrong in ("", "-2", "+2", "2.0", "0x2", "2, 2", "9" * 5_000)),
        b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 3\r\n\r\n{} ",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\ncontent-length: 5\r\n\r\n0\r\n\r\n",
        *(
            CHUNKED + wrong
            for wrong in (b"\r\n", b"xyz\r\n", b"-1\r\n", b"1" * 17_000, b"1\r\nabc")
        ),
        CHUNKED + b"0\r\n" + b"x: y\r\n" * 5_000,
        *(whole[:-1] for whole in (OK, CHUNKED + b"0\r\n\r\n", b"HTTP/1.1 204 No\r\n\r\n")),
    ],
)
def test_what_is_no_answer_is_refused(sent: bytes) -> None:
    with pytest.raises(BadAnswer):
        read(sent)


def test_nothing_at_all_is_a_closed_connection() -> None:
    with pytest.raises(ConnectionError):
        read()


@given(st.binary(max_size=200), st.sampled_from([b"", b"HTTP/1.1 ", OK[:-22], CHUNKED]))
def test_whatever_comes_is_read_or_refused(noise: bytes, start: bytes) -> None:
    with suppress(BadAnswer, ConnectionError):
        assert 200 <= read(start + noise).status < 600


@pytest.mark.parametrize("whole", [OK, CHUNKED + b"3\r\nabc\r\n0\r\nx: y\r\n\r\n"])
def test_how_an_answer_is_cut_does_not_matter(whole: bytes) -> None:
    for at in range(1, len(whole)):
        with line() as (near, far):
            far.sendall(whole[:at])
            rest = threading.Timer(0.0005, far.sendall, [whole[at:]])
            rest.start()
            assert near.exchange(b"POST", time.monotonic() + 30) == read(whole)
            rest.join()


@pytest.fixture
def transport() -> Iterator[Callable[[str], HttpTransport]]:
    """Makes one that knows a secret, and closes it."""
    made: list[HttpTransport] = []

    def make(url: str) -> HttpTransport:
        made.append(HttpTransport(url, bearer(fixed_source(("s3cret",)))))
        return made[-1]

    yield make
    for each in made:
        each.close()


Through = Callable[[str], HttpTransport]


def test_an_endpoint_that_echoes_does_not_bring_the_secret_into_a_log(transport: Through) -> None:
    def echo(_place: Endpoint, connection: socket.socket, request: str) -> bool:
        connection.sendall(request.encode())
        return False

    with endpoint(echo) as place:
        found = transport(place.url).deliver(DUE, timeout=30)
    assert (found.status, found.detail) == (0, "BadAnswer: it is not HTTP/1")


def test_an_answer_that_nobody_asked_for_is_not_the_next_ones(transport: Through) -> None:
    said = threading.Event()

    def twice(_place: Endpoint, connection: socket.socket, _request: str) -> bool:
        connection.sendall(OK)
        time.sleep(0.05)
        connection.sendall(status_line(408))
        said.set()
        return False

    with endpoint(twice) as place:
        through = transport(place.url)
        for _ in range(3):
            assert through.deliver(DUE, timeout=30).status == 202
            assert said.wait(30)
            said.clear()
        assert place.connections == 3


def status_line(number: int) -> bytes:
    """Return a short answer."""
    return f"HTTP/1.1 {number} X\r\ncontent-length: 0\r\n\r\n".encode()


@pytest.mark.parametrize("flow", ["a\r\nx-evil: 1", "a b", "a\0", "ü", "a\x7f"])
def test_an_index_rows_flow_makes_no_header(flow: str, transport: Through) -> None:
    with endpoint(answer(OK)) as place:
        found = transport(place.url).deliver(replace(DUE, flow=flow), timeout=30)
        assert found.status == 0
        assert place.requests == []

"""The local gateway's end: the store may be closed after it."""

import threading
from collections.abc import Iterator
from http.client import HTTPConnection, RemoteDisconnected
from typing import Any

import pytest
from duetick.cli.gateway import LocalRoute, LocalServer

from tests.lab.serving import serve_in_thread


class Gate:
    """A handler that answers when it is let."""

    def __init__(self) -> None:
        self.entered, self.let = threading.Event(), threading.Event()
        self.answered = 0

    def __call__(self, _event: object, _context: object) -> dict[str, Any]:
        self.entered.set()
        assert self.let.wait(30)
        self.answered += 1
        return {"statusCode": 200, "body": "{}"}


@pytest.fixture
def gate() -> Gate:
    return Gate()


@pytest.fixture
def server(gate: Gate) -> Iterator[LocalServer]:
    made = LocalServer(0, [LocalRoute("/api/", gate, lambda _header: {})])
    with serve_in_thread(made):
        yield made


@pytest.fixture
def connection(server: LocalServer) -> Iterator[HTTPConnection]:
    made = HTTPConnection("127.0.0.1", server.server_port, timeout=30)
    yield made
    made.close()


def test_a_call_under_way_is_answered_before_the_server_is_closed(
    server: LocalServer, gate: Gate, connection: HTTPConnection
) -> None:
    connection.request("GET", "/api/one")
    assert gate.entered.wait(30)
    closing = threading.Thread(target=server.server_close)
    closing.start()
    closing.join(0.1)
    assert closing.is_alive()
    gate.let.set()
    closing.join()
    assert gate.answered == 1
    assert connection.getresponse().read() == b"{}"


def test_a_connection_that_stays_open_is_answered_no_more(
    server: LocalServer, gate: Gate, connection: HTTPConnection
) -> None:
    gate.let.set()
    connection.request("GET", "/api/one")
    connection.getresponse().read()
    server.server_close()
    connection.request("GET", "/api/two")
    with pytest.raises(RemoteDisconnected):
        connection.getresponse()
    assert gate.answered == 1

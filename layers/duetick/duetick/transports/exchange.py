"""As much of HTTP/1.1 as one POST and its answer need, on a connection that is kept.

http.client takes four times the processor's time for it, most of that for its mail parser. This
reader is strict: what it does not understand is no answer.
"""

import re
import select
import socket
import ssl
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final, TypeAlias

from duetick.core.timing import ended_within

Place: TypeAlias = tuple[
    socket.AddressFamily, socket.SocketKind, int, str, tuple[str | int | bytes, ...]
]
"""An address, with what it takes to connect there."""

LONGEST_HEAD: Final = 16_384
LONGEST_BODY: Final = 4_096
MOST_INTERIM: Final = 8
"""Answers of status 1xx before the one that counts."""

PART: Final = 65_536
SLACK: Final = 0.05
"""Seconds by which a wait may miss its end: to set a socket's patience is a system call."""

START: Final = b"HTTP/1."
STATUS: Final = re.compile(r"HTTP/1\.([01]) ([1-5][0-9]{2})(?: .*)?")
LENGTH: Final = re.compile(r"[0-9]{1,15}")
SIZE: Final = re.compile(r"([0-9A-Fa-f]{1,12})[ \t]*(?:;.*)?")
WITHOUT_BODY: Final = (204, 304)


class Unanswered(ConnectionError):
    """The connection ended before a byte of an answer came."""


class BadAnswer(Exception):
    """What came is no answer. Says what is wrong in our own words: its words may repeat ours."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A status, as much of the body as is wanted, and whether the connection can go on."""

    status: int
    body: bytes
    kept: bool


def connect(host: str, port: int, end: float, *, secure: bool) -> "Line":
    """A connection that is open, TLS checked, by `end`."""
    made = _reached(host, port, end)
    try:
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if secure:
            made.settimeout(time_left(end))
            made = _tls().wrap_socket(made, server_hostname=host)
    except BaseException:
        made.close()
        raise
    return Line(made)


def _reached(host: str, port: int, end: float) -> socket.socket:
    """The first of the host's addresses that answers; all of them share the time."""
    problem = OSError(f"{host} has no address")
    for family, kind, protocol, _, address in _addresses(host, port, end):
        made = socket.socket(family, kind, protocol)
        try:
            made.settimeout(time_left(end))
            made.connect(address)
        except OSError as error:
            made.close()
            problem = error
        else:
            return made
    raise problem


def _addresses(host: str, port: int, end: float) -> Sequence[Place]:
    """What the name stands for, by `end`: a resolver has patience of its own, often more."""
    found: list[Place] = []

    def ask() -> None:
        found.extend(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM))

    if not ended_within(time_left(end), ask):
        raise TimeoutError(f"the name {host} was not resolved in time")
    return found


def time_left(end: float) -> float:
    """Seconds until then; raise where there are none."""
    left = end - time.monotonic()
    if left <= 0:
        raise TimeoutError("the deadline of the delivery is over")
    return left


@cache
def _tls() -> ssl.SSLContext:
    """One context for all: making it costs 15 ms."""
    return ssl.create_default_context()


class Line:
    """A connection, and what was read ahead on it."""

    def __init__(self, connected: socket.socket) -> None:
        self._socket = connected
        self._ahead = b""
        self._end = 0.0
        self._patience = -1.0
        self._heard = select.poll()
        self._heard.register(connected, select.POLLIN)

    def silent(self) -> bool:
        """Whether nothing came unasked. What comes to an idle one is its end, or is nobody's."""
        return not self._heard.poll(0)

    def close(self) -> None:
        """Hang up."""
        self._socket.close()

    def exchange(self, request: bytes, end: float) -> Answer:
        """Send it and read the answer, all by `end`.

        Raises Unanswered where the connection had ended, or ends before an answer begins.
        """
        self._end = end
        try:
            self._set_patience()
            self._socket.sendall(request)
            begins = self._receive()
        except (ConnectionError, ssl.SSLEOFError) as problem:
            raise Unanswered(f"{type(problem).__name__} before an answer came") from problem
        if not begins:
            raise Unanswered("the connection was closed before an answer came")
        if not self._ahead.startswith(START[: len(self._ahead)]):
            raise BadAnswer("it is not HTTP/1")
        for _ in range(MOST_INTERIM):
            http11, status, fields = _read_head(self._until(b"\r\n\r\n", LONGEST_HEAD))
            if status >= 200:
                body, whole = self._body(status, fields)
                stays = http11 and "close" not in fields.get("connection", "").lower()
                return Answer(status, body, stays and whole and not self._ahead)
        raise BadAnswer("it has no end of interim answers")

    def _body(self, status: int, fields: Mapping[str, str]) -> tuple[bytes, bool]:
        """The body, or its beginning, and whether that is all."""
        coding, length = fields.get("transfer-encoding"), fields.get("content-length")
        if status in WITHOUT_BODY:
            return b"", True
        if coding is not None:
            if coding.lower() != "chunked" or length is not None:
                raise BadAnswer("its length cannot be told")
            return self._chunks()
        if length is None:
            return self._rest(), False
        if not LENGTH.fullmatch(length):
            raise BadAnswer("its length is no number")
        size = int(length)
        return self._exactly(min(size, LONGEST_BODY)), size <= LONGEST_BODY

    def _chunks(self) -> tuple[bytes, bool]:
        body = b""
        while size := _read_size(self._until(b"\r\n", LONGEST_HEAD)):
            if len(body) + size > LONGEST_BODY:
                return body + self._exactly(LONGEST_BODY - len(body)), False
            body += self._exactly(size)
            if self._exactly(2) != b"\r\n":
                raise BadAnswer("a chunk does not end where it should")
        room = LONGEST_HEAD
        while trailer := self._until(b"\r\n", room):
            room -= len(trailer)
        return body, True

    def _rest(self) -> bytes:
        """What comes until the connection ends."""
        while len(self._ahead) < LONGEST_BODY and self._receive():
            pass
        return self._ahead[:LONGEST_BODY]

    def _exactly(self, count: int) -> bytes:
        while len(self._ahead) < count:
            self._need_more()
        taken, self._ahead = self._ahead[:count], self._ahead[count:]
        return taken

    def _until(self, mark: bytes, most: int) -> bytes:
        """What stands before the mark."""
        while (at := self._ahead.find(mark)) < 0:
            if len(self._ahead) > most:
                break
            self._need_more()
        if not 0 <= at <= most:
            raise BadAnswer(f"a part of it is longer than {most} bytes")
        taken, self._ahead = self._ahead[:at], self._ahead[at + len(mark) :]
        return taken

    def _need_more(self) -> None:
        if not self._receive():
            raise BadAnswer("it ends in the middle")

    def _receive(self) -> bool:
        """Whether more came."""
        self._set_patience()
        part = self._socket.recv(PART)
        self._ahead += part
        return bool(part)

    def _set_patience(self) -> None:
        """What is left until the end, for the next call of the socket."""
        left = time_left(self._end)
        if abs(left - self._patience) > SLACK:
            self._socket.settimeout(left)
            self._patience = left


def _read_head(head: bytes) -> tuple[bool, int, Mapping[str, str]]:
    """Whether it is HTTP/1.1, the status, and the fields by lower-case name."""
    first, *lines = head.decode("latin-1").split("\r\n")
    found = STATUS.fullmatch(first)
    if not found:
        raise BadAnswer("its first line has no status")
    fields: dict[str, str] = {}
    for line in lines:
        name, colon, value = line.partition(":")
        if not colon or not name or name != name.strip():
            raise BadAnswer("a header is none")
        name, value = name.lower(), value.strip()
        fields[name] = f"{fields[name]}, {value}" if name in fields else value
    return found[1] == "1", int(found[2]), fields


def _read_size(line: bytes) -> int:
    found = SIZE.fullmatch(line.decode("latin-1"))
    if not found:
        raise BadAnswer("a chunk has no size")
    return int(found[1], 16)

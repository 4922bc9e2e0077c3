"""An HTTP/1.1 client for one POST at a time, on connections that stay open.

http.client takes four times as much processor time, most of it in its mail parser. This reader is
strict: if it does not understand an answer, it raises BadAnswer.
"""

import re
import select
import socket
import ssl
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from typing import Final, NamedTuple, TypeAlias

from duetick.core.timeouts import run_in_thread

Place: TypeAlias = tuple[
    socket.AddressFamily, socket.SocketKind, int, str, tuple[str | int | bytes, ...]
]
"""An address as getaddrinfo returns it: family, kind, protocol, canonical name, address."""

LONGEST_HEAD: Final = 16_384
LONGEST_BODY: Final = 4_096
MOST_INTERIM: Final = 8
"""The number of answers with status 1xx that may come before the final one."""

PART: Final = 65_536
SLACK: Final = 0.05
"""Seconds by which a wait may miss its end: each new timeout of a socket is a system call."""

START: Final = b"HTTP/1."
STATUS: Final = re.compile(r"HTTP/1\.([01]) ([1-5][0-9]{2})(?: .*)?")
LENGTH: Final = re.compile(r"[0-9]{1,15}")
SIZE: Final = re.compile(r"([0-9A-Fa-f]{1,12})[ \t]*(?:;.*)?")
WITHOUT_BODY: Final = (204, 304)


class Unanswered(ConnectionError):
    """The connection ended before a byte of an answer came."""


class BadAnswer(Exception):
    """The received bytes are no answer. The message quotes none: they may repeat the request."""


class HttpAnswer(NamedTuple):
    """The status, the beginning of the body, and the field `date`.

    If `kept`, the connection can be used again.
    """

    status: int
    body: bytes
    kept: bool
    date: str = ""


def connect(host: str, port: int, end: float, *, secure: bool) -> "Channel":
    """Open a connection by `end`. If `secure`, check the certificate of the host."""
    sock = _connect_to_any(host, port, end)
    try:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if secure:
            sock.settimeout(time_left(end))
            sock = _tls().wrap_socket(sock, server_hostname=host)
    except BaseException:
        sock.close()
        raise
    return Channel(sock)


def _connect_to_any(host: str, port: int, end: float) -> socket.socket:
    """Connect to the first of the host's addresses that answers. All of them share the time."""
    problem = OSError(f"{host} has no address")
    for family, kind, protocol, _, address in _resolve(host, port, end):
        sock = socket.socket(family, kind, protocol)
        try:
            sock.settimeout(time_left(end))
            sock.connect(address)
        except OSError as error:
            sock.close()
            problem = error
        else:
            return sock
    raise problem


def _resolve(host: str, port: int, end: float) -> Sequence[Place]:
    """Resolve the name by `end`: the resolver's own timeout is often longer."""
    found: list[Place] = []

    def ask() -> None:
        found.extend(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM))

    if not run_in_thread(time_left(end), ask):
        raise TimeoutError(f"the name {host} was not resolved in time")
    return found


def time_left(end: float) -> float:
    """Return the seconds until `end`. Raise TimeoutError if none remain."""
    left = end - time.monotonic()
    if left <= 0:
        raise TimeoutError("the deadline of the delivery is over")
    return left


@cache
def _tls() -> ssl.SSLContext:
    """Return the one TLS context of the process: to make it costs 15 ms."""
    return ssl.create_default_context()


class Channel:
    """A connection, and the bytes that were read ahead on it."""

    def __init__(self, connected: socket.socket) -> None:
        self._socket = connected
        self._ahead = bytearray()
        self._end = 0.0
        self._longest = LONGEST_BODY
        self._timeout = -1.0
        self._poll = select.poll()
        self._poll.register(connected, select.POLLIN)

    def silent(self) -> bool:
        """Return True if nothing can be read. Bytes on an idle connection are its end, or stray."""
        return not self._poll.poll(0)

    def close(self) -> None:
        """Close the connection."""
        self._socket.close()

    def exchange(self, request: bytes, end: float, longest: int = LONGEST_BODY) -> HttpAnswer:
        """Send a request and read its answer, both by `end`. Of a body longer than `longest`, read
        the beginning.

        Raise Unanswered if the connection has ended, or ends before an answer received.
        """
        self._end, self._longest = end, longest
        try:
            self._set_timeout()
            self._socket.sendall(request)
            received = self._receive()
        except (ConnectionError, ssl.SSLEOFError) as problem:
            raise Unanswered(f"{type(problem).__name__} before an answer came") from problem
        if not received:
            raise Unanswered("the connection was closed before an answer came")
        if not self._ahead.startswith(START[: len(self._ahead)]):
            raise BadAnswer("it is not HTTP/1")
        for _ in range(MOST_INTERIM):
            http11, status, fields = _read_head(self._read_until(b"\r\n\r\n", LONGEST_HEAD))
            if status >= 200:
                body, whole = self._read_body(status, fields)
                stays = http11 and "close" not in fields.get("connection", "").lower()
                kept = stays and whole and not self._ahead
                return HttpAnswer(status, body, kept, fields.get("date", ""))
        raise BadAnswer("it has no end of interim answers")

    def _read_body(self, status: int, fields: Mapping[str, str]) -> tuple[bytes, bool]:
        """Read the body, or its beginning. Return it, and True if it is whole."""
        coding, length = fields.get("transfer-encoding"), fields.get("content-length")
        if status in WITHOUT_BODY:
            return b"", True
        if coding is not None:
            if coding.lower() != "chunked" or length is not None:
                raise BadAnswer("its length cannot be told")
            return self._read_chunks()
        if length is None:
            return self._read_rest(), False
        if not LENGTH.fullmatch(length):
            raise BadAnswer("its length is no number")
        size = int(length)
        return self._read_exactly(min(size, self._longest)), size <= self._longest

    def _read_chunks(self) -> tuple[bytes, bool]:
        body = b""
        while size := _read_size(self._read_until(b"\r\n", LONGEST_HEAD)):
            if len(body) + size > self._longest:
                return body + self._read_exactly(self._longest - len(body)), False
            body += self._read_exactly(size)
            if self._read_exactly(2) != b"\r\n":
                raise BadAnswer("a chunk does not end where it should")
        room = LONGEST_HEAD
        while trailer := self._read_until(b"\r\n", room):
            room -= len(trailer)
        return body, True

    def _read_rest(self) -> bytes:
        """Read until the connection ends, or until the body is long enough."""
        while len(self._ahead) < self._longest and self._receive():
            pass
        return bytes(self._ahead[: self._longest])

    def _read_exactly(self, count: int) -> bytes:
        while len(self._ahead) < count:
            self._need_more()
        return self._cut(count)

    def _read_until(self, mark: bytes, most: int) -> bytes:
        """Read up to the mark, and drop the mark."""
        while (at := self._ahead.find(mark)) < 0:
            if len(self._ahead) > most:
                break
            self._need_more()
        if not 0 <= at <= most:
            raise BadAnswer(f"a part of it is longer than {most} bytes")
        return self._cut(at + len(mark))[:at]

    def _cut(self, count: int) -> bytes:
        """Take a number of the bytes that were read."""
        taken = bytes(self._ahead[:count])
        del self._ahead[:count]
        return taken

    def _need_more(self) -> None:
        if not self._receive():
            raise BadAnswer("it ends in the middle")

    def _receive(self) -> bool:
        """Receive a part. Return False if the connection has ended."""
        self._set_timeout()
        part = self._socket.recv(PART)
        self._ahead += part
        return bool(part)

    def _set_timeout(self) -> None:
        """Set the timeout of the socket to the remaining time."""
        left = time_left(self._end)
        if abs(left - self._timeout) > SLACK:
            self._socket.settimeout(left)
            self._timeout = left


class Connections:
    """The connections to one host that are open and idle. The one that was used last is used next.

    A kept connection may have ended unseen, or may end as it is used. If it ends before the first
    byte of an answer, the request is sent again at once, on a new connection: a caller's request
    must be safe to repeat.
    """

    def __init__(self, host: str, port: int, *, secure: bool) -> None:
        self._place = host, port
        self._secure = secure
        self._idle: list[Channel] = []
        self._lock = threading.Lock()

    def exchange(
        self,
        request: bytes,
        end: float,
        *,
        connect_within: float | None = None,
        longest: int = LONGEST_BODY,
    ) -> HttpAnswer:
        """Send a request and read its answer, both by `end`."""
        kept = self._take()
        if kept is not None:
            with suppress(Unanswered):
                return self._call(kept, request, end, longest)
        by = end if connect_within is None else min(end, time.monotonic() + connect_within)
        return self._call(connect(*self._place, by, secure=self._secure), request, end, longest)

    def _call(self, channel: Channel, request: bytes, end: float, longest: int) -> HttpAnswer:
        try:
            answer = channel.exchange(request, end, longest)
        except BaseException:
            channel.close()
            raise
        if answer.kept:
            with self._lock:
                self._idle.append(channel)
        else:
            channel.close()
        return answer

    def _take(self) -> Channel | None:
        """Take the idle connection that was used last and is still open, or None."""
        while True:
            with self._lock:
                if not self._idle:
                    return None
                channel = self._idle.pop()
            if channel.silent():
                return channel
            channel.close()

    def close(self) -> None:
        """Close the idle connections."""
        with self._lock:
            idle, self._idle = self._idle, []
        for channel in idle:
            channel.close()


def post(path: str, fields: Mapping[str, str], body: bytes) -> bytes:
    """Return the bytes of a POST. A field may be any text; it must not become another one."""
    lines = [f"POST {path} HTTP/1.1", *(f"{name}: {value}" for name, value in fields.items())]
    lines.append(f"content-length: {len(body)}")
    head = "".join(lines)
    if " " in path or not head.isascii() or not head.isprintable():
        raise ValueError("the path or a header is not plain ASCII text, and was not sent")
    return "\r\n".join([*lines, "", ""]).encode() + body


def _read_head(head: bytes) -> tuple[bool, int, Mapping[str, str]]:
    """Return True for HTTP/1.1, then the status, then the fields by lower-case name."""
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

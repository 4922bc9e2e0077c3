"""Deliver through the dispatch API: http.client, on connections that outlive an invocation."""

import http.client
import io
import json
import socket
import ssl
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Final, Protocol
from urllib.parse import SplitResult, urlsplit

from duetick.core.wire import delivery_json
from duetick.domain.errors import ConfigurationError
from duetick.domain.identity import to_path
from duetick.domain.schedule import Occurrence
from duetick.ports import Delivery

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer, WriteableBuffer

LONGEST_ANSWER: Final = 4_096
UNAUTHORIZED: Final = 401


class Authorize(Protocol):
    """Headers for a call. `fresh` after a 401: the credentials may have been replaced."""

    def __call__(
        self, host: str, path: str, body: bytes, *, fresh: bool = False
    ) -> dict[str, str] | None:
        """The headers; None where fresh ones would be the same again."""


class Secrets(Protocol):
    """The live secrets, the newest first."""

    def __call__(self, *, fresh: bool = False) -> Sequence[str]:
        """`fresh` asks their keeper instead of memory."""


def bearer(secrets: Secrets) -> Authorize:
    """Authorize by the newest shared secret."""

    def authorize(
        host: str, path: str, body: bytes, *, fresh: bool = False
    ) -> dict[str, str] | None:
        del host, path, body
        before, live = secrets()[:1], secrets(fresh=fresh)
        if not live:
            raise ConfigurationError("Secret mode without a secret: set the dispatch secret.")
        if fresh and before == live[:1]:
            return None
        return {"authorization": f"Bearer {live[0]}"}

    return authorize


class HttpTransport:
    """`ports.Transport` over HTTP.

    A call is safe to repeat, even where it may have begun: to begin is one conditional write on
    the occurrence's fence, so of two calls with one fence the second is told that the first is
    under way, or what became of it. That is why a call on a kept connection that turns out to be
    closed is made again at once, and why the end of the deadline loses nothing.
    """

    def __init__(self, api_url: str, authorize: Authorize, *, connect_to: str = "") -> None:
        """`connect_to` is the address to connect to where the API's own name does not lead there,
        such as an endpoint of a private network: https://vpce-….amazonaws.com.
        """
        api, door = _split(api_url), _split(connect_to or api_url)
        self._secure = door.scheme == "https"
        self._host = door.hostname or ""
        self._port = door.port
        self._netloc = api.netloc
        self._base = api.path.rstrip("/")
        self._authorize = authorize
        self._idle: list[Line] = []
        self._lock = threading.Lock()

    def deliver(self, occurrence: Occurrence, *, timeout: float) -> Delivery:
        """See `Transport`. The deadline is for the whole exchange, however slowly it drips."""
        end = time.monotonic() + timeout
        path = f"{self._base}/api/flows/{occurrence.flow}/schedules"
        path = f"{path}/{to_path(occurrence.schedule_id)}/dispatch"
        body = json.dumps(delivery_json(occurrence)).encode()
        try:
            answer = self._post(path, body, self._authorize(self._netloc, path, body), end)
            if answer.status == UNAUTHORIZED:
                fresh = self._authorize(self._netloc, path, body, fresh=True)
                return self._post(path, body, fresh, end) if fresh else answer
        except Exception as error:
            return Delivery(0, f"{type(error).__name__}: {error}")
        return answer

    def close(self) -> None:
        """See `Transport`."""
        with self._lock:
            idle, self._idle = self._idle, []
        for line in idle:
            line.connection.close()

    def _post(self, path: str, body: bytes, given: dict[str, str] | None, end: float) -> Delivery:
        headers = {"host": self._netloc, "content-type": "application/json", **(given or {})}
        kept = self._take()
        if kept is not None:
            try:
                return self._call(kept, path, body, headers, end)
            except (ConnectionError, http.client.RemoteDisconnected):
                kept.connection.close()
        return self._call(self._connect(end), path, body, headers, end)

    def _call(
        self,
        line: "Line",
        path: str,
        body: bytes,
        headers: dict[str, str],
        end: float,
    ) -> Delivery:
        connection = line.connection
        try:
            line.wire.until(end)
            connection.request("POST", path, body, headers)
            answer = connection.getresponse()
            detail = answer.read(LONGEST_ANSWER)
        except BaseException:
            connection.close()
            raise
        if answer.isclosed() and not answer.will_close:
            self._keep(line)
        else:
            connection.close()
        return Delivery(answer.status, detail.decode(errors="replace"))

    def _connect(self, end: float) -> "Line":
        made = _connection(self._host, self._port, end, secure=self._secure)
        try:
            made.connect()
        except BaseException:
            made.close()
            raise
        made.sock = wire = Deadlined(made.sock, end)
        return Line(made, wire)

    def _take(self) -> "Line | None":
        with self._lock:
            return self._idle.pop() if self._idle else None

    def _keep(self, line: "Line") -> None:
        with self._lock:
            self._idle.append(line)


class Deadlined:
    """A socket as http.client uses it. Each read may take what is left until `end`, no more."""

    def __init__(self, inner: socket.socket, end: float) -> None:
        self._inner = inner
        self._end = end

    def until(self, end: float) -> None:
        """A new deadline."""
        self._end = end
        self._inner.settimeout(_left(end))

    def sendall(self, data: "ReadableBuffer") -> None:
        """All of it, or the deadline."""
        self._inner.sendall(data)

    def recv_into(self, buffer: "WriteableBuffer") -> int:
        """What has arrived by the deadline."""
        self._inner.settimeout(_left(self._end))
        return self._inner.recv_into(buffer)

    def makefile(self, _mode: str) -> io.BufferedReader:
        """The reading end."""
        return io.BufferedReader(_Reader(self))

    def close(self) -> None:
        """Hang up."""
        self._inner.close()


@dataclass(frozen=True, slots=True)
class Line:
    """A connection and the socket below it."""

    connection: http.client.HTTPConnection
    wire: Deadlined


class _Reader(io.RawIOBase):
    def __init__(self, source: Deadlined) -> None:
        self._source = source

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: "WriteableBuffer", /) -> int:
        return self._source.recv_into(buffer)


def _left(end: float) -> float:
    left = end - time.monotonic()
    if left <= 0:
        raise TimeoutError("the deadline of the delivery is over")
    return left


def _connection(
    host: str, port: int | None, end: float, *, secure: bool
) -> http.client.HTTPConnection:
    if secure:
        return http.client.HTTPSConnection(host, port, timeout=_left(end), context=_tls())
    return http.client.HTTPConnection(host, port, timeout=_left(end))


def _split(url: str) -> SplitResult:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ConfigurationError(f"The API's address is no http(s) URL: {url[:80]!r}.")
    return parts


@cache
def _tls() -> ssl.SSLContext:
    """One context for all: making it costs 15 ms, and TLS sessions are resumed through it."""
    return ssl.create_default_context()

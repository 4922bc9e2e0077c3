"""Deliver through the dispatch API, on connections that outlive an invocation."""

import json
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Final, Protocol, TypeAlias
from urllib.parse import SplitResult, urlsplit

from duetick.core.wire import delivery_json
from duetick.domain.errors import ConfigurationError
from duetick.domain.identity import to_path
from duetick.domain.schedule import Occurrence
from duetick.ports import Delivery
from duetick.transports.exchange import Line, Unanswered, connect

UNAUTHORIZED: Final = 401
PORTS: Final = {"http": 80, "https": 443}


Headers: TypeAlias = dict[str, str]


class Authorize(Protocol):
    """Headers for a call. After a 401 they may have been replaced."""

    def __call__(
        self, host: str, path: str, body: bytes, *, refused: Headers | None = None
    ) -> Headers | None:
        """The headers; None where there are none but those that were refused."""


class Secrets(Protocol):
    """The live secrets, the newest first."""

    def __call__(self, *, fresh: bool = False) -> Sequence[str]:
        """`fresh` asks their keeper instead of memory."""


def bearer(secrets: Secrets) -> Authorize:
    """Authorize by the newest shared secret."""

    def authorize(
        host: str, path: str, body: bytes, *, refused: Headers | None = None
    ) -> Headers | None:
        del host, path, body
        known = _by(secrets())
        # Another thread may have asked since, whose call was refused as well.
        live = _by(secrets(fresh=True)) if known == refused else known
        return None if live == refused else live

    return authorize


def _by(live: Sequence[str]) -> Headers:
    if not live:
        raise ConfigurationError("Secret mode without a secret: set the dispatch secret.")
    return {"authorization": f"Bearer {live[0]}"}


class HttpTransport:
    """`ports.Transport` over HTTP.

    A kept connection may have ended unseen, or end as it is used. Where it does so before a byte
    of an answer, the call is made again at once, on a new one: mostly nobody has read it, and where
    somebody has, the second call begins nothing. To begin is one conditional write on the
    occurrence's fence, so of two calls with one fence the second is told that the first is under
    way, or what became of it. Whatever ends otherwise was taken, and is not repeated: the tick
    gives back what never began.
    """

    def __init__(self, api_url: str, authorize: Authorize, *, connect_to: str = "") -> None:
        """`connect_to` is the address to connect to where the API's own name does not lead there,
        such as an endpoint of a private network: https://vpce-….amazonaws.com.
        """
        api, door = _split(api_url), _split(connect_to or api_url)
        self._secure = door.scheme == "https"
        self._host = door.hostname or ""
        self._port = door.port or PORTS[door.scheme]
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
            headers = self._authorize(self._netloc, path, body)
            answer = self._post(path, body, headers, end)
            if answer.status == UNAUTHORIZED:
                fresh = self._authorize(self._netloc, path, body, refused=headers)
                return self._post(path, body, fresh, end) if fresh else answer
        except Exception as error:
            return Delivery(0, f"{type(error).__name__}: {error}")
        return answer

    def close(self) -> None:
        """See `Transport`."""
        with self._lock:
            idle, self._idle = self._idle, []
        for line in idle:
            line.close()

    def _post(self, path: str, body: bytes, given: Headers | None, end: float) -> Delivery:
        headers = {"host": self._netloc, "content-type": "application/json", **(given or {})}
        request = _request(path, headers, body)
        kept = self._take()
        if kept is not None:
            with suppress(Unanswered):
                return self._call(kept, request, end)
        line = connect(self._host, self._port, end, secure=self._secure)
        return self._call(line, request, end)

    def _call(self, line: Line, request: bytes, end: float) -> Delivery:
        try:
            answer = line.exchange(request, end)
        except BaseException:
            line.close()
            raise
        if answer.kept:
            with self._lock:
                self._idle.append(line)
        else:
            line.close()
        return Delivery(answer.status, answer.body.decode(errors="replace"))

    def _take(self) -> Line | None:
        """The one that was used last, of those that are still good."""
        while True:
            with self._lock:
                if not self._idle:
                    return None
                line = self._idle.pop()
            if line.silent():
                return line
            line.close()


def _request(path: str, headers: Mapping[str, str], body: bytes) -> bytes:
    """A POST as it travels. A flow's name is any text in an index, and must not make a header."""
    lines = [f"POST {path} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items())]
    lines.append(f"content-length: {len(body)}")
    head = "".join(lines)
    if " " in path or not head.isascii() or not head.isprintable():
        raise ValueError("the path or a header is not plain ASCII text, and was not sent")
    return "\r\n".join([*lines, "", ""]).encode() + body


def _split(url: str) -> SplitResult:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ConfigurationError(f"The API's address is no http(s) URL: {url[:80]!r}.")
    return parts

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
from duetick.domain.identity import NO_FLOW, to_path
from duetick.ports import Deliverable, Delivered
from duetick.transports.exchange import Channel, HttpAnswer, Unanswered, connect

UNAUTHORIZED: Final = 401
PORTS: Final = {"http": 80, "https": 443}


Headers: TypeAlias = dict[str, str]


class CallSigner(Protocol):
    """A function that returns the headers that authorize a call."""

    def __call__(
        self, host: str, path: str, body: bytes, *, refused: Headers | None = None
    ) -> Headers | None:
        """Return the headers.

        After a 401, `refused` has the headers of that call. Return None if there are no others.
        """


class LiveSecrets(Protocol):
    """A function that returns the live secrets, the newest first."""

    def __call__(self, *, fresh: bool = False) -> Sequence[str]:
        """Return the secrets. If `fresh`, ask the place that keeps them, not memory."""


def bearer(secrets: LiveSecrets) -> CallSigner:
    """Return a signer that sends the newest shared secret."""

    def authorize(
        host: str, path: str, body: bytes, *, refused: Headers | None = None
    ) -> Headers | None:
        del host, path, body
        known = _headers_of(secrets())
        # Another thread, whose call was refused too, may have fetched new secrets.
        live = _headers_of(secrets(fresh=True)) if known == refused else known
        return None if live == refused else live

    return authorize


def _headers_of(live: Sequence[str]) -> Headers:
    if not live:
        raise ConfigurationError("Secret mode without a secret: set the dispatch secret.")
    return {"authorization": f"Bearer {live[0]}"}


class Poster:
    """A host that takes POSTs, and the idle connections to it.

    A kept connection may have ended unseen, or may end as it is used. If it ends before the first
    byte of an answer, the POST is sent again at once, on a new connection: whoever takes POSTs must
    bear a repeat. A POST that fails in any other way counts as read, and is not repeated.
    """

    def __init__(self, door: SplitResult) -> None:
        self._secure = door.scheme == "https"
        self._host = door.hostname or ""
        self._port = door.port or PORTS[door.scheme]
        self._idle: list[Channel] = []
        self._lock = threading.Lock()

    def post(
        self, netloc: str, path: str, body: bytes, headers: Mapping[str, str], end: float
    ) -> HttpAnswer:
        """Send a POST, and return its answer by `end`. The headers have the content's type."""
        request = _request(path, {"host": netloc, **headers}, body)
        kept = self._take()
        if kept is not None:
            with suppress(Unanswered):
                return self._call(kept, request, end)
        channel = connect(self._host, self._port, end, secure=self._secure)
        return self._call(channel, request, end)

    def close(self) -> None:
        """Close the idle connections."""
        with self._lock:
            idle, self._idle = self._idle, []
        for channel in idle:
            channel.close()

    def _call(self, channel: Channel, request: bytes, end: float) -> HttpAnswer:
        try:
            answer = channel.exchange(request, end)
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


class HttpTransport:
    """`ports.Transport` over HTTP.

    If a kept connection ends before the first byte of an answer, the call is made again. Mostly
    dispatch has not read the first call. If it has, the second call begins nothing: to begin is one
    conditional write on the occurrence's fence, so the second call learns that the first is under
    way, or how it ended. A call that fails in any other way is not repeated: the tick releases an
    occurrence that never began.
    """

    def __init__(self, api_url: str, authorize: CallSigner, *, connect_to: str = "") -> None:
        """Prepare calls of the API at `api_url`.

        If the API's own name does not lead to it, `connect_to` is the address to connect to, such
        as an endpoint of a private network: https://vpce-….amazonaws.com.
        """
        api = split_url(api_url)
        self._poster = Poster(split_url(connect_to or api_url))
        self._netloc = api.netloc
        self._base = api.path.rstrip("/")
        self._authorize = authorize

    def deliver(self, occurrence: Deliverable, *, timeout: float) -> Delivered:
        """See `Transport`. The timeout covers the whole exchange, even if the answer drips in."""
        end = time.monotonic() + timeout
        path = f"{self._base}/api/flows/{occurrence.flow or NO_FLOW}/schedules"
        path = f"{path}/{to_path(occurrence.schedule_id)}/dispatch"
        body = json.dumps(delivery_json(occurrence)).encode()
        try:
            headers = self._authorize(self._netloc, path, body)
            answer = self._post(path, body, headers, end)
            if answer.status == UNAUTHORIZED:
                fresh = self._authorize(self._netloc, path, body, refused=headers)
                return self._post(path, body, fresh, end) if fresh else answer
        except Exception as error:
            return Delivered(0, f"{type(error).__name__}: {error}")
        return answer

    def close(self) -> None:
        """See `Transport`."""
        self._poster.close()

    def _post(self, path: str, body: bytes, auth: Headers | None, end: float) -> Delivered:
        headers = {"content-type": "application/json", **(auth or {})}
        answer = self._poster.post(self._netloc, path, body, headers, end)
        return Delivered(answer.status, answer.body.decode(errors="replace"))


def _request(path: str, headers: Mapping[str, str], body: bytes) -> bytes:
    """Return the bytes of a POST. A flow's name may be any text; it must not become a header."""
    lines = [f"POST {path} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items())]
    lines.append(f"content-length: {len(body)}")
    head = "".join(lines)
    if " " in path or not head.isascii() or not head.isprintable():
        raise ValueError("the path or a header is not plain ASCII text, and was not sent")
    return "\r\n".join([*lines, "", ""]).encode() + body


def split_url(url: str) -> SplitResult:
    """Split the address of the API. Raise ConfigurationError if it is no http(s) URL."""
    with suppress(ValueError):  # such as a port above 65535, or half of an IPv6 address
        parts = urlsplit(url)
        if parts.scheme in PORTS and parts.hostname and parts.port != 0:
            return parts
    raise ConfigurationError(
        f"The API's address is no http(s) URL with a port from 1 to 65535: {url[:80]!r}."
    )

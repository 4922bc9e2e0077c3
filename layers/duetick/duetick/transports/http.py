"""Deliver through the dispatch API: http.client, on connections that outlive an invocation."""

import http.client
import json
import ssl
import threading
from collections.abc import Callable
from functools import cache
from typing import Final, TypeAlias
from urllib.parse import SplitResult, urlsplit

from duetick.core.wire import delivery_json
from duetick.domain.errors import ConfigurationError
from duetick.domain.identity import to_path
from duetick.domain.schedule import Occurrence
from duetick.ports import Delivery

Authorize: TypeAlias = Callable[[str, str, bytes], dict[str, str]]
"""Headers for a call: (host, path, body)."""

LONGEST_ANSWER: Final = 4_096


def bearer(secret: str) -> Authorize:
    """Authorize by a shared secret."""
    headers = {"authorization": f"Bearer {secret}"}
    return lambda _host, _path, _body: headers


class HttpTransport:
    """`ports.Transport` over HTTP. A call is safe to repeat: its fence lets it begin once."""

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
        self._idle: list[http.client.HTTPConnection] = []
        self._lock = threading.Lock()

    def deliver(self, occurrence: Occurrence, *, timeout: float) -> Delivery:
        """See `Transport`."""
        path = f"{self._base}/api/flows/{occurrence.flow}/schedules"
        path = f"{path}/{to_path(occurrence.schedule_id)}/dispatch"
        body = json.dumps(delivery_json(occurrence)).encode()
        try:
            return self._post(path, body, timeout)
        except (OSError, http.client.HTTPException) as error:
            return Delivery(0, f"{type(error).__name__}: {error}")

    def close(self) -> None:
        """See `Transport`."""
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def _post(self, path: str, body: bytes, timeout: float) -> Delivery:
        kept = self._take()
        if kept is not None:
            try:
                return self._call(kept, path, body, timeout)
            except (ConnectionError, http.client.RemoteDisconnected):
                kept.close()
        return self._call(self._connect(timeout), path, body, timeout)

    def _call(
        self, connection: http.client.HTTPConnection, path: str, body: bytes, timeout: float
    ) -> Delivery:
        headers = {"host": self._netloc, "content-type": "application/json"}
        headers |= self._authorize(self._netloc, path, body)
        try:
            if connection.sock is not None:
                connection.sock.settimeout(timeout)
            connection.request("POST", path, body, headers)
            answer = connection.getresponse()
            detail = answer.read(LONGEST_ANSWER)
        except BaseException:
            connection.close()
            raise
        if answer.isclosed() and not answer.will_close:
            self._keep(connection)
        else:
            connection.close()
        return Delivery(answer.status, detail.decode(errors="replace"))

    def _connect(self, timeout: float) -> http.client.HTTPConnection:
        if self._secure:
            return http.client.HTTPSConnection(
                self._host, self._port, timeout=timeout, context=_tls()
            )
        return http.client.HTTPConnection(self._host, self._port, timeout=timeout)

    def _take(self) -> http.client.HTTPConnection | None:
        with self._lock:
            return self._idle.pop() if self._idle else None

    def _keep(self, connection: http.client.HTTPConnection) -> None:
        with self._lock:
            self._idle.append(connection)


def _split(url: str) -> SplitResult:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ConfigurationError(f"The API's address is no http(s) URL: {url[:80]!r}.")
    return parts


@cache
def _tls() -> ssl.SSLContext:
    """One context for all: making it costs 15 ms, and TLS sessions are resumed through it."""
    return ssl.create_default_context()

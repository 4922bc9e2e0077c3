"""Deliver through the dispatch API, on connections that outlive an invocation."""

import json
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Final, Protocol, TypeAlias
from urllib.parse import SplitResult, urlsplit

from duetick.core.wire import delivery_json
from duetick.domain.errors import ConfigurationError
from duetick.domain.identity import NO_FLOW, to_path
from duetick.network.exchange import Connections, post
from duetick.ports import Deliverable, Delivered

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


class HttpTransport:
    """`ports.Transport` over HTTP.

    If a kept connection ends before the first byte of an answer, the call is made again at once, on
    a new connection. Mostly dispatch has not read the first call. If it has, the second call begins
    nothing: to begin is one conditional write on the occurrence's fence, so the second call learns
    that the first is under way, or how it ended. A call that fails in any other way counts as read,
    and is not repeated: the tick releases an occurrence that never began.
    """

    def __init__(self, api_url: str, authorize: CallSigner, *, connect_to: str = "") -> None:
        """Prepare calls of the API at `api_url`.

        If the API's own name does not lead to it, `connect_to` is the address to connect to, such
        as an endpoint of a private network: https://vpce-….amazonaws.com.
        """
        api, door = split_url(api_url), split_url(connect_to or api_url)
        self._connections = Connections(
            door.hostname or "", door.port or PORTS[door.scheme], secure=door.scheme == "https"
        )
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
        self._connections.close()

    def _post(self, path: str, body: bytes, auth: Headers | None, end: float) -> Delivered:
        headers = {"host": self._netloc, "content-type": "application/json", **(auth or {})}
        answer = self._connections.exchange(post(path, headers, body), end)
        return Delivered(answer.status, answer.body.decode(errors="replace"))


def split_url(url: str) -> SplitResult:
    """Split the address of the API. Raise ConfigurationError if it is no http(s) URL."""
    with suppress(ValueError):  # such as a port above 65535, or half of an IPv6 address
        parts = urlsplit(url)
        if parts.scheme in PORTS and parts.hostname and parts.port != 0:
            return parts
    raise ConfigurationError(
        f"The API's address is no http(s) URL with a port from 1 to 65535: {url[:80]!r}."
    )

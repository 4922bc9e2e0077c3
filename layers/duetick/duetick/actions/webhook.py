"""A signed POST to another party's HTTPS server. It must not open a way into your own network."""

import hmac
import http.client
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from typing import Final
from urllib.parse import SplitResult, urljoin, urlsplit

from duetick.actions.addresses import Resolve, is_allowed, is_public, resolve, resolve_within
from duetick.actions.messages import TargetFailed, as_text, identity
from duetick.core.context import Context
from duetick.domain.errors import ConfigurationError
from duetick.domain.schedule import Json

LARGEST_BODY: Final = 256 * 1024
LARGEST_ANSWER: Final = 64 * 1024
REDIRECTS: Final = frozenset({307, 308})
HTTPS: Final = 443
UNREADABLE: Final = "the address cannot be read; only https:// ones are called."


@cache
def _tls() -> ssl.SSLContext:
    return ssl.create_default_context()


@dataclass(frozen=True, slots=True)
class Network:
    """The network of a webhook: its resolver, the addresses that it admits, and its TLS context.

    The defaults are right for a deployment. A test may replace them.
    """

    resolve: Resolve = resolve
    admits: Callable[[str], bool] = is_public
    context: Callable[[], ssl.SSLContext] = _tls
    port: int = HTTPS


@dataclass(frozen=True, slots=True)
class Webhook:
    """POST the message to `url`, whose host must be one of `hosts`.

    The header `Duetick-Signature` is `t=…,v1=…`: the Unix time, and the HMAC-SHA256 of `<t>.<body>`
    with the secret. Check both, and refuse times more than five minutes old. At most so many
    `redirects` are followed, each checked like the first address. `timeout` covers everything from
    the name's lookup to the last redirect, even if an answer drips in.
    """

    url: str
    secret: Callable[[], str]
    hosts: tuple[str, ...]
    timeout: float = 10.0
    redirects: int = 0
    network: Network = field(default_factory=Network)

    def __post_init__(self) -> None:
        if self.timeout <= 0 or self.redirects < 0:
            raise ConfigurationError(
                "Webhook: timeout is more than 0 seconds, redirects 0 or more."
            )
        try:
            self._split_url(self.url)
        except TargetFailed as problem:
            raise ConfigurationError(f"Webhook: {problem}") from None

    def __call__(self, given: Json, ctx: Context) -> None:
        """Send the message. Raise TargetFailed for any answer but a 2xx."""
        body = as_text(given, ctx).encode()
        if len(body) > LARGEST_BODY:
            raise TargetFailed(f"The message has {len(body)} bytes; {LARGEST_BODY} are the most.")
        url, end = self.url, time.monotonic() + self.timeout
        for _ in range(self.redirects + 1):
            status, location = self._post(url, body, ctx, end)
            if 200 <= status < 300:
                return
            if status not in REDIRECTS or not location or not self.redirects:
                raise TargetFailed(f"{urlsplit(url).hostname} answered {status}, not 2xx.")
            url = _join_url(url, location)
        raise TargetFailed(f"More than {self.redirects} redirects.")

    def _post(self, url: str, body: bytes, ctx: Context, end: float) -> tuple[int, str | None]:
        parts = self._split_url(url)
        address = self._resolve(parts, _time_left(end))
        connection = _Pinned(parts.hostname or "", address, self.network, _time_left(end))
        path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        headers = self._headers(body, ctx)
        try:
            with connection.cut_after(_time_left(end)):
                connection.request("POST", path, body, headers)
                answer = connection.getresponse()
                answer.read(LARGEST_ANSWER)
                if connection.late:  # a cut answer may look complete
                    raise TimeoutError
        except (OSError, http.client.HTTPException, ValueError) as problem:
            why = "TimeoutError" if connection.late else type(problem).__name__
            raise TargetFailed(f"{parts.hostname}: {why}.") from problem
        finally:
            connection.close()
        return answer.status, answer.getheader("location")

    def _headers(self, body: bytes, ctx: Context) -> dict[str, str]:
        secret = self.secret()
        if not secret:
            raise TargetFailed("The webhook has no secret to sign with; configure one.")
        at = str(ctx.dispatched_at // 1_000)
        signature = hmac.digest(secret.encode(), f"{at}.".encode() + body, "sha256").hex()
        return {
            "content-type": "application/json",
            "user-agent": "duetick",
            "duetick-signature": f"t={at},v1={signature}",
            "idempotency-key": identity(ctx),
        }

    def _split_url(self, url: str) -> SplitResult:
        """Split an address. Raise TargetFailed if it may not be called."""
        try:
            parts = urlsplit(url)
            host, port = parts.hostname or "", parts.port
        except ValueError:
            raise TargetFailed(UNREADABLE) from None
        if parts.scheme != "https" or not host:
            raise TargetFailed("only https:// addresses are called.")
        if parts.username or parts.password or port not in (None, HTTPS):
            raise TargetFailed("an address may name neither a user nor a port.")
        if not is_allowed(host, self.hosts):
            raise TargetFailed(f"{host} is not one of the allowed hosts ({', '.join(self.hosts)}).")
        return parts

    def _resolve(self, parts: SplitResult, seconds: float) -> str:
        """Resolve the host. Each of its addresses must be admitted, so that a second look cannot
        lead elsewhere.
        """
        host = parts.hostname or ""
        found = resolve_within(seconds, self.network.resolve, host, self.network.port)
        if not found or not all(self.network.admits(address) for address in found):
            raise TargetFailed(f"{host} leads to an address that is not public.")
        return found[0]


def _time_left(end: float) -> float:
    """Return the seconds until `end`, at least a moment: a timeout must be more than 0."""
    return max(end - time.monotonic(), 0.001)


def _join_url(url: str, location: str) -> str:
    try:
        return urljoin(url, location)
    except ValueError:
        raise TargetFailed(UNREADABLE) from None


class _Pinned(http.client.HTTPSConnection):
    """A connection to the address that was checked, with TLS for the name."""

    def __init__(self, host: str, address: str, network: Network, seconds: float) -> None:
        super().__init__(host, network.port, timeout=seconds)
        self._address = address
        self._tls = network.context()
        self.late = False

    def connect(self) -> None:
        """Connect to the address: the name may lead elsewhere by now."""
        plain = socket.create_connection((self._address, self.port), self.timeout)
        self.sock = self._tls.wrap_socket(
            plain, server_hostname=self.host, do_handshake_on_connect=False
        )
        if self.late:  # the timer ended before there was a socket to cut
            raise TimeoutError
        self.sock.do_handshake()

    @contextmanager
    def cut_after(self, seconds: float) -> Iterator[None]:
        """Cut the connection after a number of seconds: a socket's timeout restarts with each
        byte.
        """
        timer = threading.Timer(seconds, self._cut)
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()

    def _cut(self) -> None:
        """Shut down the plain socket: to shut down TLS would break the thread that uses it."""
        self.late = True
        sock = self.sock  # another thread may close and drop it meanwhile
        if sock:
            with suppress(OSError):
                socket.socket.shutdown(sock, socket.SHUT_RDWR)

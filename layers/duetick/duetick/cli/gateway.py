"""API Gateway's part in the local stack: it turns HTTP into REST events for the handlers."""

import errno
import json
import logging
import sys
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final, TypeAlias
from urllib.parse import parse_qs, urlsplit

from duetick.api.routes import AGENTS, OF_USERS, OWN
from duetick.cli.context import LocalContext
from duetick.cli.door import PageDoor, Shown, Visit
from duetick.cli.problem import CliProblem
from duetick.cli.tokens import TOKEN_HOURS
from duetick.runtime import gateway

Handler: TypeAlias = Callable[[dict[str, Any], LocalContext], Mapping[str, Any]]
Authorizer: TypeAlias = Callable[[str], dict[str, Any] | None]
PlainAnswer: TypeAlias = tuple[int, str, str]
"""A status, a code and a message."""

LOOPBACK: Final = "127.0.0.1"
LARGEST_BODY: Final = 10 * 1024 * 1024
CLOSES_WITHIN: Final = 3.0
"""The seconds that a server which closes gives to the calls under way."""

BROWSERS: Final = tuple(OWN + path for path in (*OF_USERS, AGENTS))

logger = logging.getLogger("duetick.local")

UNAUTHORIZED: Final = (
    401,
    "unauthorized",
    "The token is missing, wrong or expired. One of the local stack holds for "
    f"{TOKEN_HOURS} hours: `duetick token` prints another, "
    "and so does the stack if you start it again.",
)


@dataclass(frozen=True, slots=True)
class LocalRoute:
    """The paths below a prefix, their handler, and the check of its callers. If a path fits several
    routes, the one that names more of it counts.

    `authorize` gets the Authorization header. It returns the caller's part of the event's
    `requestContext`, or None; `refusal` then returns the answer.
    """

    prefix: str
    handler: Handler
    authorize: Authorizer
    refusal: Callable[[str], PlainAnswer] = lambda _header: UNAUTHORIZED
    suffix: str = ""

    def fits(self, path: str) -> bool:
        """Return True if the path is below the prefix, and ends with the suffix."""
        rest = path.removeprefix(self.prefix)
        return path.startswith(self.prefix) and rest.endswith(self.suffix)

    @property
    def named(self) -> int:
        """The number of characters of a path that the route names."""
        return len(self.prefix) + len(self.suffix)


class LocalServer(ThreadingHTTPServer):
    """An HTTP server on the loopback interface."""

    daemon_threads = True
    request_queue_size = 256

    def handle_error(self, request: object, client_address: object) -> None:
        """Log the error, unless the client hung up."""
        del request, client_address
        if not isinstance(sys.exception(), ConnectionError):
            logger.exception("a connection failed")

    def __init__(self, port: int, routes: list[LocalRoute]) -> None:
        """Listen on the port. If `origin` is set later, a web page of that origin may call."""
        self._calls = threading.Condition()
        self._under_way = 0
        self._is_closed = False
        super().__init__((LOOPBACK, port), LocalRequest)
        self.routes = routes
        self.origin = ""
        self.door: PageDoor | None = None

    @property
    def url(self) -> str:
        """The address of the server."""
        return f"http://{LOOPBACK}:{self.server_port}"

    @contextmanager
    def call(self) -> Iterator[bool]:
        """Count a call as under way. Yield False if the server is closed: it answers none then."""
        with self._calls:
            is_open = not self._is_closed
            self._under_way += is_open
        try:
            yield is_open
        finally:
            with self._calls:
                self._under_way -= is_open
                self._calls.notify_all()

    def server_close(self) -> None:
        """Close, once the calls under way are answered, so that none meets a store that is closed.
        A connection that a client keeps open is answered no more.
        """
        super().server_close()
        with self._calls:
            self._is_closed = True
            self._calls.wait_for(lambda: not self._under_way, CLOSES_WITHIN)


class LocalRequest(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: LocalServer

    def _serve(self) -> None:
        with self.server.call() as is_open:
            if is_open:
                self._take()
            else:
                self.close_connection = True

    def _take(self) -> None:
        length = self.headers.get("content-length", "0")
        if not length.isdecimal() or "transfer-encoding" in self.headers:
            self._refuse(411, "length_required", "Send the body's length as Content-Length.")
            self.close_connection = True
            return
        if int(length) > LARGEST_BODY:
            self._refuse(413, "too_large", "A request may have 10 MB, as on API Gateway.")
            self.close_connection = True
            return
        self._answer(self.rfile.read(int(length)))

    def _answer(self, body: bytes) -> None:
        parts = urlsplit(self.path)
        door = self.server.door
        if door and door.takes(parts.path):
            headers = {name.lower(): value for name, value in self.headers.items()}
            visit = Visit(self.command, parts.path, parts.query, headers, body)
            self._send(*door.answer(visit))
            return
        fitting = (one for one in self.server.routes if one.fits(parts.path))
        route = max(fitting, key=lambda one: one.named, default=None)
        if route is None:
            self._refuse(404, "not_found", "No such route; layers/duetick/README.md lists them.")
            return
        granted = route.authorize(self.headers.get("authorization", ""))
        if granted is None:
            self._refuse(*route.refusal(self.headers.get("authorization", "")))
            return
        headers = dict(self.headers)
        visit = Visit(self.command, parts.path, parts.query, headers, body)
        try:
            self._send(*ask(route.handler, visit, granted))
        except HandlerFailed:
            self._refuse(502, "handler_failed", "The function raised; its log says why.")

    def _refuse(self, status: int, code: str, message: str) -> None:
        headers = {"content-type": "application/json"}
        if self.server.origin:
            headers["access-control-allow-origin"] = self.server.origin
        self._send(status, json.dumps({"error": code, "message": message}).encode(), headers)

    def _send(self, status: int, body: bytes, headers: Mapping[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in (headers or {"content-type": "application/json"}).items():
            self.send_header(name, value)
        if status not in (204, 304):
            self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _refuse_method(self) -> None:
        """Answer a method that no route has as API Gateway does."""
        self.close_connection = True
        self._send(403, b'{"message": "Missing Authentication Token"}')

    def _serve_preflight(self) -> None:
        """Answer a browser's preflight request. No route has it if no web page may call."""
        if self.server.origin and urlsplit(self.path).path.startswith(BROWSERS):
            self._send(204, b"", gateway.preflight_headers(self.server.origin))
        else:
            self._refuse_method()

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _serve
    do_OPTIONS = _serve_preflight

    def __getattr__(self, name: str) -> Callable[[], None]:
        if name.startswith("do_"):
            return self._refuse_method
        raise AttributeError(name)

    def log_request(self, code: object = "-", size: object = "-") -> None:
        """Log nothing: the handlers log each call."""


def _headers(answer: Mapping[str, Any]) -> dict[str, str]:
    """Return a handler's headers. A REST answer may have them under either name."""
    several = answer.get("multiValueHeaders") or {}
    joined = {name: ", ".join(values) for name, values in several.items()}
    return {**joined, **(answer.get("headers") or {})}


class HandlerFailed(Exception):
    """A handler that raised. Its log says why."""


def ask(handler: Handler, visit: Visit, granted: Mapping[str, Any]) -> Shown:
    """Return a handler's answer to a request of somebody. Raises HandlerFailed."""
    try:
        answer = handler(_event(visit, granted), LocalContext())
    except Exception as problem:
        logger.exception("a handler raised", extra={"path": visit.path})
        raise HandlerFailed from problem
    content = str(answer.get("body") or "").encode()
    return Shown(answer["statusCode"], content, _headers(answer))


def _event(visit: Visit, granted: Mapping[str, Any]) -> dict[str, Any]:
    parameters = parse_qs(visit.query, keep_blank_values=True)
    return {
        "resource": "/{proxy+}",
        "path": visit.path,
        "httpMethod": visit.method,
        "headers": dict(visit.headers),
        "multiValueHeaders": {name: [value] for name, value in visit.headers.items()},
        "queryStringParameters": {name: values[-1] for name, values in parameters.items()} or None,
        "multiValueQueryStringParameters": parameters or None,
        "pathParameters": {"proxy": visit.path.lstrip("/")},
        "stageVariables": None,
        "requestContext": {
            "requestId": str(uuid.uuid4()),
            "stage": "local",
            "path": visit.path,
            "httpMethod": visit.method,
            "authorizer": None,
            **granted,
            "identity": {"sourceIp": LOOPBACK, **granted.get("identity", {})},
        },
        "body": visit.body.decode(errors="surrogateescape") if visit.body else None,
        "isBase64Encoded": False,
    }


def listen(port: int, otherwise: str) -> LocalServer:
    """Return a server that listens on the port. If that cannot be, advise to say `otherwise`."""
    try:
        return LocalServer(port, [])
    except (OSError, OverflowError) as error:
        raise CliProblem(f"{_why_not(port, error)}hoose another: {otherwise}.") from error


def other_port(port: int) -> int:
    """Return a port to choose in place of one that cannot be used."""
    return port + 1 if 1_023 < port < 65_535 else 8_080


def _why_not(port: int, error: OSError | OverflowError) -> str:
    if isinstance(error, OverflowError):
        return f"There is no port {port}: the last one is 65535. C"
    if error.errno == errno.EADDRINUSE:
        return f"Port {port} is in use. Stop the program that listens there, or c"
    if error.errno == errno.EACCES:
        return f"You may not listen on port {port}: those below 1024 are the system's. C"
    return f"Port {port} cannot be used ({error.strerror}). C"

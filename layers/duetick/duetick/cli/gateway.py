"""API Gateway's part in the local stack: it turns HTTP into REST events for the handlers."""

import json
import logging
import sys
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final, TypeAlias
from urllib.parse import parse_qs, urlsplit

from duetick.api.routes import AGENTS, OF_USERS, OWN
from duetick.cli.context import LocalContext
from duetick.cli.tokens import TOKEN_HOURS
from duetick.runtime import gateway

Handler: TypeAlias = Callable[[dict[str, Any], LocalContext], Mapping[str, Any]]
Authorizer: TypeAlias = Callable[[str], dict[str, Any] | None]
PlainAnswer: TypeAlias = tuple[int, str, str]
"""A status, a code and a message."""

LARGEST_BODY: Final = 10 * 1024 * 1024
BROWSERS: Final = tuple(OWN + path for path in (*OF_USERS, AGENTS))

logger = logging.getLogger("duetick.local")

UNAUTHORIZED: Final = (
    401,
    "unauthorized",
    "The token is missing, wrong or expired. Each start of the local stack makes a new one, for "
    f"{TOKEN_HOURS} hours: copy the command that it printed last, or start it again.",
)


@dataclass(frozen=True, slots=True)
class LocalRoute:
    """The paths below a prefix, their handler, and the check of its callers. Of several routes
    that a path fits, the one that names more of it counts.

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
        """How much of a path the route names."""
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
        super().__init__(("127.0.0.1", port), LocalRequest)
        self.routes = routes
        self.origin = ""

    @property
    def url(self) -> str:
        """The address of the server."""
        return f"http://127.0.0.1:{self.server_port}"


class LocalRequest(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: LocalServer

    def _serve(self) -> None:
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
        fitting = (one for one in self.server.routes if one.fits(parts.path))
        route = max(fitting, key=lambda one: one.named, default=None)
        if route is None:
            self._refuse(404, "not_found", "No such route; layers/duetick/README.md lists them.")
            return
        granted = route.authorize(self.headers.get("authorization", ""))
        if granted is None:
            self._refuse(*route.refusal(self.headers.get("authorization", "")))
            return
        event = _event(self, parts.path, parts.query, body, granted)
        try:
            answer = route.handler(event, LocalContext())
        except Exception:
            logger.exception("a handler raised", extra={"path": parts.path})
            self._refuse(502, "handler_failed", "The function raised; its log says why.")
            return
        content = str(answer.get("body") or "").encode()
        self._send(answer["statusCode"], content, _headers(answer))

    def _refuse(self, status: int, code: str, message: str) -> None:
        headers = {"content-type": "application/json"}
        if self.server.origin:
            headers["access-control-allow-origin"] = self.server.origin
        self._send(status, json.dumps({"error": code, "message": message}).encode(), headers)

    def _send(self, status: int, body: bytes, headers: Mapping[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in (headers or {"content-type": "application/json"}).items():
            self.send_header(name, value)
        if status != 204:
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


def _event(
    request: LocalRequest, path: str, query: str, body: bytes, granted: dict[str, Any]
) -> dict[str, Any]:
    parameters = parse_qs(query, keep_blank_values=True)
    return {
        "resource": "/{proxy+}",
        "path": path,
        "httpMethod": request.command,
        "headers": dict(request.headers),
        "multiValueHeaders": {name: [value] for name, value in request.headers.items()},
        "queryStringParameters": {name: values[-1] for name, values in parameters.items()} or None,
        "multiValueQueryStringParameters": parameters or None,
        "pathParameters": {"proxy": path.lstrip("/")},
        "stageVariables": None,
        "requestContext": {
            "requestId": str(uuid.uuid4()),
            "stage": "local",
            "path": path,
            "httpMethod": request.command,
            "authorizer": None,
            **granted,
            "identity": {"sourceIp": request.client_address[0], **granted.get("identity", {})},
        },
        "body": body.decode(errors="surrogateescape") if body else None,
        "isBase64Encoded": False,
    }

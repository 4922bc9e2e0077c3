"""API Gateway's part in the local stack: HTTP in, REST events to the handlers, HTTP out."""

import json
import logging
import sys
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final, TypeAlias
from urllib.parse import parse_qs, urlsplit

from duetick.cli.context import LocalContext
from duetick.runtime.tokens import TOKEN_HOURS

Handler: TypeAlias = Callable[[dict[str, Any], LocalContext], Mapping[str, Any]]
Authorizer: TypeAlias = Callable[[str], dict[str, Any] | None]

LARGEST_BODY: Final = 10 * 1024 * 1024

logger = logging.getLogger("duetick.local")


@dataclass(frozen=True, slots=True)
class Route:
    """Paths below a prefix, the handler behind them, and who may call it.

    The authorizer gets the Authorization header and gives the event's `authorizer`, or None.
    """

    prefix: str
    handler: Handler
    authorize: Authorizer


class LocalServer(ThreadingHTTPServer):
    """An HTTP server on the loopback interface."""

    daemon_threads = True
    request_queue_size = 256

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that hung up is no news; anything else is."""
        del request, client_address
        if not isinstance(sys.exception(), ConnectionError):
            logger.exception("a connection failed")

    def __init__(self, port: int, routes: list[Route]) -> None:
        """A web page of `origin`, where one is named, may call it."""
        super().__init__(("127.0.0.1", port), LocalRequest)
        self.routes = routes
        self.origin = ""

    @property
    def url(self) -> str:
        """Where it listens."""
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
        route = next((r for r in self.server.routes if parts.path.startswith(r.prefix)), None)
        if route is None:
            self._refuse(404, "not_found", "No such route; the README lists them.")
            return
        asks = self.command == "OPTIONS"
        granted = {} if asks else route.authorize(self.headers.get("authorization", ""))
        if granted is None:
            self._refuse(
                401,
                "unauthorized",
                "The token is missing, wrong or expired. Each start of the local stack makes a new "
                f"one, for {TOKEN_HOURS} hours: copy the command that it printed last, or start it "
                "again.",
            )
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

    def _unrouted(self) -> None:
        """What API Gateway says to a method that no route has."""
        self.close_connection = True
        self._send(403, b'{"message": "Missing Authentication Token"}')

    def _serve_a_browser(self) -> None:
        """A question that carries no token; no route has it where no web page may call."""
        if self.server.origin:
            self._serve()
        else:
            self._unrouted()

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _serve
    do_OPTIONS = _serve_a_browser

    def __getattr__(self, name: str) -> Callable[[], None]:
        if name.startswith("do_"):
            return self._unrouted
        raise AttributeError(name)

    def log_request(self, code: object = "-", size: object = "-") -> None:
        """The handlers log; a second line for each call would say less."""


def _headers(answer: Mapping[str, Any]) -> dict[str, str]:
    """A handler's headers; a REST answer may have them under either name."""
    several = answer.get("multiValueHeaders") or {}
    joined = {name: ", ".join(values) for name, values in several.items()}
    return {**joined, **(answer.get("headers") or {})}


def _event(
    request: LocalRequest, path: str, query: str, body: bytes, granted: dict[str, Any]
) -> dict[str, Any]:
    given = parse_qs(query, keep_blank_values=True)
    return {
        "resource": "/{proxy+}",
        "path": path,
        "httpMethod": request.command,
        "headers": dict(request.headers),
        "multiValueHeaders": {name: [value] for name, value in request.headers.items()},
        "queryStringParameters": {name: values[-1] for name, values in given.items()} or None,
        "multiValueQueryStringParameters": given or None,
        "pathParameters": {"proxy": path.lstrip("/")},
        "stageVariables": None,
        "requestContext": {
            "requestId": str(uuid.uuid4()),
            "stage": "local",
            "path": path,
            "httpMethod": request.command,
            "identity": {"sourceIp": request.client_address[0]},
            "authorizer": granted,
        },
        "body": body.decode(errors="surrogateescape") if body else None,
        "isBase64Encoded": False,
    }

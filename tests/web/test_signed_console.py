"""The console of a deployed stack: each call is signed, and nothing else passes in or out."""

import json
import socket
from collections.abc import Iterator
from contextlib import closing, suppress
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from botocore.session import get_session
from duetick.cli.console import SENT, SignedApi, serve
from duetick.cli.deployed import Deployed
from duetick.cli.door import CONSOLE, PROOF
from duetick.cli.gateway import LocalServer

from tests.lab.serving import serve_in_thread

ANSWER = {
    "content-type": "application/json",
    "etag": '"3"',
    "retry-after": "7",
    "set-cookie": "stolen=1",
    "access-control-allow-origin": "*",
    "x-amzn-trace-id": "1",
}


class Api(ThreadingHTTPServer):
    """An API that remembers its calls."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Call)
        self.calls: list[tuple[str, str, dict[str, str], bytes]] = []
        self.connections = 0

    @property
    def url(self) -> str:
        """Its address, as a stack's output has it."""
        return f"http://127.0.0.1:{self.server_port}/v1"

    def get_request(self) -> tuple[socket.socket, Any]:
        self.connections += 1
        self._last, address = super().get_request()
        return self._last, address

    def hang_up(self) -> None:
        """End the last connection, as an idle one is ended."""
        self._last.shutdown(socket.SHUT_RDWR)


class Call(BaseHTTPRequestHandler):
    """One connection to it."""

    protocol_version = "HTTP/1.1"
    server: Api

    def _answer(self) -> None:
        length = int(self.headers.get("content-length", "0"))
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.server.calls.append((self.command, self.path, headers, self.rfile.read(length)))
        body = json.dumps({"path": self.path}).encode()
        self.send_response(200)
        for name, value in ANSWER.items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self) -> None:
        self._answer()

    def do_PUT(self) -> None:
        self._answer()

    def log_request(self, code: object = "-", size: object = "-") -> None:
        """Log nothing."""

    def handle_one_request(self) -> None:
        """End with a connection that its reader has ended."""
        with suppress(ConnectionError):
            super().handle_one_request()
            return
        self.close_connection = True


@pytest.fixture
def api() -> Iterator[Api]:
    made = Api()
    with serve_in_thread(made):
        yield made


@pytest.fixture
def console(api: Api, monkeypatch: pytest.MonkeyPatch) -> Iterator[LocalServer]:
    """The server of `duetick console --stack`."""
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-central-1")
    signed = SignedApi(Deployed({"ApiUrl": api.url}, get_session()))
    server = serve(signed, 0)
    with serve_in_thread(server):
        yield server
    signed.close()


class Browser:
    """A browser that has the token."""

    def __init__(self, console: LocalServer) -> None:
        self._port = console.server_port
        assert console.door
        code = console.door.link().partition("#open=")[2]
        self.token = ""
        self.token = self.ask("POST", f"{CONSOLE}/open", {}, json.dumps({"code": code}))[2]["token"]

    def ask(
        self, method: str, path: str, headers: dict[str, str] | None = None, body: str = ""
    ) -> tuple[int, dict[str, str], dict[str, str]]:
        """Return the status, the headers and the JSON of an answer."""
        with closing(HTTPConnection("127.0.0.1", self._port, timeout=60)) as connection:
            given = {PROOF: self.token, **(headers or {})}
            connection.request(method, path, body or None, given)
            answer = connection.getresponse()
            told = {name.lower(): value for name, value in answer.getheaders()}
            return answer.status, told, json.loads(answer.read())


def test_v01_a_call_is_signed_by_the_shell_and_has_nothing_of_the_page(
    console: LocalServer, api: Api
) -> None:
    named = {
        "duetick-why": "a%20reason",
        "if-match": '"2"',
        "idempotency-key": "once",
        "content-type": "application/json",
    }
    smuggled = {"cookie": "session=1", "x-forwarded-for": "1.2.3.4", "authorization": "Bearer x"}
    path = f"{CONSOLE}/api/users/ann~40x.org/schedules/k?dryRun=true&text=a%20b"
    Browser(console).ask("PUT", path, {**named, **smuggled}, '{"cron": "@daily"}')
    ((method, target, headers, body),) = api.calls
    assert (method, body) == ("PUT", b'{"cron": "@daily"}')
    assert target == "/v1/api/users/ann~40x.org/schedules/k?dryRun=true&text=a%20b"
    assert headers["authorization"].startswith("AWS4-HMAC-SHA256 ")
    assert headers["host"] == f"127.0.0.1:{api.server_port}"
    assert {name: headers[name] for name in named} == named
    ours = {"authorization", "host", "x-amz-date", "x-amz-security-token", "accept-encoding"}
    assert set(headers) - ours - set(SENT) <= {"content-length"}


def test_v01_of_an_answer_only_what_the_api_says_passes(console: LocalServer, api: Api) -> None:
    status, headers, body = Browser(console).ask("GET", f"{CONSOLE}/api/overview")
    assert (status, body) == (200, {"path": "/v1/api/overview"})
    assert (headers["etag"], headers["retry-after"]) == ('"3"', "7")
    assert not {"set-cookie", "access-control-allow-origin", "x-amzn-trace-id"} & set(headers)
    assert headers["cache-control"] == "no-store"


def test_reads_share_a_connection(console: LocalServer, api: Api) -> None:
    browser = Browser(console)
    for _ in range(3):
        assert browser.ask("GET", f"{CONSOLE}/api/overview")[0] == 200
    assert api.connections == 1


def test_a_read_outlives_the_connection_that_was_kept_for_it(
    console: LocalServer, api: Api
) -> None:
    browser = Browser(console)
    assert browser.ask("GET", f"{CONSOLE}/api/overview")[0] == 200
    api.hang_up()
    assert browser.ask("GET", f"{CONSOLE}/api/overview")[0] == 200
    assert api.connections == 2


def test_an_api_that_does_not_answer_is_told_so(console: LocalServer, api: Api) -> None:
    browser = Browser(console)
    api.shutdown()
    api.server_close()
    status, _, body = browser.ask("GET", f"{CONSOLE}/api/overview")
    assert (status, body["error"]) == (502, "unreachable")


def test_credentials_that_are_missing_are_told_of(
    console: LocalServer, api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Deployed, "_signer", _no_credentials)
    status, _, body = Browser(console).ask("GET", f"{CONSOLE}/api/overview")
    assert (status, body["error"]) == (502, "no_credentials")
    assert "sam deploy" in body["message"]
    assert api.calls == []


def _no_credentials(_self: Deployed) -> None:
    from duetick.cli.problem import CliProblem

    raise CliProblem("No credentials, or no region: those of `sam deploy` are needed here.")

"""`duetick console`: the pages for operators, served on this machine, for a stack that is deployed.

Each call is signed with the credentials of this shell: nothing is deployed for it.
"""

import argparse
import http.client
import json
import signal
import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final
from urllib.parse import SplitResult

from duetick.cli import asking
from duetick.cli.asking import add_place
from duetick.cli.door import LINKS, PageDoor, Shown, Visit
from duetick.cli.gateway import LocalServer, listen, other_port
from duetick.cli.parsing import note_parser, whole
from duetick.cli.problem import CliProblem
from duetick.transports.http import split_url

if TYPE_CHECKING:
    from duetick.cli.asking import Commands
    from duetick.cli.deployed import Deployed

PORT: Final = 8090
PATIENCE: Final = 35.0
"""The seconds that a call may take: API Gateway waits for 29."""

SENT: Final = ("content-type", "duetick-why", "if-match", "if-none-match", "idempotency-key")
SHOWN: Final = ("allow", "content-type", "etag", "location", "retry-after", "warning")
TOLD: Final = """
The console of the stack {stack}, as {who}:

  {link}

The link opens once, in a browser of this machine. `duetick console --stack {stack}` makes another.
Ctrl-C stops.
"""


def add_console(commands: "Commands") -> None:
    """Add `console`."""
    told = "operators: the console of a stack, in a browser of this machine"
    parser = note_parser(commands.add_parser("console", help=told, description=told))
    add_place(parser)
    parser.add_argument(
        "--port",
        type=whole(),
        default=PORT,
        help=f"the port of a deployed stack's console; default {PORT}",
    )
    parser.set_defaults(command=_console)


def _console(chosen: argparse.Namespace) -> None:
    if not chosen.stack:
        with asking.advice(chosen):
            asked = asking.operators_of(chosen).client.call("POST", LINKS)
        print(asked.body["link"])
        return
    from duetick.cli.deployed import Deployed

    deployed = Deployed.find(chosen.stack)
    api = SignedApi(deployed)
    server = serve(api, chosen.port)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: _stop(server))
    link = server.door.link() if server.door else ""
    print(TOLD.format(stack=chosen.stack, who=deployed.who(), link=link), flush=True)
    try:
        server.serve_forever()
    finally:
        server.server_close()
        api.close()


def serve(api: "SignedApi", port: int) -> LocalServer:
    """Return a server of the console for an API. It listens already."""
    server = listen(port, f"`duetick console --port {other_port(port)} …`")
    server.door = PageDoor(server.server_port, api.call)
    return server


def _stop(server: LocalServer) -> None:
    """Stop the server. It must not be stopped by the thread that it runs in."""
    threading.Thread(target=server.shutdown).start()


class SignedApi:
    """The API of a deployed stack. A connection on which a call has ended is kept for a read."""

    def __init__(self, deployed: "Deployed") -> None:
        self._deployed = deployed
        self._api = split_url(deployed.outputs["ApiUrl"])
        self._place = split_url(deployed.address) if deployed.address else self._api
        self._idle: list[http.client.HTTPConnection] = []

    def close(self) -> None:
        """Close the connections that are kept."""
        while self._idle:
            self._idle.pop().close()

    def call(self, visit: Visit) -> Shown:
        """Sign a call and send it. Headers that are not the API's do not pass, in or out."""
        target = (
            self._api.path.rstrip("/") + visit.path + (f"?{visit.query}" if visit.query else "")
        )
        try:
            signed = self._deployed.sign(
                visit.method, f"{self._api.scheme}://{self._api.netloc}{target}", visit.body
            )
            given = {name: visit.headers[name] for name in SENT if name in visit.headers}
            headers = {"host": self._api.netloc, **given, **signed}
            return self._send(visit.method, target, visit.body, headers)
        except CliProblem as problem:
            return _not_sent("no_credentials", str(problem))
        except (OSError, http.client.HTTPException) as problem:
            return _not_sent("unreachable", f"{self._api.netloc} does not answer: {problem}.")

    def _send(self, method: str, target: str, body: bytes, headers: Mapping[str, str]) -> Shown:
        """Send it. A kept connection may have ended unseen: a read is sent again, and a write takes
        a new one.
        """
        if method == "GET" and (kept := self._take()):
            try:
                return self._exchange(kept, method, target, body, headers)
            except (OSError, http.client.HTTPException):
                kept.close()
        return self._exchange(_connection(self._place), method, target, body, headers)

    def _take(self) -> http.client.HTTPConnection | None:
        try:
            return self._idle.pop()
        except IndexError:
            return None

    def _exchange(
        self,
        connection: http.client.HTTPConnection,
        method: str,
        target: str,
        body: bytes,
        headers: Mapping[str, str],
    ) -> Shown:
        try:
            connection.request(method, target, body or None, dict(headers))
            answer = connection.getresponse()
            content = answer.read()
        except BaseException:
            connection.close()
            raise
        self._idle.append(connection)
        named = {name.lower(): value for name, value in answer.getheaders()}
        shown: dict[str, str] = {name: named[name] for name in SHOWN if name in named}
        return Shown(answer.status, content, {"cache-control": "no-store", **shown})


def _connection(place: SplitResult) -> http.client.HTTPConnection:
    kind = http.client.HTTPSConnection if place.scheme == "https" else http.client.HTTPConnection
    return kind(place.hostname or "", place.port, timeout=PATIENCE)


def _not_sent(code: str, message: str) -> Shown:
    body = json.dumps({"error": code, "message": message}).encode()
    return Shown(502, body, {"content-type": "application/json", "cache-control": "no-store"})

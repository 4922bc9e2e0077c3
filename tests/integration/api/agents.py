"""An agent that writes its messages by hand, so that a test can write wrong ones."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from http.client import HTTPConnection
from typing import Any, Final, TypeAlias
from urllib.parse import urlsplit

from duetick.client import Fields

from tests.integration.local_product import Product

PATH: Final = "/api/mcp"
NEWEST: Final = "2025-11-25"
SAYING: Final = "2026-07-28"
META: Final = "io.modelcontextprotocol/"


Told: TypeAlias = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer of the endpoint."""

    status: int
    headers: Mapping[str, str]
    text: str

    @property
    def body(self) -> Told:
        """The answer to one message."""
        (found,) = self.several
        return found

    @property
    def several(self) -> list[Told]:
        """The answers to a list of messages."""
        found = json.loads(self.text)
        return found if isinstance(found, list) else [found]

    @property
    def error(self) -> int:
        """The code of the refusal."""
        found: int = self.body["error"]["code"]
        return found


@dataclass(frozen=True, slots=True)
class Agent:
    """The agent of a user."""

    running: Product
    user: str = "ann"

    def send(
        self,
        body: object,
        headers: Mapping[str, str] | None = None,
        *,
        method: str = "POST",
        token: str | None = None,
    ) -> Reply:
        """Send a body as it is, or as JSON."""
        stack = self.running.stack
        known = stack.token_of(self.user) if token is None else token
        connection = HTTPConnection(urlsplit(stack.server.url).netloc, timeout=60)
        text = body if isinstance(body, str | bytes | None) else json.dumps(body)
        sent = {"Authorization": f"Bearer {known}", **(headers or {})}
        connection.request(method, PATH, text, sent)
        answer = connection.getresponse()
        told = answer.read().decode()
        connection.close()
        return Reply(answer.status, {n.lower(): v for n, v in answer.getheaders()}, told)

    def ask(self, method: str, params: object = None, version: str = NEWEST) -> Reply:
        """Send a request of the first generation."""
        return self.send(request(method, params), {"MCP-Protocol-Version": version})

    def say(
        self, method: str, params: Fields | None = None, headers: Mapping[str, str] | None = None
    ) -> Reply:
        """Send a request of the second generation."""
        meta: Fields = {f"{META}protocolVersion": SAYING, f"{META}clientCapabilities": {}}
        given = {"_meta": meta, **(params or {})}
        named = {"MCP-Protocol-Version": SAYING, "Mcp-Method": method}
        if "name" in given:
            named["Mcp-Name"] = str(given["name"])
        return self.send(request(method, given), named | dict(headers or {}))

    def call(self, tool: str, **arguments: object) -> Told:
        """Call a tool. Return its result."""
        reply = self.ask("tools/call", {"name": tool, "arguments": arguments})
        found: Told = reply.body["result"]
        return found

    def do(self, tool: str, **arguments: object) -> Told:
        """Call a tool that succeeds. Return its structured answer."""
        result = self.call(tool, **arguments)
        assert not result["isError"], result
        found: Told = result["structuredContent"]
        return found

    def refused(self, tool: str, **arguments: object) -> Told:
        """Call a tool that refuses. Return its refusal."""
        result = self.call(tool, **arguments)
        assert result["isError"], result
        found: Told = result["structuredContent"]
        return found


def request(method: str, params: object = None, asked: object = 1) -> dict[str, object]:
    """Return a request with an id."""
    made: dict[str, object] = {"jsonrpc": "2.0", "id": asked, "method": method}
    return made if params is None else made | {"params": params}

"""The local stack's parts on a clock of the test's own: real handlers behind real HTTP."""

import json
import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from unittest import mock
from urllib.parse import urlsplit

import pytest
from duetick.cli.local import LocalStack
from duetick.client import Client
from duetick.core.store import Store
from duetick.runtime import telemetry, wiring
from duetick.stores import open_store

TOP = Path(__file__).parents[2]

LOG = telemetry.logger
"""It writes to the output that it was made with. A test that made it would read it there."""

NINE = 1_796_115_600_000
"""2026-12-01T09:00:00Z, a Tuesday."""


@dataclass(slots=True)
class Clock:
    """Milliseconds since the epoch, as far as the test says."""

    now: int

    def __call__(self) -> int:
        """Return the time."""
        return self.now


@dataclass(frozen=True, slots=True)
class Product:
    """A running local stack."""

    stack: LocalStack
    store: Store
    clock: Clock

    def call(
        self,
        method: str,
        path: str,
        body: object = None,
        token: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> tuple[int, Any]:
        """Make a call, with the user's own token if none is given. Return the status and the
        JSON.
        """
        connection = HTTPConnection(urlsplit(self.stack.server.url).netloc, timeout=60)
        given = self.stack.token if token is None else token
        text = body if isinstance(body, str | bytes | None) else json.dumps(body)
        connection.request(
            method, path, text, {**(headers or {}), "Authorization": f"Bearer {given}"}
        )
        answer = connection.getresponse()
        content = answer.read()
        connection.close()
        return answer.status, json.loads(content) if content else None

    def client(self, user: str = "you") -> Client:
        """Return a user's own view of the API, with a token that is new at each call."""

        def bearer(*_: object) -> dict[str, str]:
            return {"authorization": f"Bearer {self.stack.token_of(user)}"}

        return Client(self.stack.server.url, authorize=bearer)

    def operator(self, user: str) -> Client:
        """Return the operators' view of a user."""
        return Client(self.stack.server.url, token=self.stack.operator, user=user)

    def tick(self) -> dict[str, int]:
        """Invoke the tick's handler once."""
        return self.stack.tick()


@contextmanager
def product(
    address: str, clock: Clock, patch: pytest.MonkeyPatch, project: Path = TOP
) -> Iterator[Product]:
    """Yield the product on a store of that address, with the flows of a project."""
    store = open_store(address, clock=clock)
    for made in vars(wiring).values():
        if hasattr(made, "cache_clear"):
            made.cache_clear()
    patch.setattr(wiring, "store", lambda: store)
    # A thread of the local stack would race with the test: a tick delivers, unless a test says so.
    patch.setattr(wiring, "hand_on", lambda: None)
    with mock.patch.dict(os.environ, DUETICK_STORE=address):
        stack = LocalStack(project, address, 0, lambda: clock.now / 1_000)
        serving = threading.Thread(target=stack.server.serve_forever, args=(0.01,))
        serving.start()
        try:
            yield Product(stack, store, clock)
        finally:
            wiring.transport().close()
            stack.close()
            serving.join()
            store.close()


def set_again(monkeypatch: pytest.MonkeyPatch, setting: str, value: str) -> None:
    """Change a setting of the running product, which has read another value."""
    monkeypatch.setenv(f"DUETICK_{setting}", value)
    wiring.settings.cache_clear()
    wiring.quotas.cache_clear()


def tick_seldom(running: Product, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the tick of the deployment come each half hour, on the same database."""
    seldom = Store(running.store.shelf, running.clock, tick_seconds=1_800)
    monkeypatch.setattr(wiring, "store", lambda: seldom)

"""The product in which canaries are planted, and ways to let each outlet speak."""

import json
import os
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass, field, replace
from http.client import HTTPConnection
from io import StringIO
from pathlib import Path
from typing import Any, Final
from unittest import mock
from urllib.parse import urlsplit

import pytest
from duetick.cli.context import LocalContext
from duetick.cli.main import main
from duetick.core.dispatch import Request
from duetick.runtime import invoking, wiring
from duetick.runtime.invoking import to_event

from tests.integration.canaries.listening import Written, as_lambda_logs, listening
from tests.integration.canaries.planted import (
    DISPATCH,
    HEADERS,
    INPUT,
    LABELS,
    PARTNER,
    SETTINGS,
)
from tests.integration.handlers import load_handler
from tests.integration.local_product import NINE, Clock, Product, product

SCHEDULE: Final = {
    "cron": "0 9 * * *",
    "flow": "office",
    "action": "fail",
    "input": INPUT,
    "labels": LABELS,
}


OF_USERS: Final = ("/api/schedules", "/api/actions", "/api/jobs", "/api/mcp", "/api/upcoming")
OF_OPERATORS: Final = frozenset(
    (
        *("overview", "operations", "unreadable", "users", "doctor", "schedules mend"),
        *("occurrences", "backfill", "pause", "pauses", "resume"),
        *("limit", "limits", "unlimit", "forecast", "console"),
    )
)
"""The commands that ask as an operator."""


@dataclass(slots=True)
class Office:
    """A running product, and all that it has written."""

    running: Product
    patch: pytest.MonkeyPatch
    written: Written
    folder: Path
    queue: list[Request] = field(default_factory=list)
    throttled: bool = False

    def ask(self, route: str, body: object = None, **names: str) -> tuple[int, str]:
        """Call a route as its own caller. The route writes its answer."""
        method, _, path = route.partition(" ")
        path, _, query = path.partition("?")
        path = path.format(**{"user": "ann", "key": "k", "flow": "office"} | names)
        stack = self.running.stack
        token = stack.operator
        if path.endswith("/dispatch"):
            token = stack.secret
        elif path == "/api/flows" or path.startswith(OF_USERS):
            token = stack.token_of("ann")
        elif "/flows/" in path:
            token = stack.secret
        connection = HTTPConnection(urlsplit(stack.server.url).netloc, timeout=60)
        headers = {**HEADERS, "Authorization": f"Bearer {token}"}
        text = None if body is None else json.dumps(body)
        connection.request(method, path + (f"?{query}" if query else ""), text, headers)
        answer = connection.getresponse()
        told = f"{answer.getheaders()} {answer.read().decode()}"
        connection.close()
        self.written[route.partition("?")[0]].append(told)
        return answer.status, told

    def listen_to_deliveries(self) -> None:
        """Keep the path and the body of each call of dispatch."""
        routes = self.running.stack.server.routes
        (place,) = (at for at, one in enumerate(routes) if one.prefix == "/api/flows/")
        handler = routes[place].handler

        def handle(event: dict[str, Any], context: LocalContext) -> Mapping[str, Any]:
            if "fence" in str(event["body"]):
                self.written["delivery"].append(f"{event['path']} {event['body']}")
            return handler(event, context)

        routes[place] = replace(routes[place], handler=handle)

    def command(self, *words: str) -> str:
        """Run the command. It writes both of its streams."""
        two = words[0] in ("schedules", "jobs", "occurrences", "backfill", "import", "export")
        verb = " ".join(words[:2]) if two else words[0]
        known: tuple[str, ...] = ()
        if words[0] in ("schedules", "jobs", "import", "export"):
            stack = self.running.stack
            known = ("--url", stack.server.url, "--token", stack.token_of("ann"))
        if verb == "schedules dispatch":
            known = ("--url", self.running.stack.server.url)
        if verb in OF_OPERATORS or words[0] in OF_OPERATORS:
            known = ("--url", self.running.stack.server.url)
        if verb == "schedules mend":
            known = (*known, "--user", "ann")
        out = StringIO()
        self.patch.setenv("DUETICK_OPERATOR", self.running.stack.operator)
        with redirect_stdout(out), redirect_stderr(out), suppress(SystemExit):
            main([*words, *known])
        self.written[f"duetick {verb}"].append(out.getvalue())
        return out.getvalue()

    def call(self, handler: Callable[..., object], event: object) -> object:
        """Invoke a function as Lambda does, which writes the errors that it raises."""
        try:
            return handler(event, LocalContext())
        except Exception as problem:
            self.written["raised"].append(as_lambda_logs(problem))
            return None

    def tick(self, minutes: int = 0) -> None:
        """Let time pass, then invoke the tick."""
        self.running.clock.now += minutes * 60_000
        self.call(self.running.stack._tick, {})

    def run_queue(self) -> None:
        """Let the invocations of background actions begin."""
        while self.queue:
            request = self.queue.pop()
            self.written["queue"].append(json.dumps(to_event(request)))
            wiring.dispatcher().run_queued(request)

    def migrate(self, event: Mapping[str, object]) -> None:
        """Invoke the function of deployments and of each hour."""
        answer = self.call(load_handler("migrate"), event)
        self.written["answer of migrate"].append(json.dumps(answer))

    def put_events(self, **given: list[dict[str, str]]) -> dict[str, object]:
        """Put events, as a client of the bus does."""
        self.written["bus"] += [json.dumps(one) for one in given["Entries"]]
        return {"Entries": [{} for _ in given["Entries"]]}

    @contextmanager
    def broken(self, owner: object, name: str, problem: Exception) -> Iterator[None]:
        """Let a part raise in the block."""

        def fail(*_: object, **__: object) -> None:
            raise problem

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(owner, name, fail)
            yield

    def enqueue(self, request: Request) -> None:
        """Put a call into the queue of invocations."""
        if self.throttled:
            raise ConnectionError("token=canary-transport-error")
        self.queue.append(request)


@contextmanager
def office(folder: Path) -> Iterator[Office]:
    """Yield the product on a file, a minute before nine. The texts that it writes are kept."""
    written: Written = defaultdict(list)
    with mock.patch.dict(os.environ), pytest.MonkeyPatch.context() as patch:
        patch.setenv("DUETICK_FLOWS", "tests.integration.canaries.office")
        patch.setenv("DUETICK_DISPATCH_SECRET", DISPATCH)
        patch.setenv("DUETICK_FLOW_SETTINGS", json.dumps(SETTINGS))
        patch.setenv("DUETICK_FLOW_SETTINGS_SECRET", json.dumps(PARTNER))
        patch.delenv("DUETICK_TOKEN", raising=False)
        opened: list[Office] = []
        patch.setattr(invoking, "enqueue_in_thread", lambda _run: _of_all(opened))
        address, clock = f"sqlite:///{folder}/canaries.db", Clock(NINE - 60_000)
        with listening(written), product(address, clock, patch) as running:
            patch.setenv("POWERTOOLS_METRICS_DISABLED", "false")
            opened.append(Office(running, patch, written, folder))
            opened[0].listen_to_deliveries()
            yield opened[0]


def _of_all(opened: list[Office]) -> Callable[[Request], None]:
    """Return the queue of the office that is opened later."""

    def enqueue(request: Request) -> None:
        opened[0].enqueue(request)

    return enqueue

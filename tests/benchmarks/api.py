"""The time of a call of the users' API, in the function: p50 and p99 on each store.

    python -m tests.benchmarks.api [--calls 300]

The handler of functions/schedules gets a gateway's event, and its answer is taken: no network but
the store's. A hundred schedules of one user are there; the history of one has thirty entries.
"""

import argparse
import copy
import json
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import quantiles
from typing import Any, Final

from duetick.cli.context import LocalContext
from duetick.domain.attempts import SUCCEEDED, Begun
from duetick.domain.schedule import Json
from duetick.runtime import wiring

from tests.integration.events.recorded import event
from tests.integration.handlers import load_handler
from tests.lab.dynamodb import start_dynamodb_local, table_name
from tests.lab.postgres import EmbeddedPostgres

BODY: Final[Json] = {
    "cron": "*/5 * * * *",
    "timezone": "Europe/Berlin",
    "flow": "reminders",
    "action": "remind",
    "input": {"text": "good morning"},
}
SCHEDULES: Final = 100
ENTRIES: Final = 30
WARM: Final = 10


class Api:
    """The users' function on a store."""

    def __init__(self, store: str) -> None:
        os.environ |= {"DUETICK_STORE": store, "DUETICK_QUOTA_WRITES": "1000000"}
        os.environ |= {"DUETICK_QUOTA_SCHEDULES": "1000000", "DUETICK_USER_CLIENTS": ""}
        os.environ["POWERTOOLS_LOG_LEVEL"] = "ERROR"
        wiring.store.cache_clear()
        self._handler = load_handler("schedules")
        self._event = event("users-cognito")
        wiring.store().migrate()

    def call(
        self, method: str, path: str, body: Json = None, query: dict[str, str] | None = None
    ) -> dict[str, Any]:
        """Return the answer of a route."""
        sent: dict[str, Any] = copy.deepcopy(self._event)
        sent |= {"httpMethod": method, "path": f"/api{path}", "queryStringParameters": query}
        sent["body"] = None if body is None else json.dumps(body)
        answer = self._handler(sent, LocalContext())
        found: dict[str, Any] = json.loads(answer["body"] or "{}")
        if answer["statusCode"] >= 300:
            raise RuntimeError(found)
        return found

    def fill(self) -> None:
        """Make the schedules, and the history of one."""
        for number in range(SCHEDULES):
            self.call("PUT", f"/schedules/k{number:03}", BODY)
        store = wiring.store()
        self.call("PUT", "/schedules/fired", BODY)
        for _ in range(ENTRIES):
            now = min(row.next_fire_at for row in self._rows())
            for claimed in store.index.claim_due(now, SCHEDULES + 1):
                begun = store.ledger.begin(claimed, now=now)
                if isinstance(begun, Begun):
                    store.ledger.settle(begun.occurrence, SUCCEEDED, now=now)

    def _rows(self) -> Iterator[Any]:
        for one in wiring.store().shelf.every_book():
            if one.row:
                yield one.row


def measures(api: Api) -> dict[str, Callable[[int], object]]:
    """Return the measured calls by name: each takes its number."""
    return {
        "put: create": lambda n: api.call("PUT", f"/schedules/new{n}", BODY),
        "put: other times": lambda n: api.call(
            "PUT", "/schedules/k000", {**_body(), "cron": f"{n % 60} * * * *"}
        ),
        "put: dry run": lambda _: api.call("PUT", "/schedules/k001", BODY, {"dryRun": "true"}),
        "get": lambda _: api.call("GET", "/schedules/k050"),
        "list, 50 of 100": lambda _: api.call("GET", "/schedules", query={"limit": "50"}),
        "history, 30": lambda _: api.call("GET", "/schedules/fired/history"),
        "preview": lambda n: api.call("POST", "/upcoming", {"cron": f"{n % 60} 2 * * *"}),
    }


def _body() -> dict[str, Json]:
    return dict(BODY) if isinstance(BODY, dict) else {}


def timed(call: Callable[[int], object], calls: int) -> tuple[float, float]:
    """Return p50 and p99 in milliseconds."""
    taken: list[float] = []
    for number in range(calls + WARM):
        began = time.perf_counter()
        call(number)
        taken.append((time.perf_counter() - began) * 1_000)
    hundredths = quantiles(taken[WARM:], n=100)
    return hundredths[49], hundredths[98]


@contextmanager
def stores(folder: Path) -> Iterator[dict[str, str]]:
    """Start a store of each kind."""
    server, local = EmbeddedPostgres(), start_dynamodb_local(folder)
    yield {
        "SQLite": f"sqlite:///{folder}/api.db",
        "Postgres": server.tcp_url,
        "DynamoDB Local": local.table_url(table_name()),
    }
    server.remove()
    local.stop()


def main() -> None:
    """Print a row for each call and store."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=300)
    calls = parser.parse_args().calls
    with tempfile.TemporaryDirectory() as folder, stores(Path(folder)) as places:
        for name, store in places.items():
            api = Api(store)
            api.fill()
            for what, call in measures(api).items():
                p50, p99 = timed(call, calls)
                print(f"{name:15} {what:18} p50 {p50:7.2f} ms  p99 {p99:7.2f} ms", flush=True)
            wiring.store().close()


if __name__ == "__main__":
    main()

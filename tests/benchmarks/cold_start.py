"""Cold starts through the real Lambda runtime interface, beside a bare handler's, interleaved.

    python -m tests.benchmarks.cold_start

INIT plus the first invocation to its answer. The bare handler has Powertools' Logger and the
store's bare client, and asks the database once; its packages come from the same layer, compiled
like all of it. Prints the best runs and their ratio.
"""

import json
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, TypeAlias, get_args

from duetick.domain.schedule import Json, Schedule
from duetick.stores import open_store

from tests.lab.credentials import DUMMY
from tests.lab.dynamodb import start_dynamodb_local, table_name
from tests.lab.lambda_runtime import LambdaRuntime
from tests.lab.postgres import EmbeddedPostgres
from tests.lab.sam import Sam
from tests.lab.this_machine import ARCHITECTURE

TOP: Final = Path(__file__).parents[2]
RUNS: Final = 9
MOST: Final = {"tick": 1.3, "dispatch": 1.6, "schedules": 1.6}
"""Times of the bare handler's, for the calls in `EVENTS`. Nothing is promised of a first PUT: it
loads pydantic and croniter besides.

`tests/unit/test_imports.py` keeps what makes the difference: the modules that each loads.
"""
FUNCTIONS: Final = ("tick", "dispatch", "schedules", "put")
"""The functions; `put` is the users' one, at a PUT. At `schedules` it is a GET of a list."""
EVENTS: Final = {
    "tick": "scheduler",
    "dispatch": "dispatch-iam",
    "schedules": "users-cognito",
    "put": "users-cognito",
}

Backend: TypeAlias = Literal["dynamodb", "postgres"]

BARE: Final = {
    "dynamodb": """
import os
from aws_lambda_powertools import Logger
from botocore.session import get_session

logger = Logger(service="bare")
client = get_session().create_client(
    "dynamodb", region_name="us-east-1", endpoint_url=os.environ["ENDPOINT"]
)

@logger.inject_lambda_context
def handler(event, context):
    client.get_item(TableName=os.environ["TABLE"], Key={"p": {"S": "J"}, "s": {"S": "!"}})
    logger.info("bare")
    return {}
""",
    "postgres": """
import os
from urllib.parse import urlsplit
from aws_lambda_powertools import Logger
from pg8000.native import Connection

logger = Logger(service="bare")
address = urlsplit(os.environ["DUETICK_STORE"])
connection = Connection("postgres", host=address.hostname, port=address.port, database="postgres")

@logger.inject_lambda_context
def handler(event, context):
    connection.run("SELECT version FROM schema_version")
    logger.info("bare")
    return {}
""",
}


@dataclass(frozen=True, slots=True)
class Bench:
    """Built functions, a backend with one schedule in it, and where sandboxes may live."""

    built: Path
    folder: Path
    environment: Mapping[str, str]

    def once(self, function: str) -> "Start":
        """Measure one cold start."""
        place = Path(tempfile.mkdtemp(dir=self.folder))
        layers = [self.built / name for name in ("DepsLayer", "DuetickLayer", "FlowsLayer")]
        name = "schedules" if function == "put" else function
        code = self.built / f"{name.capitalize()}Function"
        runtime = LambdaRuntime(
            place, code if code.exists() else self.folder / function, layers, env=self.environment
        )
        try:
            start = time.perf_counter()
            answer = runtime.post(_event(function))
            spent = (time.perf_counter() - start) * 1_000
            computed = runtime.server.processor_ms()
        finally:
            runtime.stop()
        assert "errorMessage" not in answer, answer
        return Start(spent, computed)

    def best(self, runs: int = RUNS) -> "dict[str, Start]":
        """Return the best run of each function, and of the bare one.

        They take turns. Other work of the machine only adds to a run, and a cold start is over in a
        second: the best runs are those that were left alone.
        """
        every = ("bare", *FUNCTIONS)
        rounds = [{name: self.once(name) for name in every} for _ in range(runs)]
        return {
            name: Start(
                min(one[name].spent for one in rounds), min(one[name].computed for one in rounds)
            )
            for name in every
        }


@dataclass(frozen=True, slots=True)
class Start:
    """The milliseconds until the answer, and how many of them the sandbox computed."""

    spent: float
    computed: float

    def __truediv__(self, bare: "Start") -> "Start":
        """Return the ratio to the other."""
        return Start(self.spent / bare.spent, self.computed / bare.computed)


def _event(function: str) -> object:
    name = EVENTS.get(function, "scheduler")
    event: dict[str, object] = json.loads((TOP / "events" / f"{name}.json").read_text())
    if function == "schedules":
        event |= {"httpMethod": "GET", "path": "/api/schedules", "body": None}
    return event


def build(folder: Path) -> Path:
    """Return the files that `sam build` makes."""
    sam = Sam(folder)
    made = sam.build(TOP / "template.yaml", folder / "built", {"Architecture": ARCHITECTURE})
    return made.parent


@contextmanager
def bench(backend: Backend, built: Path, folder: Path) -> Iterator[Bench]:
    """Yield a bench on a database of its own."""
    with database(backend, folder) as environment:
        store = open_store(environment["DUETICK_STORE"])
        store.migrate()
        text: Json = {"text": "good morning"}
        store.schedules.put(
            Schedule("ann", "hello", "0 9 * * *", "reminders", "remind", input=text)
        )
        store.close()
        (folder / "bare").mkdir(exist_ok=True)
        (folder / "bare" / "app.py").write_text(BARE[backend])
        api = {"DUETICK_API_URL": "http://127.0.0.1:9/v1", "AWS_REGION": "us-east-1"}
        yield Bench(built, folder, {**environment, **api})


@contextmanager
def database(backend: Backend, folder: Path) -> Iterator[dict[str, str]]:
    """Yield the settings of a function, with a database that is made for it."""
    if backend == "postgres":
        server = EmbeddedPostgres()
        yield {"DUETICK_STORE": server.tcp_url}
        server.remove()
        return
    local, name = start_dynamodb_local(folder), table_name()
    yield {"DUETICK_STORE": local.table_url(name), "ENDPOINT": local.endpoint, "TABLE": name}
    local.stop()


def main() -> int:
    """Print the ratios. Return 1 if one is beyond its promise."""
    missed = False
    os.environ |= DUMMY
    with tempfile.TemporaryDirectory() as name:
        built = build(Path(name))
        for backend in get_args(Backend):
            folder = Path(name, backend)
            folder.mkdir()
            with bench(backend, built, folder) as made:
                best = made.best()
            for function in FUNCTIONS:
                own, bare, times = best[function], best["bare"], best[function] / best["bare"]
                print(
                    f"{backend:9} {function:9} {own.spent:5.0f} ms, bare {bare.spent:5.0f} ms: "
                    f"{times.spent:.2f} times (at most {MOST.get(function, 'any')}); "
                    f"computing {times.computed:.2f} times"
                )
                missed = missed or times.spent > MOST.get(function, times.spent)
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())

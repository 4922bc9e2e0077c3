"""A cold start pays only for what its function needs."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import pytest
from duetick.stores import open_store

from tests.documents import TOP
from tests.lab.credentials import DUMMY

COSTLY = (
    "pydantic",
    "boto3",
    "croniter",
    "aws_lambda_powertools.event_handler",
    "http.client",
    "pytest",
)


@pytest.mark.parametrize(
    "module",
    [
        "duetick.core.tick",
        "duetick.transports.http",
        "duetick.core.dispatch",
        "duetick.core.agents",
    ],
)
def test_what_a_tick_and_a_dispatch_import_is_cheap(module: str) -> None:
    script = f"import sys, {module}; print([name for name in {COSTLY!r} if name in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


def test_a_flow_with_targets_imports_no_client() -> None:
    script = "import sys, duetick.actions; print('boto3' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "False"


def test_events_are_loaded_by_nobody_who_has_none() -> None:
    parts = "duetick.core.tick, duetick.core.dispatch, duetick.runtime.wiring"
    script = (
        f"import sys, {parts}; print([name for name in sys.modules if name in "
        "('duetick.core.notices', 'duetick.runtime.announcing', 'botocore')])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


STORES: Final = {
    "postgres": "postgresql://duetick@127.0.0.1:9/duetick",
    "dynamodb": "dynamodb://duetick?region=eu-west-1",
}

MOST: Final[Mapping[tuple[str, str], tuple[int, int]]] = {
    ("tick", "postgres"): (112, 95),
    ("tick", "dynamodb"): (113, 56),
    ("dispatch", "postgres"): (139, 100),
    ("dispatch", "dynamodb"): (145, 61),
    ("schedules", "postgres"): (108, 56),
    ("schedules", "dynamodb"): (108, 56),
}
FUNCTIONS: Final = ("tick", "dispatch", "schedules")
"""The modules that a sandbox loads before it answers: of Duetick, and of its packages and flows.

What a module costs depends on the machine; how many there are does not. Before you raise one,
`python -m tests.benchmarks.cold_start` tells what it costs beside a bare handler.
"""

AUTHORITIES: Final = frozenset({"AWS_CA_BUNDLE", "REQUESTS_CA_BUNDLE"})
"""Variables that no function has, and that botocore is loaded for."""

LOADED: Final = """
import json, sys
import app
tops = [name.split(".")[0] for name in sys.modules]
own = [top for top in tops if top in ("duetick", "app")]
others = [top for top in tops if top not in ("duetick", "app", *sys.stdlib_module_names)]
print(json.dumps([len(own), len(others)]))
"""


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("store", STORES)
def test_a_cold_start_loads_no_more_modules_than_is_stated(function: str, store: str) -> None:
    code = os.pathsep.join(str(TOP / name) for name in (f"functions/{function}", "layers/flows"))
    settings = {
        "DUETICK_STORE": STORES[store],
        "DUETICK_API_URL": "http://127.0.0.1:9/v1",
        "POWERTOOLS_METRICS_NAMESPACE": "Duetick",
        "PYTHONPATH": code,
    }
    done = subprocess.run(
        [sys.executable, "-c", LOADED],
        capture_output=True,
        text=True,
        check=True,
        env={**_environment(), **DUMMY, **settings},
    )
    own, others = json.loads(done.stdout)
    most_own, most_others = MOST[function, store]
    assert own <= most_own
    assert others <= most_others


def _environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name not in AUTHORITIES}


COLLECTED: Final = """
import gc, sys
seen = []
gc.callbacks.append(lambda phase, info: seen.append("duetick.domain.errors" in sys.modules))
import app
gc.callbacks.clear()
print(gc.isenabled(), any(seen))
"""


def test_a_tick_on_postgres_loads_neither_threads_nor_alarms_before_it_delivers() -> None:
    code = os.pathsep.join(str(TOP / name) for name in ("functions/tick", "layers/flows"))
    settings = {"DUETICK_STORE": STORES["postgres"], "DUETICK_API_URL": "http://127.0.0.1:9/v1"}
    script = (
        "import sys, app; print([name for name in sys.modules if name in "
        "('concurrent.futures.thread', 'signal', 'importlib.readers')])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, **DUMMY, **settings, "PYTHONPATH": code},
    )
    assert done.stdout.strip() == "[]"


@pytest.mark.slow
@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_start_collects_no_garbage_of_what_it_loads(function: str) -> None:
    code = os.pathsep.join(str(TOP / name) for name in (f"functions/{function}", "layers/flows"))
    settings = {"DUETICK_STORE": STORES["dynamodb"], "DUETICK_API_URL": "http://127.0.0.1:9/v1"}
    done = subprocess.run(
        [sys.executable, "-c", COLLECTED],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, **DUMMY, **settings, "PYTHONPATH": code},
    )
    assert done.stdout.split() == ["True", "False"]


ANSWERED: Final = """
import json, sys
import app
from duetick.cli.context import LocalContext
event = json.load(open(sys.argv[1]))
method, address = sys.argv[2:]
path, _, query = address.partition("?")
asked = dict([query.split("=")]) if query else None
event |= {"httpMethod": method, "path": path, "queryStringParameters": asked}
status = app.handler(event, LocalContext())["statusCode"]
costly = ("pydantic", "croniter", "asyncio", "aws_lambda_powertools.event_handler")
print(json.dumps([status, [name for name in costly if name in sys.modules]]))
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "path", "status", "loaded"),
    [
        ("GET", "/api/schedules", 200, []),
        ("GET", "/api/schedules/hello", 404, []),
        ("GET", "/api/nothing", 404, []),
        ("DELETE", "/api/schedules", 405, []),
        ("GET", "/api/schedules?limit=1", 200, ["pydantic"]),
        ("PUT", "/api/schedules/hello", 201, ["pydantic", "croniter"]),
    ],
)
def test_a_call_loads_what_it_needs_alone(
    tmp_path: Path, method: str, path: str, status: int, loaded: list[str]
) -> None:
    address = f"sqlite:///{tmp_path}/store.db"
    store = open_store(address)
    store.migrate()
    store.close()
    code = os.pathsep.join(str(TOP / name) for name in ("functions/schedules", "layers/flows"))
    settings = {"DUETICK_STORE": address, "PYTHONPATH": code}
    event = str(TOP / "events/users-cognito.json")
    done = subprocess.run(
        [sys.executable, "-c", ANSWERED, event, method, path],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, **settings},
    )
    assert json.loads(done.stdout.splitlines()[-1]) == [status, loaded]

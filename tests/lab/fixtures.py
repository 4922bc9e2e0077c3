"""The lab as pytest fixtures: servers live for the session, databases and tables for one test."""

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.lab.credentials import DUMMY, REAL
from tests.lab.dynamodb import DynamoDB, start_dynamodb_local, start_moto
from tests.lab.emulated_aws import EmulatedAws
from tests.lab.lambda_runtime import LambdaRuntime
from tests.lab.postgres import (
    OUTSIDE,
    EmbeddedPostgres,
    OutsidePostgres,
    Postgres,
    drop_database,
    fresh_database,
    machines_own,
)
from tests.lab.ready import InTurn, ReadyDatabase, ReadyTable
from tests.lab.sam import Sam

SERVERS = frozenset(
    {
        "browser",
        "dynamodb",
        "dynamodb_local",
        "emulated_aws",
        "lambda_runtime",
        "migrated_dynamodb_url",
        "migrated_postgres_url",
        "moto",
        "own_postgres",
        "postgres",
        "postgres_url",
        "sam",
    }
)
"""Fixtures, and the parameters of other fixtures, that start a part of the lab."""
LONG = ("e2e", "simulation", "conformance", "integration", "web")
"""Folders of tests, those with the longest files first."""


def pytest_configure() -> None:
    """End as on Ctrl-C when asked to terminate, so that all started processes are stopped."""
    signal.signal(signal.SIGTERM, lambda *_: pytest.exit("terminated", returncode=143))


def pytest_report_header() -> str:
    """Name the Postgres that is there in addition to the embedded one."""
    return f"this machine's own Postgres: {machines_own() or 'none'}"


def pytest_itemcollected(item: pytest.Item) -> None:
    """`make quick` starts nothing, and tries no combinations of the template's parameters."""
    if _starts_a_server(item) or "template" in item.path.parts:
        item.add_marker("slow")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the folders whose files take long first, after all other sorting and shuffling.

    Otherwise one of two processes would end on them alone.
    """
    items.sort(key=_is_short)


def _is_short(item: pytest.Item) -> int:
    return next((n for n, folder in enumerate(LONG) if folder in item.path.parts), len(LONG))


def _starts_a_server(item: pytest.Item) -> bool:
    if not isinstance(item, pytest.Function):
        return False
    chosen = item.callspec.params.values() if hasattr(item, "callspec") else ()
    return bool(SERVERS & {*item.fixturenames, *(one for one in chosen if isinstance(one, str))})


@pytest.fixture(scope="session", autouse=True)
def no_real_credentials() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for name in REAL:
            patch.delenv(name, raising=False)
        for name, value in DUMMY.items():
            patch.setenv(name, value)
        yield


@pytest.fixture(scope="session")
def embedded_postgres() -> Iterator[Postgres]:
    """Postgres 18."""
    server = EmbeddedPostgres()
    yield server
    server.remove()


@pytest.fixture(scope="session")
def postgres(request: pytest.FixtureRequest) -> Postgres:
    """Yield the server in which tests get databases of their own."""
    if outside := os.environ.get(OUTSIDE):
        return OutsidePostgres(outside)
    server: Postgres = request.getfixturevalue("embedded_postgres")
    return server


@pytest.fixture(scope="session")
def machines_own_postgres() -> Iterator[Postgres]:
    """A throw-away cluster of the Postgres that this machine has by itself."""
    server = EmbeddedPostgres(programs=machines_own())
    yield server
    server.remove()


@pytest.fixture
def postgres_url(postgres: Postgres) -> Iterator[str]:
    """A fresh, empty database."""
    url = fresh_database(postgres)
    yield url
    drop_database(postgres, url)


@pytest.fixture(scope="session")
def _migrated_postgres(postgres: Postgres) -> Iterator[InTurn]:
    places = InTurn(lambda: ReadyDatabase(postgres))
    yield places
    places.close()


@pytest.fixture
def migrated_postgres_url(_migrated_postgres: InTurn) -> str:
    """Return the address of a database that has the schema alone."""
    return _migrated_postgres.ready()


@pytest.fixture(scope="session")
def _migrated_dynamodb(dynamodb_local: DynamoDB) -> Iterator[InTurn]:
    places = InTurn(lambda: ReadyTable(dynamodb_local))
    yield places
    places.close()


@pytest.fixture
def migrated_dynamodb_url(_migrated_dynamodb: InTurn) -> str:
    """Return the address of a table of DynamoDB Local that has the schema alone."""
    return _migrated_dynamodb.ready()


@pytest.fixture
def own_postgres() -> Iterator[EmbeddedPostgres]:
    """A server of this test's own, to restart or to kill."""
    server = EmbeddedPostgres()
    yield server
    server.remove()


@pytest.fixture(scope="session")
def moto(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DynamoDB]:
    server = start_moto(tmp_path_factory.mktemp("moto"))
    yield server
    server.stop()


@pytest.fixture(scope="session")
def dynamodb_local(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DynamoDB]:
    server = start_dynamodb_local(tmp_path_factory.mktemp("dynamodb-local"))
    yield server
    server.stop()


@pytest.fixture(params=["moto", "dynamodb_local"])
def dynamodb(request: pytest.FixtureRequest) -> DynamoDB:
    """Each DynamoDB in turn; only the one at hand is started."""
    server: DynamoDB = request.getfixturevalue(request.param)
    return server


@pytest.fixture(scope="session")
def emulated_aws(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmulatedAws]:
    aws = EmulatedAws(tmp_path_factory.mktemp("emulated-aws"))
    yield aws
    aws.stop()


@pytest.fixture(scope="session")
def sam(tmp_path_factory: pytest.TempPathFactory) -> Sam:
    return Sam(tmp_path_factory.mktemp("sam-home"))


@pytest.fixture
def lambda_runtime(tmp_path: Path) -> Iterator[Callable[..., LambdaRuntime]]:
    """Starts a built function, with its layers, in a sandbox of its own."""
    started: list[LambdaRuntime] = []

    def start(function: Path, *layers: Path, env: dict[str, str] | None = None) -> LambdaRuntime:
        folder = tmp_path / f"sandbox-{len(started)}"
        folder.mkdir()
        started.append(LambdaRuntime(folder, function, layers, env=env))
        return started[-1]

    yield start
    for each in started:
        each.stop()

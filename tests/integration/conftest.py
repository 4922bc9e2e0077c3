"""Fixtures of several of these tests: the product, a store, a table, a wire that can be cut."""

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from duetick.core.store import Store
from duetick.stores import open_store
from pg8000.native import Connection

from tests.integration.dynamodb_case import Case
from tests.integration.local_product import NINE, Clock, Product, product
from tests.integration.severing import SeveringProxy
from tests.lab.dynamodb import DynamoDB
from tests.lab.postgres import EmbeddedPostgres, connect, fresh_database
from tests.lab.process import LOCALHOST
from tests.lab.ready import sqlite_file


@pytest.fixture
def running(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Product]:
    """The local stack on an empty file, half an hour before nine."""
    address = sqlite_file(tmp_path / "api.db")
    with product(address, Clock(NINE - 1_800_000), monkeypatch) as made:
        yield made


@pytest.fixture
def case(dynamodb: DynamoDB) -> Iterator[Case]:
    """A table of the test's own."""
    case = Case(dynamodb)
    yield case
    case.close()


@pytest.fixture
def store(postgres_url: str) -> Iterator[Store]:
    """A store on a Postgres database of the test's own."""
    opened = open_store(postgres_url)
    opened.migrate()
    yield opened
    opened.close()


@pytest.fixture
def other(postgres_url: str) -> Iterator[Connection]:
    """Yield another connection to the database of `store`."""
    with connect(postgres_url) as connection:
        yield connection


@pytest.fixture
def severed(own_postgres: EmbeddedPostgres) -> Iterator[tuple[Store, SeveringProxy]]:
    """A store on Postgres, and the wire between them."""
    database = urlsplit(fresh_database(own_postgres)).path
    proxy = SeveringProxy(own_postgres.port)
    store = open_store(f"postgresql://postgres@{LOCALHOST}:{proxy.port}{database}")
    store.migrate()
    yield store, proxy
    store.close()
    proxy.close()

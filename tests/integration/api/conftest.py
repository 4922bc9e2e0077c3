"""The product half an hour before nine, on an empty file."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from duetick.client import Client

from tests.integration.local_product import Clock, Product, product
from tests.lab.dynamodb import DynamoDB, table_name

NINE = 1_796_115_600_000
"""2026-12-01T09:00:00Z, a Tuesday."""


@pytest.fixture
def running(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Product]:
    """The local stack, its clock in the test's hands."""
    with product(f"sqlite:///{tmp_path}/api.db", Clock(NINE - 1_800_000), monkeypatch) as made:
        yield made


@pytest.fixture(params=["sqlite", "postgres", "dynamodb"])
def anywhere(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Product]:
    """The same on each store in turn; only the one at hand is started."""
    address = f"sqlite:///{tmp_path}/api.db"
    if request.param == "postgres":
        address = request.getfixturevalue("postgres_url")
    if request.param == "dynamodb":
        server: DynamoDB = request.getfixturevalue("dynamodb_local")
        address = server.table_url(table_name())
    with product(address, Clock(NINE - 1_800_000), monkeypatch) as made:
        yield made


@pytest.fixture
def client(running: Product) -> Client:
    """The user's."""
    return running.client()

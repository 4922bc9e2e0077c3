"""Each test of delivery has a store; a test that matters on all backends has each in turn."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from duetick.core.store import Store
from duetick.stores import open_store

from tests.delivery.office import Office, office
from tests.delivery.scene import NINE, Scene
from tests.lab.ready import sqlite_file


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """The quickest one."""
    made = open_store(sqlite_file(tmp_path / "duetick.db"), clock=lambda: NINE)
    yield made
    made.close()


@pytest.fixture
def scene(store: Store) -> Scene:
    """Dispatch on it."""
    return Scene(store)


@pytest.fixture(params=["sqlite", "postgres", "dynamodb"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Return the address of a fresh store of each backend."""
    if request.param == "postgres":
        return str(request.getfixturevalue("migrated_postgres_url"))
    if request.param == "dynamodb":
        return str(request.getfixturevalue("migrated_dynamodb_url"))
    return sqlite_file(tmp_path / "each.db")


@pytest.fixture
def each_store(address: str) -> Iterator[Store]:
    """A store of each backend."""
    made = open_store(address, clock=lambda: NINE)
    yield made
    made.close()


@pytest.fixture(params=["sqlite", "postgres"])
def sql_scene(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Scene]:
    """Dispatch on the stores that speak SQL."""
    postgres = request.param == "postgres"
    named = postgres and request.getfixturevalue("migrated_postgres_url")
    made = open_store(named or sqlite_file(tmp_path / "sql.db"), clock=lambda: NINE)
    yield Scene(made)
    made.close()


@pytest.fixture
def each_scene(each_store: Store) -> Scene:
    """Dispatch on each."""
    return Scene(each_store)


@pytest.fixture
def open_office(each_scene: Scene) -> Iterator[Office]:
    """An office on each store, with twenty schedules at nine."""
    for number in range(20):
        each_scene.put(f"k{number:02}", cron="0 9 * * *")
    with office(each_scene) as made:
        yield made

"""I-10: a new schema comes before the new code, and the old code goes on with it."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeAlias

import pytest
from duetick.core.store import Store
from duetick.domain.errors import SchemaOutdated
from duetick.domain.schedule import Schedule
from duetick.stores import open_store
from duetick.stores.dynamodb import migration, schema
from duetick.stores.sql.queries import Migration, migrations
from duetick.stores.sql.shelf import SqlShelf

from tests.integration.local_product import NINE
from tests.lab.dynamodb import DynamoDB, table_name

SLOW = pytest.mark.slow

Release: TypeAlias = Callable[[int, int], Store]
"""A store of the code `later` versions on, whose schema serves code from `since` versions on."""


@contextmanager
def sql_releases(address: str) -> Iterator[Release]:
    """Releases that add a step of the schema each."""
    opened: list[Store] = []

    def release(later: int, since: int) -> Store:
        store = open_store(address)
        assert isinstance(store.shelf, SqlShelf)
        opened.append(store)
        known = migrations(address.partition(":")[0].replace("postgresql", "postgres"))
        last = known[-1].version
        added = [
            Migration(last + 1 + step, last + since, f"CREATE TABLE added_{step} (id integer)")
            for step in range(later)
        ]
        vars(store.shelf)["_steps"] = (*known, *added)
        store.migrate()
        return store

    yield release
    for store in opened:
        store.close()


@contextmanager
def dynamodb_releases(address: str) -> Iterator[Release]:
    """Releases that differ in the version they write and ask for."""
    opened: list[Store] = []
    first = schema.VERSION

    def release(later: int, since: int) -> Store:
        store = open_store(address)
        opened.append(store)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(migration, "VERSION", first + later)
            patch.setattr(migration, "OLDEST_CODE", first + since)
            store.migrate()
        return store

    yield release
    for store in opened:
        store.close()


@pytest.fixture(
    params=["sqlite", pytest.param("postgres", marks=SLOW), pytest.param("moto", marks=SLOW)]
)
def release(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Release]:
    """Makes releases on one new database; each migrates as it is deployed."""
    if request.param == "moto":
        server: DynamoDB = request.getfixturevalue("moto")
        with dynamodb_releases(server.table_url(table_name())) as releases:
            yield releases
        return
    postgres = request.param == "postgres"
    path = f"sqlite:///{tmp_path}/releases.db"
    with sql_releases(request.getfixturevalue("postgres_url") if postgres else path) as releases:
        yield releases


def test_i10_old_code_works_on_a_schema_that_was_only_expanded(release: Release) -> None:
    old = release(0, 0)
    old.schedules.put(Schedule("ann", "old", "0 9 * * *", "jobs", "clean"), now=NINE - 1)
    new = release(1, 0)
    new.schedules.put(Schedule("ann", "new", "0 9 * * *", "jobs", "clean"), now=NINE - 1)
    old.check_schema()
    assert {claimed.key for claimed in old.index.claim_due(NINE)} == {"old", "new"}
    assert not new.index.claim_due(NINE)


def test_i10_old_code_is_refused_on_a_contracted_schema_and_told_why(release: Release) -> None:
    old = release(0, 0)
    release(1, 0)
    release(2, 1)
    with pytest.raises(SchemaOutdated, match="Deploy a newer release"):
        old.check_schema()


def test_i10_a_rolled_back_deployment_leaves_the_newer_schema(release: Release) -> None:
    new = release(1, 0)
    old = release(0, 0)
    old.check_schema()
    new.schedules.put(Schedule("ann", "new", "0 9 * * *", "jobs", "clean"), now=NINE - 1)
    assert [claimed.key for claimed in old.index.claim_due(NINE)] == ["new"]

"""Claimers that are killed at every instant: nothing is lost, nothing made twice, in any store."""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest
from duetick.core.store import Store
from duetick.stores import open_store
from duetick.stores.sqlite.database import connect_file
from duetick.stores.sqlite.shelf import open_sqlite

from tests.integration.killed_claimers import Landed, Massacre
from tests.lab.dynamodb import DynamoDB, table_name
from tests.lab.postgres import Postgres, connect, drop_database, fresh_database

pytestmark = pytest.mark.slow

KILLS = 10
SERVED = """
SELECT count(*) FROM pg_stat_activity
WHERE datname = current_database() AND application_name = 'claimer'
"""


@dataclass
class PostgresMassacre(Massacre):
    """The server goes on for a moment after its client was killed: wait till it has ended."""

    url: str = ""

    def _look(self, aim: Landed) -> Landed:
        with connect(self.url) as connection:
            while connection.run(SERVED)[0][0]:
                time.sleep(0.001)
        return super()._look(aim)


@pytest.fixture(scope="module")
def sqlite(tmp_path_factory: pytest.TempPathFactory) -> Massacre:
    folder = tmp_path_factory.mktemp("massacre")
    return _carried_out(Massacre(partial(opened_without_address, folder / "duetick.db"), KILLS))


@pytest.fixture(scope="module")
def on_postgres(postgres: Postgres) -> Iterator[Massacre]:
    url = fresh_database(postgres)
    store, claimers = (
        partial(open_store, each) for each in (url, f"{url}&application_name=claimer")
    )
    yield _carried_out(PostgresMassacre(store, KILLS, claimer_opens=claimers, url=url))
    drop_database(postgres, url)


@pytest.fixture(scope="module")
def on_dynamodb_local(dynamodb_local: DynamoDB) -> Massacre:
    store = partial(open_store, dynamodb_local.table_url(table_name()))
    return _carried_out(Massacre(store, KILLS))


def opened_without_address(file: Path) -> Store:
    """Open a store as its author would: by a function, here and in each process."""
    return Store(open_sqlite(connect_file(str(file))))


def _carried_out(massacre: Massacre) -> Massacre:
    massacre.store().migrate()
    massacre.run(most=1_000)
    massacre.finish()
    return massacre


@pytest.fixture(scope="module", params=["sqlite", "on_postgres", "on_dynamodb_local"])
def massacre(request: pytest.FixtureRequest) -> Iterator[Massacre]:
    massacre: Massacre = request.getfixturevalue(request.param)
    yield massacre
    massacre.store().close()


@pytest.mark.parametrize("kind", Landed)
def test_t05_claimers_were_killed_at_every_instant(massacre: Massacre, kind: Landed) -> None:
    assert massacre.landed[kind] >= KILLS


def test_t05_every_time_is_in_the_ledger_once_whoever_was_killed(massacre: Massacre) -> None:
    assert massacre.recorded() == massacre.expected()


def test_t05_what_the_killed_had_claimed_is_handed_out_once_more(massacre: Massacre) -> None:
    assert massacre.recovered() == massacre.expected()

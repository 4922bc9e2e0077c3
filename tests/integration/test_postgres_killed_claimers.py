"""Claimers of Postgres that are killed at every instant: nothing is lost, nothing made twice."""

from collections.abc import Iterator

import pytest
from duetick.stores import open_store

from tests.integration.killed_claimers import Landed, Massacre
from tests.lab.postgres import Postgres, connect, drop_database, fresh_database

KILLS = 60
WRITING = """
SELECT count(*) FROM pg_stat_activity
WHERE datname = current_database() AND backend_xid IS NOT NULL AND pid <> pg_backend_pid()
"""


class PostgresMassacre(Massacre):
    """The server goes on for a moment after its client was killed: wait till it has ended."""

    def _look(self, aim: Landed) -> Landed:
        with connect(self.url) as connection:
            while connection.run(WRITING)[0][0]:
                pass
        return super()._look(aim)


@pytest.fixture(scope="module")
def massacre(postgres: Postgres) -> Iterator[Massacre]:
    url = fresh_database(postgres)
    store = open_store(url)
    store.migrate()
    store.close()
    massacre = PostgresMassacre(url, KILLS)
    massacre.run(most=1_000)
    massacre.finish()
    yield massacre
    massacre.store().close()
    drop_database(postgres, url)


@pytest.mark.slow
@pytest.mark.parametrize("kind", Landed)
def test_t05_claimers_were_killed_at_every_instant(massacre: Massacre, kind: Landed) -> None:
    assert massacre.landed[kind] >= KILLS


@pytest.mark.slow
def test_t05_every_time_is_in_the_ledger_once_whoever_was_killed(massacre: Massacre) -> None:
    assert massacre.recorded() == massacre.expected()


@pytest.mark.slow
def test_t05_what_the_killed_had_claimed_is_handed_out_once_more(massacre: Massacre) -> None:
    assert massacre.recovered() == massacre.expected()

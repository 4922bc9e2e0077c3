"""SQLite under several processes, and under processes that are killed."""

from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import pytest
from duetick.stores import open_store
from duetick.testing.conformance.samples import NOON, SOON

from tests.integration.claimers import index_due, race_claimers
from tests.integration.killed_claimers import Landed, Massacre

CLAIMERS = 8
KILLS = 60


def migrated(folder: Path) -> str:
    """The address of a new database."""
    url = f"sqlite:///{folder / 'duetick.db'}"
    store = open_store(url)
    store.migrate()
    store.close()
    return url


@pytest.fixture
def url(tmp_path: Path) -> str:
    return migrated(tmp_path)


@pytest.mark.slow
def test_i05_eight_processes_claim_disjoint_sets_that_are_everything(url: str) -> None:
    store = open_store(url)
    keys = index_due(store, 2_000)
    found = race_claimers(url, CLAIMERS, SOON, 25)
    claimed = sorted(chain.from_iterable(found))
    assert claimed == [("ada", key, NOON, "schedule") for key in keys]
    assert list(store.index.claim_due(SOON)) == []
    store.close()


@pytest.fixture(scope="module")
def massacre(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Massacre]:
    massacre = Massacre(migrated(tmp_path_factory.mktemp("massacre")), KILLS)
    massacre.run(most=1_000)
    massacre.finish()
    yield massacre
    massacre.store().close()


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

"""SQLite under several processes."""

from functools import partial
from itertools import chain
from pathlib import Path

import pytest
from duetick.stores import open_store
from duetick.testing.conformance.samples import NOON, SOON

from tests.integration.claimers import index_due, race_claimers

CLAIMERS = 8


@pytest.fixture
def url(tmp_path: Path) -> str:
    url = f"sqlite:///{tmp_path / 'duetick.db'}"
    store = open_store(url)
    store.migrate()
    store.close()
    return url


@pytest.mark.slow
def test_i05_eight_processes_claim_disjoint_sets_that_are_everything(url: str) -> None:
    store = open_store(url)
    keys = index_due(store, 2_000)
    found = race_claimers(partial(open_store, url), CLAIMERS, SOON, 25)
    claimed = sorted(chain.from_iterable(found))
    assert claimed == [("ada", key, NOON, "schedule") for key in keys]
    assert list(store.index.claim_due(SOON)) == []
    store.close()

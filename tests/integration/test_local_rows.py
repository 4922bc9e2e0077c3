"""M-05 over HTTP: a row of five columns goes through a path that every gateway takes."""

from pathlib import Path

import pytest
from duetick.domain.schedule import IndexRow
from duetick.domain.states import State

from tests.integration.local_product import NINE, Clock, product


def test_m05_a_row_without_a_flow_fires_through_the_api(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = f"sqlite:///{tmp_path}/rows.db"
    monkeypatch.setenv("DUETICK_ROW_FLOW", "digests/clean_up")
    with product(address, Clock(NINE), monkeypatch) as made:
        made.store.index.upsert(IndexRow("ann", "digest", "0 9 * * *", None, NINE))
        assert made.tick()["delivered"] == 1
        (ended,) = made.store.ledger.find("ann", "digest")
    assert ended.state is State.SUCCEEDED

"""The functions, on a store of the test's own."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from duetick.core.store import Store
from duetick.runtime import wiring
from duetick.stores import open_store

from tests.integration.events.recorded import Handle, load_and_handle
from tests.integration.local_product import NINE, Clock


@pytest.fixture
def clock() -> Clock:
    return Clock(NINE - 1_800_000)


@pytest.fixture
def store(tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    """The store that the functions use."""
    address = f"sqlite:///{tmp_path}/events.db"
    opened = open_store(address, clock=clock)
    monkeypatch.setenv("DUETICK_STORE", address)
    monkeypatch.setenv("DUETICK_API_URL", "http://127.0.0.1:9/v1")
    monkeypatch.setenv("POWERTOOLS_METRICS_DISABLED", "true")
    monkeypatch.setattr(wiring, "store", lambda: opened)
    yield opened
    opened.close()


@pytest.fixture
def handle(store: Store) -> Handle:
    """Each handler as at a cold start, on a migrated store."""
    store.migrate()
    return load_and_handle

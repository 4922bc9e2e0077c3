"""Claims on Postgres beside occurrences that the ledger already holds."""

import pytest
from duetick.core.store import Store
from duetick.domain.identity import SCHEDULE_ORIGIN
from duetick.domain.schedule import IndexRow, NewOccurrence
from duetick.testing.conformance.suite import start

T = 1_700_000_040_000
HOURLY = "0 * * * *"


@pytest.mark.parametrize("others", [0, 1, 5])
def test_j13_what_the_ledger_holds_already_is_not_handed_out(store: Store, others: int) -> None:
    start(store, NewOccurrence("ann", "taken", HOURLY, None, T, SCHEDULE_ORIGIN, T), T)
    store.index.upsert(IndexRow("ann", "taken", HOURLY, None, T))
    for n in range(others):
        store.index.upsert(IndexRow("ann", f"free{n}", HOURLY, None, T))
    claimed = store.index.claim_due(T)
    assert sorted(one.key for one in claimed) == [f"free{n}" for n in range(others)]
    row = store.index.get("ann", "taken")
    assert row is not None
    assert row.next_fire_at > T


def test_i02_what_comes_late_in_a_tick_is_claimed_in_that_tick(store: Store) -> None:
    for n in range(4):
        store.index.upsert(IndexRow("ann", f"k{n}", HOURLY, None, T - n))
    assert len(store.index.claim_due(T, 2)) == 2
    store.index.upsert(IndexRow("ann", "late", HOURLY, None, T - 1_000))
    claimed = [key for _ in range(4) for key in (o.key for o in store.index.claim_due(T, 2))]
    assert sorted(claimed) == ["k0", "k1", "late"]
    assert store.index.claim_due(T) == []


def test_any_text_in_a_row_comes_back_as_it_was(store: Store) -> None:
    names = ["a;b,c", 'q"{}\\', "\x1f\n\t", "日本 🎈", "NULL", "'; --"]
    for name in names:
        store.index.upsert(IndexRow(name, name, HOURLY, None, T, flow=name))
    claimed = store.index.claim_due(T)
    assert sorted((one.user_id, one.key, one.flow) for one in claimed) == sorted(
        (name, name, name) for name in names
    )

"""J-10, O-01: operators recover a store that was restored from a backup, over the API."""

import pytest
from duetick.client import ApiError
from duetick.core.store import Store
from duetick.core.witness import check_witness
from duetick.domain.errors import StoreRestored
from duetick.domain.states import Reason
from duetick.operators import Operators
from duetick.runtime import wiring
from duetick.testing.conformance.restoring import AFTER, KeptWitness, restore
from duetick.testing.conformance.samples import NOON, SECOND, schedule

from tests.integration.local_product import Product


@pytest.fixture
def witness(anywhere: Product, monkeypatch: pytest.MonkeyPatch) -> KeptWitness:
    """Return the witness of a store with an hourly schedule. The store was restored from a
    backup.
    """
    hourly = schedule(cron="0 * * * *")
    anywhere.store.schedules.put(hourly, now=NOON - SECOND)
    kept = restore(anywhere.store)
    anywhere.clock.now = AFTER
    monkeypatch.setattr(wiring, "witness", lambda: kept)
    return kept


@pytest.fixture
def office(anywhere: Product) -> Operators:
    stack = anywhere.stack
    return Operators(stack.server.url, token=stack.operator, why="the disk died")


def claims(store: Store, witness: KeptWitness) -> bool:
    """Return True if a tick may claim."""
    try:
        check_witness(store, witness, AFTER)
    except StoreRestored:
        return False
    return True


def missed(store: Store) -> int:
    """Return the number of missed times: one before the backup, and those that the recovery
    records.
    """
    found = store.ledger.find("ada", "digest", limit=100)
    return sum(one.count for one in found if one.reason is Reason.MISSED)


def test_j10_a_dry_run_says_what_a_recovery_does_and_the_recovery_does_it(
    anywhere: Product, office: Operators, witness: KeptWitness
) -> None:
    store = anywhere.store
    foreseen = office.recover()
    assert (foreseen["dryRun"], foreseen["restored"], foreseen["recorded"]) == (True, True, 5)
    assert (claims(store, witness), missed(store)) == (False, 1)
    done = office.recover("skip", dry_run=False)
    assert (done["dryRun"], done["recorded"], done["complete"]) == (False, 5, True)
    assert (claims(store, witness), missed(store)) == (True, 6)
    assert office.recover("skip", dry_run=False)["restored"] is False


@pytest.mark.usefixtures("witness")
def test_o01_a_recovery_is_recorded_and_so_is_its_dry_run(office: Operators) -> None:
    office.recover()
    office.recover("latest", dry_run=False)
    found = {(one["verb"], one["outcome"], one["why"]) for one in office.operations()}
    assert found == {
        ("recover_store", "dry_run", "the disk died"),
        ("recover_store", "done", "the disk died"),
    }


def test_j10_a_witness_that_is_away_or_missing_is_told(
    office: Operators, witness: KeptWitness, monkeypatch: pytest.MonkeyPatch
) -> None:
    witness.away = True
    with pytest.raises(ApiError) as away:
        office.recover()
    assert (away.value.status, away.value.code) == (503, "store_unavailable")
    monkeypatch.setattr(wiring, "witness", lambda: None)
    with pytest.raises(ApiError) as missing:
        office.recover()
    assert (missing.value.status, missing.value.code) == (400, "invalid_query")

"""A write that DynamoDB refuses fails its own schedule alone. If DynamoDB refuses it for a moment,
the store tries it again.
"""

from collections.abc import Callable
from dataclasses import replace

import pytest
from duetick.core.managed.keeping import BellKeeper
from duetick.core.store import Store
from duetick.domain.attempts import Begun, Outcome
from duetick.domain.bells import bell_name
from duetick.domain.errors import StoreUnavailable
from duetick.domain.occurrence import IndexRow, Occurrence
from duetick.domain.states import Reason, State
from duetick.stores.dynamodb import table
from duetick.stores.dynamodb.service import ServiceRefusal, ServiceSilent
from duetick.stores.dynamodb.shelf import WRITERS
from duetick.testing.conformance.managing import Belfry

from tests.integration.dynamodb_case import MINUTE, NOON, Case, DynamoStore, requests, schedule
from tests.lab.dynamodb import DynamoDB

LARGEST_ITEM = 400 * 1024
NOON_EACH_DAY = "0 12 * * *"
FAILED = Outcome(State.FAILED, Reason.FAILED, "no " * 300, told="no " * 300)


@pytest.fixture
def dynamodb(dynamodb_local: DynamoDB) -> DynamoDB:
    """moto weighs no item that an update makes larger."""
    return dynamodb_local


def claim(store: DynamoStore, *, spare: int) -> list[Occurrence]:
    """Claim a schedule whose item has so much room before the claim, and two others."""
    flow = "f" * (LARGEST_ITEM - spare)
    store.index.upsert(IndexRow("ada", "large", NOON_EACH_DAY, None, NOON, flow))
    for key in ("m", "n"):
        store.index.upsert(IndexRow("ada", key, NOON_EACH_DAY, None, NOON))
    claimed = sorted(store.index.claim_due(NOON), key=lambda one: one.key)
    assert [one.key for one in claimed] == ["large", "m", "n"]
    return [replace(one, flow="") for one in claimed]


def states(store: Store) -> dict[str, State]:
    """The state of each schedule's occurrence."""
    return {one.key: one.state for one in store.ledger.find("ada")}


def test_q02_a_begin_that_an_item_has_no_room_for_is_refused_alone(case: Case) -> None:
    store = case.migrated()
    refused, *begun = store.ledger.begin_many(claim(store, spare=210), now=NOON)
    assert isinstance(refused, StoreUnavailable)
    assert all(isinstance(one, Begun) for one in begun)
    assert [states(store)[key] for key in ("m", "n")] == [State.PROCESSING] * 2


def test_q02_an_end_that_an_item_has_no_room_for_is_refused_alone(case: Case) -> None:
    store = case.migrated()
    begun = store.ledger.begin_many(claim(store, spare=700), now=NOON)
    ends = [(one.occurrence, FAILED) for one in begun if isinstance(one, Begun)]
    refused, *ended = store.ledger.settle_many(ends, now=NOON)
    assert isinstance(refused, StoreUnavailable)
    assert [one.state for one in ended if isinstance(one, Occurrence)] == [State.DEAD] * 2
    assert states(store) == {"large": State.PROCESSING, "m": State.DEAD, "n": State.DEAD}


def test_q02_a_service_that_falls_silent_is_not_asked_for_each_of_a_pack(case: Case) -> None:
    """Each question takes half a minute, and the invocation has no more."""
    store = case.migrated()
    requested: list[str] = []

    def fall_silent(operation: str, _request: dict[str, object]) -> None:
        if operation == "UpdateItem":
            requested.append(operation)
            raise ServiceSilent("no answer")

    for number in range(100):
        store.index.upsert(IndexRow("ada", f"k{number}", NOON_EACH_DAY, None, NOON))
    claimed = store.index.claim_due(NOON)
    with requests(store, fall_silent):
        answers = store.ledger.begin_many(claimed, now=NOON)
    assert all(isinstance(one, StoreUnavailable) for one in answers)
    assert len(requested) <= WRITERS


def contend(times: int) -> Callable[[str, dict[str, object]], None]:
    """Refuse each single write so many times: a transaction of another process has its item."""
    left = dict.fromkeys(("UpdateItem", "DeleteItem"), times)

    def see(operation: str, _request: dict[str, object]) -> None:
        if left.get(operation):
            left[operation] -= 1
            raise ServiceRefusal(operation, "TransactionConflictException", "ongoing")

    return see


def test_s01_a_bell_is_kept_though_a_transaction_has_its_item(
    case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That transaction may come to nothing. Nobody else brings the bell then: a tick of a managed
    store comes once an hour.
    """
    monkeypatch.setattr(table, "_waits", lambda: iter([0.0] * 8))
    store, belfry = case.migrated(), Belfry()
    store.schedules.put(schedule(), now=NOON)
    with requests(store, contend(2)):
        store.shelf.make_bells_pending([("ada", "digest")], NOON)
    for times in (1, 2):
        with requests(store, contend(times)):
            BellKeeper(store, belfry).keep(("ada", "digest"))
        assert store.shelf.pending_bells(10) == []
        assert list(belfry.bells) == [bell_name("ada", "digest")]
        store.shelf.make_bells_pending([("ada", "digest")], NOON)


def test_s01_a_bell_that_is_freed_is_free_though_a_transaction_has_its_item(
    case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table, "_waits", lambda: iter([0.0] * 8))
    store = case.migrated()
    store.shelf.make_bells_pending([("ada", "digest")], NOON)
    store.shelf.take_bell(("ada", "digest"), NOON, NOON + MINUTE)
    with requests(store, contend(2)):
        store.shelf.free_bell(("ada", "digest"), NOON + MINUTE)
    assert store.shelf.take_bell(("ada", "digest"), NOON, NOON + MINUTE)


def test_an_item_that_stays_in_transactions_of_others_is_said_to(
    case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table, "_waits", lambda: iter([0.0] * 8))
    store = case.migrated()
    with requests(store, contend(100)), pytest.raises(StoreUnavailable, match="in others'"):
        store.shelf.make_bells_pending([("ada", "digest")], NOON)

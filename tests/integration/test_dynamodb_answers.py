"""A write whose answer is lost on the way is sent again, and then finds itself done."""

from collections.abc import Callable

import pytest
from duetick.domain.attempts import SUCCEEDED, Begun
from duetick.domain.schedule import Occurrence
from duetick.domain.states import State
from duetick.stores.dynamodb.errors import Conflict
from duetick.stores.dynamodb.table import Item, Key, Table, Update

from tests.integration.dynamodb_case import HOUR, NOON, Case, DynamoStore, schedule
from tests.lab.dynamodb_service import watch


@pytest.fixture
def lose_an_answer(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """The next conditional write is carried out, and then seems to have been refused."""

    def lose() -> None:
        lost: list[str] = []
        update, put = Table.update, Table.put

        def lost_update(self: Table, key: Key, change: Update) -> Item:
            answer = update(self, key, change)
            if not lost:
                lost.append(key[1])
                raise Conflict
            return answer

        def lost_put(self: Table, item: Item, rev: int | None = None) -> None:
            put(self, item, rev)
            if not lost and rev is not None:
                lost.append(item["s"]["S"])
                raise Conflict

        monkeypatch.setattr(Table, "update", lost_update)
        monkeypatch.setattr(Table, "put", lost_put)

    return lose


def claimed(store: DynamoStore) -> Occurrence:
    """Return the one occurrence that is due."""
    (occurrence,) = store.index.claim_due(NOON + HOUR)
    return occurrence


def begun(store: DynamoStore, occurrence: Occurrence) -> Occurrence:
    """Return the attempt that has to be allowed."""
    answer = store.ledger.begin(occurrence, now=NOON + HOUR)
    assert isinstance(answer, Begun)
    return answer.occurrence


def test_i04_a_claim_whose_answer_was_lost_hands_on_what_it_claimed(
    case: Case, lose_an_answer: Callable[[], None]
) -> None:
    store = case.migrated()
    store.schedules.put(schedule())
    lose_an_answer()
    assert claimed(store).nominal_at == NOON + HOUR


def test_t07_a_begin_whose_answer_was_lost_is_allowed_once(
    case: Case, lose_an_answer: Callable[[], None]
) -> None:
    store = case.migrated()
    store.schedules.put(schedule())
    occurrence = claimed(store)
    lose_an_answer()
    assert begun(store, occurrence).attempts == 1


def test_t07_a_begin_by_another_is_not_taken_for_ones_own(case: Case) -> None:
    store = case.migrated()
    store.schedules.put(schedule())
    occurrence = claimed(store)
    begun(store, occurrence)
    assert not isinstance(store.ledger.begin(occurrence, now=NOON + HOUR), Begun)


def test_t07_a_settle_whose_answer_was_lost_is_told_what_it_settled(
    case: Case, lose_an_answer: Callable[[], None]
) -> None:
    store = case.migrated()
    store.schedules.put(schedule())
    running = begun(store, claimed(store))
    lose_an_answer()
    settled = store.ledger.settle(running, SUCCEEDED, now=NOON + HOUR)
    assert settled is not None
    assert settled.state is State.SUCCEEDED


def test_m01_a_put_whose_answer_is_lost_can_be_asked_for_again(case: Case) -> None:
    """The put has a token: without one, its repeat would look like another writer's change."""
    store = case.migrated()
    kept = store.schedules.put(schedule())
    written: list[bool] = []

    def before(operation: str, request: dict[str, object]) -> None:
        if operation in ("PutItem", "UpdateItem", "TransactWriteItems"):
            written.append("ClientRequestToken" in request)

    watch(store.shelf, before)
    store.schedules.put(schedule(given="new"), if_version=kept.version)
    assert written == [True]

"""An erased user is in no item of the table, callers' keys included."""

import json
from dataclasses import replace

from duetick.domain.attempts import SUCCEEDED, Begun, CallerKey
from duetick.domain.rows import new_occurrence
from duetick.domain.schedule import Occurrence, Record
from duetick.testing.conformance.suite import run

from tests.integration.dynamodb_case import HOUR, MINUTE, NOON, Case, DynamoStore, schedule


def called(store: DynamoStore, user_id: str, key: CallerKey, now: int) -> Occurrence:
    """Return a caller's run with a key of its own, after its success."""
    record = Record.of(schedule(user_id=user_id))
    asked = new_occurrence(record, now, f"call:{now}", now)
    begun = run(store, replace(asked, idempotency_key=key.key), now, key)
    assert isinstance(begun, Begun)
    settled = store.ledger.settle(begun.occurrence, SUCCEEDED, now=now)
    assert settled
    return settled


def test_nothing_in_the_table_names_an_erased_user(case: Case) -> None:
    store, erased = case.migrated(), "ursula"  # no letters that the table's random names may have
    for user_id in (erased, "bob"):
        store.schedules.put(schedule(user_id=user_id, external_id=user_id), now=NOON)
        called(store, user_id, CallerKey("reminders", f"order of {user_id}", HOUR), NOON)
    assert store.erase(erased) == 1
    left = [item for item in case.items() if item["p"]["S"] != "J"]
    assert [item for item in left if erased in json.dumps(item)] == []
    assert "order of bob" in json.dumps(left)


def test_a_key_that_is_anothers_by_now_stays(case: Case) -> None:
    store, key = case.migrated(), CallerKey("reminders", "order-7", MINUTE)
    for user_id, now in (("ada", NOON), ("bob", NOON + HOUR)):
        store.schedules.put(schedule(user_id=user_id), now=now)
        called(store, user_id, key, now)
    store.erase("ada")
    assert [item["p"]["S"] for item in case.items() if item["s"]["S"] == "K"] == [
        "K#reminders#order-7"
    ]

"""The DynamoDB variant of the index: sparse, sharded, queried, and claimed by condition."""

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from duetick.domain.attempts import SUCCEEDED, Begun
from duetick.domain.errors import InvalidSchedule
from duetick.domain.schedule import IndexRow, Principal, Schedule
from duetick.domain.states import State
from duetick.stores.dynamodb.schema import SCHEMA_KEY
from duetick.stores.dynamodb.table import key_attributes

from tests.integration.dynamodb_case import (
    HOUR,
    MINUTE,
    NOON,
    Case,
    DynamoStore,
    requests,
    schedule,
)
from tests.lab.dynamodb import DynamoDB


def fire(store: DynamoStore, now: int) -> None:
    """Run one tick: everything that is due succeeds."""
    while claimed := store.index.claim_due(now, 10):
        for occurrence in claimed:
            begun = store.ledger.begin(occurrence, now=now)
            assert isinstance(begun, Begun)
            store.ledger.settle(begun.occurrence, SUCCEEDED, now=now)


def test_g01_a_paused_schedule_is_absent_from_the_index(case: Case) -> None:
    store = case.migrated()
    kept = store.schedules.put(schedule())
    assert case.due() == ["active"]
    store.schedules.put(replace(kept, enabled=False))
    assert case.due() == []


def test_g02_nothing_scans_or_filters_whatever_is_asked(case: Case) -> None:
    store = case.migrated()
    asked: list[tuple[str, str]] = []
    with requests(store, lambda name, params: asked.append((name, str(sorted(params))))):
        kept = store.schedules.put(schedule(external_id="outside"))
        fire(store, NOON + HOUR)
        store.ledger.claim_waiting(NOON + 2 * HOUR)
        store.ledger.find("ada")
        store.ledger.find(state=State.DEAD)
        store.ledger.find(state=State.RETRYING)
        store.schedules.find_by_external("outside")
        store.schedules.list("ada")
        store.index.unreadable()
        store.check(now=NOON + 2 * HOUR)
        store.rebuild(now=NOON + 2 * HOUR)
        store.schedules.delete(kept.user_id, kept.key)
    assert {name for name, _ in asked}.isdisjoint({"Scan", "ExecuteStatement"})
    assert not [params for _, params in asked if "FilterExpression" in params]


def test_g02_every_page_of_what_is_due_is_read(case: Case) -> None:
    store = case.migrated()
    for number in range(25):
        row = IndexRow(f"u{number}", "k", "0 * * * *", None, NOON + MINUTE - number * 1_000)
        store.index.upsert(row)
    claimed = [store.index.claim_due(NOON + MINUTE, 3) for _ in range(9)]
    users = [occurrence.user_id for chunk in claimed for occurrence in chunk]
    assert users == [f"u{number}" for number in reversed(range(25))]
    assert store.index.claim_due(NOON + MINUTE, 3) == []


def test_g03_a_row_that_was_changed_since_it_was_seen_is_not_claimed(case: Case) -> None:
    store, other = case.migrated(), case.open()
    kept = store.schedules.put(schedule())
    moved: list[Schedule] = []

    def change_meanwhile(name: str, _: dict[str, object]) -> None:
        if name == "PutItem" and not moved:
            moved.append(other.schedules.put(replace(kept, cron="30 * * * *"), now=NOON + HOUR))

    with requests(store, change_meanwhile):
        assert store.index.claim_due(NOON + HOUR) == []
    found = store.ledger.find("ada")
    assert [(one.nominal_at, one.state, one.reason) for one in found] == [
        (NOON + HOUR, State.CANCELLED, "superseded")
    ]


@pytest.mark.parametrize(("before", "after"), [(1, 4), (4, 1), (4, 16)])
def test_g04_changing_the_number_of_shards_loses_nothing(
    case: Case, before: int, after: int
) -> None:
    old = case.migrated(f"&shards={before}")
    for number in range(20):
        old.schedules.put(schedule(f"k{number:02}"))
    new = case.open(f"&shards={after}")
    new.schedules.put(schedule("new"))
    claimed = new.index.claim_due(NOON + HOUR, 100)
    assert len(claimed) == 21
    assert old.index.claim_due(NOON + HOUR, 100) == []


def test_g04_ticks_read_every_number_ever_in_use_until_a_rebuild_has_moved_the_rows(
    case: Case,
) -> None:
    """The `Shards` of the stack were changed twice, while functions of before still write."""
    stores = [case.migrated(), case.open("&shards=4"), case.open("&shards=16")]
    for made, store in enumerate(stores):
        for number in range(8):
            store.schedules.put(schedule(f"{made}-{number}"))
    stores[0].schedules.put(schedule("by-a-function-of-before"))
    new = stores[-1]
    fire(new, NOON + HOUR)
    assert shards(case) == ["1", "16", "4"]
    assert new.rebuild(now=case.now) == 0, "a fire writes the row where it belongs now"
    case.now += 10 * MINUTE
    new.rebuild(now=case.now)
    assert shards(case) == ["16"]
    assert set(case.due()) <= {f"active#{shard}" for shard in range(16)}
    fire(new, NOON + 2 * HOUR)
    fired = {(one.key, one.nominal_at) for one in new.ledger.find("ada", limit=100)}
    assert len(fired) == 2 * 25


def test_g04_a_rebuild_moves_rows_to_the_shards_of_now(case: Case) -> None:
    old = case.migrated()
    for number in range(20):
        old.schedules.put(schedule(f"k{number:02}"))
    new = case.open("&shards=4")
    assert new.rebuild(now=case.now) == 20
    assert set(case.due()) <= {f"active#{shard}" for shard in range(4)}
    assert new.rebuild(now=case.now) == 0


def test_g04_a_number_of_shards_goes_out_of_use_when_nobody_writes_under_it(case: Case) -> None:
    case.migrated().schedules.put(schedule())
    new = case.open("&shards=4")
    new.rebuild(now=case.now)
    assert shards(case) == ["1", "4"]
    case.now += 10 * MINUTE
    new.rebuild(now=case.now)
    assert shards(case) == ["4"]


def test_g04_a_number_of_shards_that_is_written_under_again_stays_in_use(case: Case) -> None:
    case.migrated().schedules.put(schedule())
    new = case.open("&shards=4")
    new.rebuild(now=case.now)
    case.open().schedules.put(schedule("late"))
    case.now += 10 * MINUTE
    new.rebuild(now=case.now)
    assert shards(case) == ["1", "4"]
    assert len(new.index.claim_due(NOON + HOUR)) == 2


def shards(case: Case) -> list[str]:
    item = case.endpoint.client().get_item(TableName=case.table, Key=key_attributes(SCHEMA_KEY))
    return sorted(item["Item"]["shards"]["NS"])


def test_g07_none_is_stored_at_no_depth(case: Case) -> None:
    store = case.migrated()
    store.schedules.put(
        replace(schedule(given={"a": None, "b": [None]}), principal=Principal("ada"))
    )
    fire(store, NOON + HOUR)
    fire(store, NOON + 2 * HOUR)
    assert '"NULL"' not in json.dumps(case.items())
    kept = store.schedules.get("ada", "digest")
    assert kept is not None
    assert kept.input == {"a": None, "b": [None]}


def test_g08_of_two_that_take_an_outside_id_at_once_one_is_refused(
    dynamodb_local: DynamoDB,
) -> None:
    """moto lets two transactions at once both pass their condition."""
    case = Case(dynamodb_local)
    stores = [case.migrated(), case.open()]

    def put(number: int) -> bool:
        try:
            stores[number].schedules.put(schedule(f"k{number}", external_id="project-7"))
        except InvalidSchedule:
            return False
        return True

    with ThreadPoolExecutor(2) as pool:
        won = list(pool.map(put, range(2)))
    assert sorted(won) == [False, True]
    owner = stores[0].schedules.find_by_external("project-7")
    assert owner is not None
    assert owner.key == f"k{won.index(True)}"
    case.close()


def test_g08_an_outside_id_that_was_given_up_is_free(case: Case) -> None:
    store = case.migrated()
    kept = store.schedules.put(schedule("a", external_id="project-7"))
    store.schedules.put(replace(kept, external_id=None))
    store.schedules.put(schedule("b", external_id="project-7"))
    store.schedules.delete("ada", "b")
    assert store.schedules.find_by_external("project-7") is None
    store.schedules.put(schedule("c", external_id="project-7"))


@pytest.mark.parametrize("size", [10, 390, 410, 60_000])
def test_m01_an_input_of_any_size_comes_back_whole(case: Case, size: int) -> None:
    store = case.migrated()
    store.schedules.put(schedule(given={"text": "x" * size}))
    kept = store.schedules.get("ada", "digest")
    assert kept is not None
    assert kept.input == {"text": "x" * size}
    assert store.schedules.put(kept) == kept
    assert store.schedules.list("ada").schedules == (kept,)
    begun = store.ledger.begin(store.index.claim_due(NOON + HOUR)[0], now=NOON + HOUR)
    assert isinstance(begun, Begun)
    assert begun.schedule is not None
    assert begun.schedule.input == {"text": "x" * size}


def test_m01_an_input_that_shrinks_leaves_no_item_behind(case: Case) -> None:
    store = case.migrated()
    kept = store.schedules.put(schedule(given="x" * 1_000))
    store.schedules.put(replace(kept, input="y"))
    assert not [item for item in case.items() if item["p"]["S"].startswith("I#")]
    found = store.schedules.get("ada", "digest")
    assert found is not None
    assert found.input == "y"


def test_m06_a_static_schedule_has_no_user_and_fires(case: Case) -> None:
    store = case.migrated()
    store.schedules.put(schedule("reminders/nightly", user_id=""))
    fire(store, NOON + HOUR)
    fire(store, NOON + 2 * HOUR)
    found = store.ledger.find("", "reminders/nightly")
    assert [one.nominal_at for one in found] == [NOON + 2 * HOUR, NOON + HOUR]
    assert [one.key for one in store.schedules.list("").schedules] == ["reminders/nightly"]


def test_j13_nothing_fires_twice_when_the_row_is_set_back_after_its_history_has_gone(
    case: Case,
) -> None:
    store = case.migrated()
    store.schedules.put(schedule())
    for hour in range(1, 4):
        fire(store, NOON + hour * HOUR)
    row = store.index.get("ada", "digest")
    assert row is not None
    case.drop("O#")
    store.index.upsert(replace(row, next_fire_at=NOON + HOUR))
    assert store.index.claim_due(NOON + 3 * HOUR) == []


def test_a02_a_walk_sees_what_is_deleted_or_made_again_behind_its_place(case: Case) -> None:
    store, names = case.migrated(), {f"k{number}" for number in range(8)}
    for key in names:
        store.schedules.put(schedule(key), now=NOON)
    moved = sorted(names)[::2]
    for key in moved[::2]:
        store.schedules.delete("ada", key, now=NOON + MINUTE)
    for place in (2, 5):
        until = NOON + place * HOUR
        walk = iter(store.shelf.accounts(NOON - 1, until, ""))
        seen = [next(walk) for _ in range(place)]
        for key in moved:
            _delete_or_make_again(store, key, until + MINUTE)
        assert {account.key for account in (*seen, *walk)} == names


def _delete_or_make_again(store: DynamoStore, key: str, now: int) -> None:
    if store.schedules.get("ada", key):
        store.schedules.delete("ada", key, now=now)
    else:
        store.schedules.put(schedule(key), now=now)

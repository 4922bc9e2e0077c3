"""Bounds of DynamoDB: the items of one schedule, and the reads of one page."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest
from duetick.domain.errors import StoreUnavailable
from duetick.domain.schedule import IndexRow
from duetick.domain.states import State
from duetick.stores.dynamodb import shelf

from tests.integration.dynamodb_case import MINUTE, NOON, Case, DynamoStore, requests, schedule

LARGEST_ITEM = 400 * 1024


def fill_an_item(store: DynamoStore, key: str) -> None:
    """Index an expression that just fits: why it cannot be read does not, beside it."""
    for spare in range(0, 10_000, 200):
        row = IndexRow("ada", key, "*" * (LARGEST_ITEM - spare), None, NOON)
        with suppress(StoreUnavailable):
            store.index.upsert(row)
            return
    raise AssertionError("no such row was taken")


@contextmanager
def looked_at(store: DynamoStore) -> Iterator[list[object]]:
    """Yield the keys of the items that are read in the block."""
    keys: list[object] = []

    def seen(name: str, params: dict[str, object]) -> None:
        if name == "BatchGetItem":
            keys.extend(key for each in _tables(params) for key in each["Keys"])

    with requests(store, seen):
        yield keys


def _tables(params: dict[str, object]) -> list[dict[str, list[object]]]:
    asked = params["RequestItems"]
    assert isinstance(asked, dict)
    return list(asked.values())


def test_i13_a_row_that_its_item_has_no_room_to_poison_delays_no_other(
    case: Case, caplog: pytest.LogCaptureFixture
) -> None:
    store = case.migrated()
    fill_an_item(store, "huge")
    store.index.upsert(IndexRow("ada", "good", "0 12 * * *", None, NOON))
    assert [o.key for o in store.index.claim_due(NOON)] == ["good"]
    assert [record.action for record in caplog.records if hasattr(record, "action")] == [
        "item_too_large"
    ]


def test_l01_a_page_reads_past_no_more_than_so_many_that_are_done(
    case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A user with a hundred thousand of them gets an answer, and goes on."""
    monkeypatch.setattr(shelf, "LISTED_AT_ONCE", 2)
    monkeypatch.setattr(shelf, "MOST_LISTED", 6)
    store = case.migrated()
    for number in range(20):
        cron = "0 * * * *" if number in (7, 18) else "at(2027-01-15T12:00:00)"
        store.schedules.put(schedule(f"k{number:02}", cron), now=NOON - 1)
    while store.index.claim_due(NOON):
        pass
    pages: list[list[str]] = []
    cursor: str | None = None
    asked: list[str] = []
    with requests(store, lambda name, _: asked.append(name)):
        while cursor is not None or not pages:
            page = store.schedules.list("ada", limit=5, cursor=cursor, now=NOON)
            pages.append([one.key for one in page.schedules])
            cursor = page.cursor
            assert asked.count("Query") <= 3 * len(pages) + 1, "one more passes by the jobs"
    assert pages == [[], ["k07"], [], ["k18"]]


def test_g02_a_page_of_the_dead_reads_no_more_than_it_shows(case: Case) -> None:
    store = case.migrated()
    for number in range(40):
        at = NOON + number * MINUTE
        store.index.upsert(IndexRow("ada", f"k{number:02}", "not an expression", None, at))
        store.index.claim_due(at)
    with looked_at(store) as keys:
        found = store.ledger.find(state=State.DEAD, limit=5)
    assert [o.key for o in found] == ["k39", "k38", "k37", "k36", "k35"]
    assert len(keys) <= 2 * 5
    assert len(store.ledger.find(state=State.DEAD)) == 40

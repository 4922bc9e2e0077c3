"""Bounds of DynamoDB: the items of one schedule, and the reads of one page."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace

import pytest
from duetick.domain.attempts import Begun, Outcome
from duetick.domain.errors import StoreUnavailable
from duetick.domain.policies import DAY, Backoff, Delivery, Overlap, Policies, Retry
from duetick.domain.schedule import IndexRow
from duetick.domain.states import Reason, State
from duetick.stores.dynamodb import shelf
from duetick.testing.conformance.suite import start

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

AT_ONCE = Policies(
    overlap=Overlap.ALLOW,
    delivery=Delivery.AT_LEAST_ONCE,
    retry=Retry(Backoff.FIXED, attempts=4, first=10, longest=10),
    longest_lateness=DAY,
    on_failure="send_digest",
)
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


@pytest.mark.slow
@pytest.mark.parametrize(
    ("labels", "text"),
    [("", "\x01"), ("x", "😀"), ("\x01", "\x01")],
    ids=["many_texts", "plain_labels", "escaped_labels"],
)
def test_j13_all_that_is_under_way_has_room_whatever_its_texts_and_labels(
    dynamodb_local: DynamoDB, labels: str, text: str
) -> None:
    """JSON writes one of the characters as six, and each attempt has the labels of its schedule."""
    case = Case(dynamodb_local)
    store, started, now = case.migrated(), NOON, NOON + 100 * MINUTE
    each_minute = schedule(cron="* * * * *", policies=AT_ONCE)
    given = replace(each_minute, labels={"a": labels * 4_095} if labels else {})
    store.schedules.put(given, now=NOON - 1)
    leased = store.index.claim_due(NOON, ahead=100 * MINUTE)
    assert 10 <= len(leased) <= 50
    failed = Outcome(State.FAILED, Reason.FAILED, text * 500, told=text * 500)
    for _ in range(3):
        begun = [store.ledger.begin(one, now=max(started, one.due_at)) for one in leased]
        for one in begun:
            assert isinstance(one, Begun)
            assert store.ledger.settle(one.occurrence, failed, now=now)
        started = now = now + 10_000
        count = len(leased)
        leased = []
        while taken := store.ledger.claim_waiting(now):
            leased += taken
        assert len(leased) == count
    for last in leased:
        start(store, last, now)
    while store.ledger.claim_waiting(now + 2 * HOUR):
        pass
    assert not store.ledger.find("ada", "digest", state=State.PROCESSING)
    case.close()

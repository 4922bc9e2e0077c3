"""The requests of an idle tick to DynamoDB: each costs time and money."""

from collections.abc import Iterator

import pytest
from duetick.core.tick import TickReport, run_tick
from duetick.domain.schedule import IndexRow, Occurrence
from duetick.ports import Delivered

from tests.integration.dynamodb_case import HOUR, MINUTE, NOON, Case, DynamoStore, requests
from tests.lab.dynamodb import DynamoDB


@pytest.fixture
def case(dynamodb: DynamoDB) -> Iterator[Case]:
    case = Case(dynamodb)
    case.migrated().index.upsert(IndexRow("ada", "later", "0 13 * * *", None, NOON + HOUR))
    yield case
    case.close()


class Nowhere:
    """A transport without an answer."""

    def deliver(self, occurrence: Occurrence, *, timeout: float) -> Delivered:
        return Delivered(0, f"{occurrence.key}: nothing in {timeout} s")

    def close(self) -> None:
        """Nothing is open."""


def ticked(store: DynamoStore) -> tuple[list[str], TickReport]:
    """Return the requests of a tick, and its report."""
    asked: list[str] = []
    with requests(store, lambda name, _: asked.append(name)):
        report = run_tick(store, Nowhere())
    return asked, report


def test_a_tick_that_finds_nothing_asks_thrice_and_reports_once(case: Case) -> None:
    """It asks for the standing orders, for the journal, ahead of which the schema stands, and for
    due rows. Its report (J-12) is one write, without a read: nothing else shows that ticks run
    while nothing is due.
    """
    store = case.open()
    for _ in range(3):
        assert ticked(store) == (["Query"] * 3 + ["PutItem"], TickReport())
        case.now += MINUTE


def test_g04_each_shard_that_is_in_use_is_one_request_more(case: Case) -> None:
    case.open("&shards=4").index.upsert(IndexRow("bea", "later", "0 13 * * *", None, NOON + HOUR))
    assert ticked(case.open())[0] == [*["Query"] * (1 + 1 + 1 + 4), "PutItem"]


def test_t12_a_tick_asks_no_more_for_what_it_poisoned_and_lost(case: Case) -> None:
    store = case.open()
    store.index.upsert(IndexRow("ada", "bad", "not a cron", None, NOON))
    assert ticked(store)[1].poisoned == 1
    case.now = NOON + HOUR
    assert ticked(store)[1].failed == 1
    case.now += 2 * HOUR
    asked, report = ticked(store)
    assert (report.lost, report.poisoned) == (1, 0)
    # the orders, the journal until it names nothing more, and what is due
    assert asked.count("Query") == 4


def test_a_claim_reads_no_history_of_times_beyond_the_mark(case: Case) -> None:
    store, asked = case.open(), list[str]()
    store.index.upsert(IndexRow("ada", "often", "* * * * *", None, NOON))
    for claims in (1, 2):
        with requests(store, lambda name, _: asked.append(name)):
            assert len(store.index.claim_due(case.now)) == 1
        assert asked.count("Query") == claims  # what is due
        case.now += MINUTE

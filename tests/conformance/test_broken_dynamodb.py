"""A DynamoDB store that forgets one of its shards is caught, as the broken SQL stores are.

Where nothing stands in that shard it does what a working one does. So only the tests are run, of
the whole suite, that name a schedule which belongs there: a store in memory tells which those are.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

import pytest
from duetick.ports import Store
from duetick.stores import open_store
from duetick.stores.dynamodb.clock import Skew
from duetick.stores.dynamodb.entities import Name
from duetick.stores.dynamodb.index import DynamoIndex
from duetick.stores.dynamodb.items import status_of
from duetick.stores.dynamodb.journal import Journal
from duetick.stores.dynamodb.store import DynamoStore
from duetick.stores.ids import new_id
from duetick.testing import StoreConformance

from tests.conformance.judge import judge, names_of
from tests.conformance.memory_data import Kept
from tests.conformance.memory_store import MemoryStore
from tests.lab.dynamodb import DynamoDB, table_name

SHARDS = 16
FORGOTTEN = "active#2"
"""Of all shards the one in which the fewest of the suite's rows stand."""

CAUGHT_BY = {
    "test_i05_claimers_at_once_get_disjoint_sets_that_are_everything",
    "test_i13_more_poison_than_one_page_is_listed",
    "test_i15_claiming_goes_on_until_several_hundred_are_done",
    "test_i15_one_claim_takes_several_hundred_when_asked",
    "test_j05_traces_are_of_one_occurrence_in_order",
    "test_t01_each_one_that_is_lost_is_told_once",
    "test_t05_lost_leases_beyond_one_page_are_all_handed_out",
}


class ForgetsAShard(DynamoIndex):
    """One partition of the index `due` is not asked."""

    def _due_in(self, status: str, until: int, page: int) -> Iterator[tuple[int, Name]]:
        return iter(()) if status == FORGOTTEN else super()._due_in(status, until, page)


class DynamoSuite(StoreConformance):
    """The suite for it: every client sees the same service."""


@contextmanager
def forgetful(endpoint: DynamoDB) -> Iterator[Store]:
    """A fresh one, empty."""
    store = open_store(f"{endpoint.table_url(table_name())}&shards={SHARDS}")
    assert isinstance(store, DynamoStore)
    store.migrate()
    journal = Journal(store._table, store._entities.layout)
    store.index = ForgetsAShard(store._entities, journal, store.now, new_id, Skew(checked=False))
    yield store
    store.close()


class Names(dict[Name, Kept]):
    """What a store in memory keeps, and every name that it was ever asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: set[Name] = set()

    def setdefault(self, name: Name, default: Kept | None = None) -> Kept:
        self.asked.add(name)
        return super().setdefault(name, default or Kept())


def concerned(name: str) -> bool:
    """Whether a test names a schedule of the shard."""
    every: list[Names] = []

    @contextmanager
    def opened() -> Iterator[Store]:
        store = MemoryStore()
        store._data.kept = names = Names()
        every.append(names)
        yield store

    judge(DynamoSuite(), opened, [name])
    return any(status_of(*asked, SHARDS) == FORGOTTEN for names in every for asked in names.asked)


@pytest.mark.slow
def test_g04_a_store_that_forgets_a_shard_fails_the_tests_of_that_and_no_others(
    dynamodb_local: DynamoDB,
) -> None:
    names = [name for name in names_of(DynamoSuite()) if concerned(name)]
    assert set(names) > CAUGHT_BY
    assert judge(DynamoSuite(), partial(forgetful, dynamodb_local), names).failed == CAUGHT_BY

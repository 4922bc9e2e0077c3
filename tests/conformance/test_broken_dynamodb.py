"""A DynamoDB store that forgets one of its shards is caught, as the broken SQL stores are.

If nothing stands in that shard, such a store works. So of the whole suite only the tests run that
name a schedule of that shard: a store in memory finds these tests.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import islice

import pytest
from duetick.core.store import Store
from duetick.domain.book import Book
from duetick.domain.schedule import ScheduleName
from duetick.stores.dynamodb.items import status_of
from duetick.stores.dynamodb.shelf import DynamoShelf, open_dynamodb
from duetick.testing import StoreConformance

from tests.conformance.judge import OTHERS, judge, names_of
from tests.conformance.memory_shelf import MemoryShelf
from tests.lab.dynamodb import DynamoDB, table_name

SHARDS = 16
FORGOTTEN = "active#12"
"""Of all shards the one in which the fewest of the suite's rows stand."""

FEW = 5
"""The tests of the shard that run besides, where not all do."""

CAUGHT_BY = {
    "test_a_selection_narrows_rows_jobs_and_what_cannot_be_read",
    "test_i01_a_hostile_id_comes_back_as_it_was",
    "test_i05_claimers_at_once_get_disjoint_sets_that_are_everything",
    "test_i13_more_poison_than_one_page_is_listed",
    "test_i15_claiming_goes_on_until_several_hundred_are_done",
    "test_i15_one_claim_takes_several_hundred_when_asked",
    "test_j04_a_mass_death_is_told_once_each_in_bounded_steps",
    "test_l01_a_hundred_that_fired_lock_nobody_out",
    "test_m01_a_hostile_id_comes_back_as_it_was",
    "test_o03_hours_of_waiting_are_no_lateness_that_kills",
    "test_t01_each_one_that_is_lost_is_told_once",
    "test_t05_lost_leases_beyond_one_page_are_all_handed_out",
    "test_t14_who_is_not_limited_is_not_held_up",
}


class ForgetsAShard(DynamoShelf):
    """One partition of the index `due` is not asked."""

    def _due_in(self, status: str, until: int, page: int) -> Iterator[tuple[int, ScheduleName]]:
        return iter(()) if status == FORGOTTEN else super()._due_in(status, until, page)


class DynamoSuite(StoreConformance):
    """The suite for it: every client sees the same service."""


@contextmanager
def forgetful(endpoint: DynamoDB) -> Iterator[Store]:
    """Yield a fresh, empty store."""
    whole = open_dynamodb(endpoint.table_url(table_name()), checks_clock=False)
    store = Store(ForgetsAShard(whole._table, SHARDS, checks_clock=False))
    store.migrate()
    yield store
    store.close()


@dataclass
class NotedNames(MemoryShelf):
    """A shelf in memory that notes every name that it is asked for."""

    asked: set[ScheduleName] = field(default_factory=set)

    def _book(self, user_id: str, key: str) -> Book:
        self.asked.add((user_id, key))
        return super()._book(user_id, key)


def concerned(name: str) -> bool:
    """Return True if a test names a schedule of the shard."""
    every: list[NotedNames] = []

    @contextmanager
    def opened() -> Iterator[Store]:
        every.append(NotedNames())
        yield Store(every[-1])

    judge(DynamoSuite(), opened, [name])
    return any(status_of(*asked, SHARDS) == FORGOTTEN for shelf in every for asked in shelf.asked)


@pytest.mark.slow
def test_g04_a_store_that_forgets_a_shard_fails_the_tests_of_that_and_no_others(
    dynamodb_local: DynamoDB,
) -> None:
    others = filter(concerned, sorted({*names_of(DynamoSuite())} - CAUGHT_BY))
    names = [*filter(concerned, CAUGHT_BY), *islice(others, None if OTHERS == 1 else FEW)]
    assert set(names) > CAUGHT_BY
    assert judge(DynamoSuite(), partial(forgetful, dynamodb_local), names).failed == CAUGHT_BY

"""J-08 and J-12: named locks, and the reports of workers."""

from dataclasses import replace
from functools import partial

from duetick.core.purge import purge
from duetick.core.store import Store
from duetick.core.tick import run_tick
from duetick.core.workers import reap
from duetick.domain.workers import REPORTS_KEPT_MS, NamedLock, Worker
from duetick.ports import Deliverable, Delivered
from duetick.testing.conformance.concurrency import race
from duetick.testing.conformance.done import put
from duetick.testing.conformance.samples import EACH_MINUTE, MINUTE, NOON, SECOND
from duetick.testing.conformance.suite import Capability, StoreSuite, only


class Takes:
    """A transport whose endpoint takes everything."""

    def deliver(self, occurrence: Deliverable, *, timeout: float) -> Delivered:
        """See `Transport`."""
        return Delivered(202, f'{{"status": "accepted of {occurrence.key} in {timeout}"}}')

    def close(self) -> None:
        """See `Transport`."""


ONE = NamedLock("work", "one", NOON, NOON + MINUTE)
TWO = NamedLock("work", "two", NOON, NOON + MINUTE)
TICK = Worker("tick_1", "tick", NOON, NOON + MINUTE)


class LockConformance(StoreSuite):
    """J-08: one of several has a lock, until it is over."""

    def test_j08_a_lock_is_taken_if_it_is_absent_and_by_nobody_else(self, store: Store) -> None:
        assert store.shelf.acquire(ONE, NOON)
        assert not store.shelf.acquire(TWO, NOON + MINUTE - 1)
        assert store.shelf.acquire(TWO._replace(name="other"), NOON)
        assert [(one.name, one.owner) for one in store.locks()] == [
            ("other", "two"),
            ("work", "one"),
        ]

    def test_j08_a_lock_that_is_mine_already_is_taken_again(self, store: Store) -> None:
        assert store.shelf.acquire(ONE, NOON)
        assert store.shelf.acquire(ONE._replace(until=NOON + 2 * MINUTE), NOON + SECOND)
        assert only(store.locks()).until == NOON + 2 * MINUTE

    def test_j08_a_lock_whose_time_is_over_is_anybodys(self, store: Store) -> None:
        assert store.shelf.acquire(ONE, NOON)
        assert store.shelf.acquire(TWO._replace(until=NOON + 2 * MINUTE), NOON + MINUTE)
        assert not store.shelf.acquire(ONE, NOON + MINUTE)
        assert only(store.locks()).owner == "two"

    def test_j08_only_its_owner_extends_a_lock(self, store: Store) -> None:
        assert not store.shelf.extend("work", "one", NOON + MINUTE)
        assert store.shelf.acquire(ONE, NOON)
        assert not store.shelf.extend("work", "two", NOON + 2 * MINUTE)
        assert store.shelf.extend("work", "one", NOON + 2 * MINUTE)
        assert not store.shelf.acquire(TWO, NOON + 2 * MINUTE - 1)

    def test_j08_only_its_owner_releases_a_lock(self, store: Store) -> None:
        assert not store.shelf.unlock("work", "one")
        assert store.shelf.acquire(ONE, NOON)
        assert not store.shelf.unlock("work", "two")
        assert store.shelf.unlock("work", "one")
        assert store.locks() == []
        assert store.shelf.acquire(TWO, NOON)

    def test_j08_of_two_at_once_one_has_the_lock(self, store: Store) -> None:
        self.needs(Capability.THREADS)
        other = self.another(store)
        for number in range(3):
            asked = [
                partial(shelf.acquire, lock._replace(name=f"work{number}"), NOON)
                for shelf, lock in ((store.shelf, ONE), (other.shelf, TWO))
            ]
            taken = race(asked)
            assert sorted(taken) == [False, True]


class WorkerConformance(StoreSuite):
    """J-12: a worker reports, and one that is silent is found."""

    def test_j12_a_report_takes_the_place_of_the_one_before(self, store: Store) -> None:
        store.shelf.report(TICK)
        ended = replace(TICK, ended_at=NOON + SECOND, lateness_ms=7, counts={"claimed": 3})
        store.shelf.report(ended)
        assert list(store.workers(NOON)) == [ended]

    def test_j12_the_newest_workers_come_first_and_no_more_than_asked_for(
        self, store: Store
    ) -> None:
        every = [replace(TICK, id=f"t{n}", started_at=NOON + n * MINUTE) for n in range(4)]
        for one in every:
            store.shelf.report(one)
        assert [one.id for one in store.workers(NOON + MINUTE, limit=2)] == ["t3", "t2"]
        assert [one.id for one in store.workers(NOON + 2 * MINUTE)] == ["t3", "t2"]

    def test_j12_a_silent_worker_is_lost_once_its_longest_life_is_over(self, store: Store) -> None:
        store.shelf.report(TICK)
        store.shelf.report(replace(TICK, id="ended", ended_at=NOON + SECOND))
        assert reap(store, NOON + MINUTE - 1) == 0
        assert reap(store, NOON + MINUTE) == 1
        assert reap(store, NOON + MINUTE) == 0
        assert {one.id: one.lost_at for one in store.workers(NOON)} == {
            "tick_1": NOON + MINUTE,
            "ended": None,
        }

    def test_j12_a_report_leaves_after_eight_days(self, store: Store) -> None:
        self.needs(Capability.FORGETS)
        store.shelf.report(TICK)
        assert purge(store, NOON + REPORTS_KEPT_MS - 1).forgotten == 0
        assert purge(store, NOON + REPORTS_KEPT_MS).forgotten == 1
        assert list(store.workers(0)) == []

    def test_j12_a_tick_reports_what_it_did(self, store: Store) -> None:
        put(store, EACH_MINUTE)
        run_tick(store, Takes(), now=NOON)
        told = only(store.workers(NOON))
        assert (told.kind, told.started_at, told.counts.get("claimed")) == ("tick", NOON, 1)
        assert told.ended_at is not None

"""Races between threads: one wins, nothing is lost, nothing happens twice."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from threading import Barrier
from typing import TypeVar

from duetick.core.store import Store
from duetick.domain.attempts import SUCCEEDED, Begun
from duetick.domain.schedule import Occurrence
from duetick.testing.conformance.samples import (
    ALLOW,
    AT_LEAST_ONCE,
    DAY,
    EACH_MINUTE,
    MINUTE,
    NOON,
    SOON,
    by_hand,
    due_rows,
    row,
    schedule,
)
from duetick.testing.conformance.suite import (
    Capability,
    StoreSuite,
    drain,
    must,
    only,
    recorded,
    run,
    start,
)

THREADS = 4
T = TypeVar("T")


def race(tasks: Sequence[Callable[[], T]]) -> list[T]:
    """Run them at the same time. Return their answers in order."""
    barrier = Barrier(len(tasks))

    def run(task: Callable[[], T]) -> T:
        barrier.wait(timeout=30)
        return task()

    with ThreadPoolExecutor(len(tasks)) as pool:
        return [future.result(timeout=60) for future in [pool.submit(run, t) for t in tasks]]


class ConcurrencyConformance(StoreSuite):
    """I-05, T-07 and D-08 under threads."""

    def _stores(self, store: Store, count: int = THREADS) -> list[Store]:
        self.needs(Capability.THREADS)
        return [store, *(self.another(store) for _ in range(count - 1))]

    def test_i05_claimers_at_once_get_disjoint_sets_that_are_everything(self, store: Store) -> None:
        rows = due_rows(store, 240)
        found = race([partial(drain, s, SOON, 7) for s in self._stores(store)])
        claimed = sorted(o.key for part in found for o in part)
        assert claimed == [one.key for one in rows]

    def test_t07_one_of_many_that_begin_at_once_begins(self, store: Store) -> None:
        store.index.upsert(row(policies=ALLOW))
        occurrence = only(drain(store, SOON))
        stores = self._stores(store)
        answers = race([partial(s.ledger.begin, occurrence, now=SOON) for s in stores])
        assert sum(isinstance(answer, Begun) for answer in answers) == 1
        assert recorded(store, occurrence).attempts == 1

    def test_d08_one_of_many_occurrences_begins_where_they_may_not_overlap(
        self, store: Store
    ) -> None:
        stores = self._stores(store)
        runs = [by_hand(run=f"run:{number}") for number in range(THREADS)]
        pairs = zip(stores, runs, strict=True)
        answers = race([partial(run, s, o, SOON) for s, o in pairs])
        assert sum(isinstance(answer, Begun) for answer in answers) == 1

    def test_d08_claimed_occurrences_race_for_the_one_place(self, store: Store) -> None:
        store.index.upsert(row(cron=EACH_MINUTE))
        claimed = drain(store, SOON + 2 * MINUTE)
        stores = self._stores(store, len(claimed))
        now = NOON + 2 * MINUTE
        pairs = zip(stores, claimed, strict=True)
        answers = race([partial(s.ledger.begin, o, now=now) for s, o in pairs])
        assert sum(isinstance(answer, Begun) for answer in answers) == 1

    def test_t07_a_lost_lease_is_taken_over_by_one(self, store: Store) -> None:
        store.index.upsert(row(policies=AT_LEAST_ONCE))
        running = start(store, only(drain(store, SOON)), SOON)
        end = must(running.lease_until)
        found = race([partial(s.ledger.claim_waiting, end) for s in self._stores(store)])
        assert len([o for part in found for o in part]) == 1

    def test_j13_a_settle_and_a_takeover_at_once_have_one_winner(self, store: Store) -> None:
        store.index.upsert(row(policies=AT_LEAST_ONCE))
        running = start(store, only(drain(store, SOON)), SOON)
        end = must(running.lease_until)
        first, second = self._stores(store, 2)

        def settle() -> list[Occurrence]:
            settled = first.ledger.settle(running, SUCCEEDED, now=end)
            return [settled] if settled else []

        won = race([settle, lambda: list(second.ledger.claim_waiting(end))])
        assert sum(map(len, won)) == 1

    def test_i16_puts_at_once_leave_record_and_row_alike(self, store: Store) -> None:
        stores = self._stores(store)
        wanted = [schedule(cron=f"{minute} 6 * * *") for minute in range(THREADS)]
        pairs = zip(stores, wanted, strict=True)
        made = race([partial(s.schedules.put, w, now=NOON) for s, w in pairs])
        assert sorted(one.version for one in made) == [1, 2, 3, 4]
        kept = must(store.schedules.get("ada", "digest"))
        assert must(store.index.get("ada", "digest")).cron == kept.cron
        assert list(store.check(now=NOON)) == []

    def test_a01_a_claim_and_a_delete_at_once_account_for_the_time_once(self, store: Store) -> None:
        first, second = self._stores(store, 2)
        for number in range(10):
            store.schedules.put(schedule(f"k{number}"), now=NOON)

        def delete() -> list[Occurrence]:
            for number in range(10):
                second.schedules.delete("ada", f"k{number}", now=NOON + DAY)
            return []

        race([lambda: drain(first, SOON + DAY, 1), delete])
        times = sorted((o.key, o.nominal_at) for o in store.ledger.find("ada"))
        assert times == [(f"k{number}", NOON + DAY) for number in range(10)]

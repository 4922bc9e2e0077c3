"""O-03: a limit of a user, a flow or an action is one item. Each begin first takes a lease of
it.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import pytest

from duetick.core.store import Store
from duetick.core.store.within import ForeseenBegin
from duetick.core.verify import verify
from duetick.domain.attempts import SUCCEEDED, Begun, Refused
from duetick.domain.errors import InvalidSchedule
from duetick.domain.group_pauses import Pauses
from duetick.domain.limits import MOST_AT_ONCE, MOST_STANDING, Limit, digest_of
from duetick.domain.policies import Misfire, Policies
from duetick.domain.schedule import Lease, Leased, Occurrence
from duetick.domain.states import Reason, State
from duetick.testing.conformance.concurrency import race
from duetick.testing.conformance.samples import (
    ALLOW,
    AT_LEAST_ONCE,
    HOUR,
    MINUTE,
    NOON,
    SECOND,
    SOON,
    by_hand,
    keys,
    row,
    schedule,
)
from duetick.testing.conformance.suite import (
    FAILED,
    Capability,
    StoreSuite,
    drain,
    must,
    only,
    recorded,
    refused,
    run,
    start,
)

SCOPES = ("user:ada", "flow:reminders", "action:reminders/send")
OTHERS = ("user:bob", "flow:other", "action:reminders/tell")

every_scope = pytest.mark.parametrize("scope", SCOPES)

LEASE = Policies().lease_ms


def limit(
    store: Store,
    scope: str = "user:ada",
    *,
    parallel: int | None = 1,
    rate: int | None = None,
    now: int = NOON,
) -> Limit:
    """Set a limit."""
    return store.limits.set(scope, parallel=parallel, rate=rate, now=now)


def put(store: Store, count: int, policies: Policies | None = None) -> None:
    """Put that many schedules of ada's, all due at noon."""
    for number in range(count):
        store.schedules.put(schedule(f"k{number}", policies=policies), now=NOON - MINUTE)


def tick(store: Store, now: int = SOON + 1, *, ahead: int = 0) -> list[Occurrence]:
    """Claim due rows, and lease the occurrences that have a place, as a tick does."""
    limits = store.limits.handing_on(now, {}, fresh=True)
    claimed = drain(store, now, ahead=ahead, limits=limits)
    return [*claimed, *store.ledger.claim_waiting(now, ahead=ahead, limits=limits)]


def so_many(found: Sequence[Occurrence], count: int) -> Sequence[Occurrence]:
    """Return the occurrences, whose number must be `count`."""
    assert len(found) == count, f"expected {count}, found {len(found)}: {found}"
    return found


def claim_unlimited(store: Store, count: int) -> Sequence[Occurrence]:
    """Claim `count` due occurrences without a limit."""
    return so_many(drain(store, SOON), count)


def live(store: Store, now: int = SOON) -> int:
    """Return the number of leases that the one limit has given."""
    return len(only(store.limits.standing().every).live(now))


def count_begins(store: Store) -> int:
    """Return the number of begins that the one limit has counted in its window."""
    return only(store.limits.standing().every).counted


def settle(store: Store, one: Occurrence, now: int = SOON) -> None:
    """Let an attempt succeed."""
    assert store.ledger.settle(one, SUCCEEDED, now=now) is not None


class LimitingConformance(StoreSuite):
    """A begin takes a lease of the limit, its end gives the lease back, and no waiting occurrence
    is lost.
    """

    @every_scope
    def test_o03_no_more_run_at_once_than_a_limit_allows(self, store: Store, scope: str) -> None:
        put(store, 3)
        one, another, third = claim_unlimited(store, 3)
        limit(store, scope, parallel=2)
        first, second = (start(store, each, SOON) for each in (one, another))
        answer = refused(store.ledger.begin(third, now=SOON))
        assert (answer.verdict, answer.limit) == ("in_progress", scope)
        assert answer.due_at == SOON + LEASE
        settle(store, second)
        assert keys(tick(store)) == [third.key]
        assert live(store) == 1
        settle(store, first)
        assert live(store) == 0

    @pytest.mark.parametrize("scope", OTHERS)
    def test_o03_a_limit_of_others_changes_nothing(self, store: Store, scope: str) -> None:
        put(store, 2)
        limit(store, scope)
        for one in so_many(tick(store), 2):
            start(store, one, SOON)
        assert live(store) == 0

    @every_scope
    def test_o03_a_claim_records_what_waits_and_leases_only_what_has_a_place(
        self, store: Store, scope: str
    ) -> None:
        put(store, 4)
        limit(store, scope, parallel=2)
        assert len(tick(store)) == 2
        found = store.ledger.find("ada", state=[State.QUEUED, State.SCHEDULED])
        assert sorted(one.state for one in found) == ["queued"] * 2 + ["scheduled"] * 2
        assert [fault for _, fault in verify(store, 0, NOON, now=SOON).faults] == []

    def test_o03_what_waits_keeps_its_order(self, store: Store) -> None:
        for number in (2, 0, 1):
            cron = f"{number} 12 * * *"
            store.schedules.put(replace(schedule(f"k{number}"), cron=cron), now=NOON - MINUTE)
        limit(store)
        now, order = NOON + 2 * MINUTE, list[str]()
        for _ in range(3):
            one = only(tick(store, now))
            order.append(one.key)
            settle(store, start(store, one, now), now)
        assert order == ["k0", "k1", "k2"]

    def test_o03_waiting_uses_up_nothing(self, store: Store) -> None:
        put(store, 2, policies=Policies(max_runs=1))
        first, second = claim_unlimited(store, 2)
        limit(store)
        running = start(store, first, SOON)
        assert refused(store.ledger.begin(second, now=SOON)).limit
        assert recorded(store, second).attempts == 0
        assert must(store.schedules.get("ada", second.key)).runs == 0
        settle(store, running)
        assert begin_placed(store) == second.key
        assert must(store.schedules.get("ada", second.key)).runs == 1

    def test_t07_the_same_begin_again_takes_nothing_twice(self, store: Store) -> None:
        put(store, 2)
        first, second = claim_unlimited(store, 2)
        limit(store, parallel=2, rate=2)
        start(store, first, SOON)
        again = refused(store.ledger.begin(first, now=SOON))
        assert (again.verdict, again.limit) == ("in_progress", None)
        assert (live(store), count_begins(store)) == (1, 1)
        start(store, second, SOON)
        assert (live(store), count_begins(store)) == (2, 2)

    def test_t07_a_lease_whose_begin_was_lost_is_taken_up_by_the_same_begin(
        self, store: Store
    ) -> None:
        put(store, 1)
        one = only(drain(store, SOON))
        limit(store, rate=1)
        assert store.limits.take(one, "send", SOON + LEASE, SOON) is None
        assert start(store, one, SOON).attempts == 1
        assert (live(store), count_begins(store)) == (1, 1)

    def test_t07_a_repeat_that_meets_the_begin_keeps_its_place(self, store: Store) -> None:
        """It has looked before the other began: both have one lease, and one of them runs."""
        put(store, 2)
        first, second = claim_unlimited(store, 2)
        limit(store, rate=5)
        begins, looked = store.ledger._begin_within, list[object]()
        foresee = begins.foresee

        def meet(held: Leased, now: int, pauses: Pauses) -> ForeseenBegin | None:
            found = foresee(held, now, pauses)
            if not looked:
                looked.append(found)
                start(store, first, SOON)
            return found

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(begins, "foresee", meet)
            assert refused(store.ledger.begin(first, now=SOON)).state is State.PROCESSING
        assert (live(store), count_begins(store)) == (1, 1)
        assert refused(store.ledger.begin(second, now=SOON)).limit

    def test_t07_a_stale_fence_gives_nothing_back(self, store: Store) -> None:
        put(store, 1, policies=AT_LEAST_ONCE)
        one = only(drain(store, SOON))
        limit(store)
        start(store, one, SOON)
        later = SOON + LEASE
        again = only(tick(store, later))
        start(store, again, later)
        assert store.ledger.settle(one, SUCCEEDED, now=later) is None
        assert live(store, later) == 1

    def test_t07_the_end_of_a_lease_frees_the_place_of_an_attempt_that_is_lost(
        self, store: Store
    ) -> None:
        put(store, 2)
        first, second = claim_unlimited(store, 2)
        limit(store)
        start(store, first, SOON)
        assert refused(store.ledger.begin(second, now=SOON)).limit
        assert tick(store, SOON + LEASE - 1) == []
        again = only(tick(store, SOON + LEASE))
        assert again.key == second.key
        start(store, again, SOON + LEASE)
        assert live(store, SOON + LEASE) == 1

    def test_t07_a_renewed_attempt_keeps_its_place(self, store: Store) -> None:
        put(store, 2)
        first, second = claim_unlimited(store, 2)
        limit(store)
        running = start(store, first, SOON)
        assert refused(store.ledger.begin(second, now=SOON)).limit
        renewed = must(store.ledger.renew(running, now=SOON + LEASE - 1))
        assert tick(store, SOON + LEASE) == []
        settle(store, renewed, SOON + LEASE)
        assert keys(tick(store, SOON + LEASE)) == [second.key]

    def test_o03_a_rate_counts_the_begins_of_each_minute_of_the_clock(self, store: Store) -> None:
        put(store, 3)
        first, second, third = claim_unlimited(store, 3)
        limit(store, parallel=None, rate=2)
        for one in (first, second):
            settle(store, start(store, one, SOON))
        answer = refused(store.ledger.begin(third, now=SOON))
        assert (answer.limit, answer.due_at) == ("user:ada", NOON + MINUTE)
        assert tick(store, NOON + MINUTE - 1) == []
        one = only(tick(store, NOON + MINUTE))
        settle(store, start(store, one, NOON + MINUTE), NOON + MINUTE)
        assert (live(store), count_begins(store)) == (0, 1)

    def test_o03_a_begin_that_is_refused_counts_nothing(self, store: Store) -> None:
        put(store, 1)
        one = only(drain(store, SOON))
        limit(store, parallel=2, rate=5)
        start(store, one, SOON)
        answer = refused(run(store, by_hand("k0"), SOON))
        assert answer.reason is Reason.OVERLAP
        assert (live(store), count_begins(store)) == (1, 1)

    def test_o03_of_two_limits_the_full_one_decides_and_the_other_gets_its_lease_back(
        self, store: Store
    ) -> None:
        put(store, 2)
        first, second = claim_unlimited(store, 2)
        limit(store, "user:ada", parallel=5, rate=5)
        limit(store, "action:reminders/send", parallel=1)
        start(store, first, SOON)
        assert refused(store.ledger.begin(second, now=SOON)).limit == "action:reminders/send"
        found = {one.scope: one for one in store.limits.standing().every}
        assert [len(one.leases) for one in found.values()] == [1, 1]
        assert found["user:ada"].counted == 1

    @pytest.mark.parametrize("longest", [None, 60])
    def test_o03_hours_of_waiting_are_no_lateness_that_kills(
        self, store: Store, longest: int | None
    ) -> None:
        """Neither before the claim's lease, nor after a begin that was refused."""
        late = Policies(longest_lateness=longest, misfire=Misfire.SKIP)
        put(store, 1)
        running = only(drain(store, SOON))
        start(store, running, SOON)
        limit(store, rate=1, parallel=9)
        assert store.limits.take(running, "send", SOON + LEASE, SOON) is None
        for key in ("waits", "is refused"):
            store.schedules.put(schedule(key, policies=late), now=NOON - MINUTE)
        refused_one = so_many(store.index.claim_due(SOON), 2)[0]
        assert refused(store.ledger.begin(refused_one, now=SOON)).limit == "user:ada"
        for minute in range(1, 4):
            assert tick(store, SOON + minute * SECOND) == []
        later = NOON + 3 * HOUR
        first = only(tick(store, later))
        assert first.due_at == later
        assert store.ledger.release(first, now=later + SECOND)
        assert recorded(store, first).state is State.QUEUED
        assert only(tick(store, later + 2 * SECOND)).attempts == 0

    def test_o03_it_stays_so_if_the_limit_is_lifted_meanwhile(self, store: Store) -> None:
        put(store, 2)
        limit(store)
        start(store, only(tick(store)), SOON)
        later = NOON + 3 * HOUR
        assert [one.scope for one in store.limits.lift("user:ada", now=later)] == ["user:ada"]
        found = store.ledger.claim_waiting(later)
        waited = only([one for one in found if one.attempts == 0])
        assert store.ledger.release(waited, now=later + SECOND)
        assert recorded(store, waited).state is State.QUEUED

    def test_o03_a_retry_waits_for_a_place_and_blocks_nobody(self, store: Store) -> None:
        put(store, 1, policies=AT_LEAST_ONCE)
        one = only(drain(store, SOON))
        limit(store)
        failed = must(store.ledger.settle(start(store, one, SOON), FAILED, now=SOON))
        assert (failed.state, live(store)) == (State.RETRYING, 0)
        store.schedules.put(schedule("other"), now=SOON)
        start(store, by_hand("other"), SOON)
        due = failed.due_at + SECOND
        assert tick(store, due) == []
        assert recorded(store, one).state is State.RETRYING
        retry = only(store.ledger.claim_waiting(due))
        answer = refused(store.ledger.begin(retry, now=due))
        assert (answer.limit, recorded(store, one).state) == ("user:ada", State.RETRYING)
        assert recorded(store, one).attempts == 1

    def test_t06_what_is_due_ahead_is_leased_if_there_is_a_place(self, store: Store) -> None:
        self.needs(Capability.LOOK_AHEAD)
        put(store, 2)
        limit(store)
        one = only(tick(store, NOON - MINUTE, ahead=2 * MINUTE))
        assert (one.due_at, one.nominal_at) == (NOON, NOON)
        waits = only(store.ledger.find("ada", state=State.SCHEDULED))
        assert waits.due_at == NOON

    def test_t14_who_is_not_limited_is_not_held_up(self, store: Store) -> None:
        put(store, 8)
        for number in range(3):
            store.schedules.put(schedule(f"b{number}", user="bob"), now=NOON - MINUTE)
        limit(store)
        limits = store.limits.handing_on(SOON, {}, fresh=True)
        due = list(store.index.claim_due(SOON, 4, share=1, limits=limits))
        while more := store.index.claim_due(SOON, 4, limits=limits):
            due += more
        assert sorted(keys(due)) == ["b0", "b1", "b2"]
        assert len(store.ledger.claim_waiting(SOON, 1, limits=limits)) == 1

    def test_t14_a_mass_that_waits_hides_nobody(self, store: Store) -> None:
        put(store, 6)
        limit(store)
        start(store, only(tick(store)), SOON)
        spread = Policies(spread=1)
        store.schedules.put(schedule("b", user="bob", policies=spread), now=NOON - MINUTE)
        store.index.claim_due(NOON)
        limits = store.limits.handing_on(NOON + MINUTE - 1, {}, fresh=True)
        found = store.ledger.claim_waiting(SOON + SECOND, 1, limits=limits)
        assert keys(found) == ["b"]

    def test_o03_a_tick_counts_what_it_has_in_its_hands(self, store: Store) -> None:
        put(store, 3)
        limit(store, parallel=2)
        limits = store.limits.handing_on(SOON, {}, fresh=True)
        drain(store, SOON, limits=limits)
        first, second = so_many(store.ledger.claim_waiting(SOON, limits=limits), 2)
        start(store, first, SOON)
        mine = {digest_of(one.identity): limits.picked[one.identity] for one in (first, second)}
        limits = store.limits.handing_on(SOON, mine, fresh=True)
        assert store.ledger.claim_waiting(SOON, limits=limits) == []
        del mine[digest_of(second.identity)]
        limits = store.limits.handing_on(SOON, mine, fresh=True)
        assert len(store.ledger.claim_waiting(SOON, limits=limits)) == 1

    def test_m05_rows_without_a_record_are_limited_too(self, store: Store) -> None:
        for key in ("a", "b"):
            store.index.upsert(replace(row(key), flow="reminders"))
        found = claim_unlimited(store, 2)
        limit(store, "action:reminders/send")
        answers = [store.ledger.begin(one, now=SOON, find_action=lambda: "send") for one in found]
        assert [type(one) for one in answers] == [Begun, Refused]

    def test_o03_threads_that_begin_at_once_get_no_more_than_there_is(self, store: Store) -> None:
        self.needs(Capability.THREADS)
        put(store, 6, policies=ALLOW)
        due = claim_unlimited(store, 6)
        limit(store, parallel=2)
        stores = [self.another(store) for _ in due]
        found = race(
            [
                partial(each.ledger.begin, one, now=SOON)
                for each, one in zip(stores, due, strict=True)
            ]
        )
        assert sum(isinstance(one, Begun) for one in found) == 2
        assert live(store) == 2

    def test_o03_a_limit_is_changed_in_place_and_keeps_its_leases(self, store: Store) -> None:
        put(store, 2)
        first, second = claim_unlimited(store, 2)
        limit(store, parallel=1)
        running = start(store, first, SOON)
        changed = limit(store, parallel=2, now=SOON)
        assert (changed.parallel, live(store)) == (2, 1)
        same = limit(store, parallel=2, now=SOON + SECOND)
        assert same.changed_at == SOON
        start(store, second, SOON)
        settle(store, running)
        assert live(store) == 1

    def test_o03_a_limit_that_is_lifted_limits_no_more(self, store: Store) -> None:
        put(store, 2)
        first, second = claim_unlimited(store, 2)
        limit(store)
        start(store, first, SOON)
        store.limits.lift("user:ada", now=SOON)
        start(store, second, SOON)
        assert store.limits.lift("user:ada", now=SOON) == []
        assert store.limits.standing().every == ()
        limit(store, now=SOON)
        assert live(store) == 0

    def test_o03_everything_that_is_wrong_with_a_limit_is_told(self, store: Store) -> None:
        for scope in ("", "all", "user:", "flow:", "action:mail", "action:mail/", "action:a b/c"):
            with pytest.raises(InvalidSchedule, match="scope"):
                store.limits.set(scope, parallel=1, now=NOON)
        for parallel, rate in ((0, 1), (MOST_AT_ONCE + 1, 1), (1, 0), (None, None)):
            with pytest.raises(InvalidSchedule):
                store.limits.set("user:ada", parallel=parallel, rate=rate, now=NOON)
        with pytest.raises(InvalidSchedule, match="note"):
            store.limits.set("user:ada", parallel=1, note="x" * 501, now=NOON)

    def test_o03_only_so_many_limits_stand(self, store: Store) -> None:
        for number in range(MOST_STANDING):
            limit(store, f"user:u{number}")
        with pytest.raises(InvalidSchedule, match="lift one"):
            limit(store, "user:one-more")
        assert limit(store, "user:u1", parallel=3).parallel == 3

    def test_o03_the_leases_of_a_limit_are_bounded(self, store: Store) -> None:
        limit(store, parallel=None, rate=1_000_000)
        lease = Lease("ada", "k1", NOON, "schedule", "reminders", 1)
        assert store.limits.take(lease, "send", SOON, NOON) is None
        full = only(store.limits.standing().every)
        leases = {f"{number:016x}": full.leases[digest_of(lease.identity)] for number in range(500)}
        grown = full._replace(leases=leases)
        assert len(grown.dump()) < 30_000
        assert grown.room(NOON) == 0
        assert grown.take("another", 1, SOON + 1, SOON) is not None
        assert len(must(grown.take("another", 1, SOON + 1, SOON)).leases) == 1

    def test_o03_an_erased_user_takes_along_the_limit_of_that_user_alone(
        self, store: Store
    ) -> None:
        for scope in ("user:ada", "user:adam", "flow:reminders"):
            limit(store, scope)
        store.erase("ada")
        store.standing.forget()
        assert {one.scope for one in store.limits.standing().every} == {
            "user:adam",
            "flow:reminders",
        }


def begin_placed(store: Store) -> str:
    """Tick, begin the one occurrence that has a place, and return its key."""
    return start(store, only(tick(store)), SOON).key

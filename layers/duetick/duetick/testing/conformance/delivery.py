"""Delivery: keys of callers, effects of the settling write, windows, limits of runs."""

from dataclasses import replace
from functools import partial

import pytest

from duetick.core.store import Store
from duetick.domain.attempts import SUCCEEDED, Begun, CallerKey, Refused
from duetick.domain.errors import LeaseLost
from duetick.domain.policies import Delivery, Overlap, Policies
from duetick.domain.schedule import NewOccurrence, Occurrence
from duetick.domain.states import Reason, State
from duetick.testing.conformance.concurrency import race
from duetick.testing.conformance.samples import (
    ALLOW,
    AT_LEAST_ONCE,
    DAY,
    EACH_MINUTE,
    HOUR,
    MINUTE,
    NOON,
    SECOND,
    SOON,
    by_hand,
    row,
    schedule,
)
from duetick.testing.conformance.suite import (
    FAILED,
    Capability,
    StoreSuite,
    begun,
    drain,
    must,
    only,
    recorded,
    refused,
    run,
    start,
)

KEY = CallerKey("reminders", "order-7", MINUTE)


def call(number: int) -> NewOccurrence:
    """Return an outside caller's occurrence."""
    return replace(by_hand(run=f"call:{number}"), policies=ALLOW)


class CallerKeyConformance(StoreSuite):
    """D-07: a caller's key names one run at most."""

    def ask(self, store: Store, number: int, now: int, key: CallerKey = KEY) -> Begun | Refused:
        """Return one call with the key."""
        return run(store, call(number), now, key)

    def test_d07_a_key_whose_run_succeeded_is_a_duplicate_within_its_window(
        self, store: Store
    ) -> None:
        store.ledger.settle(begun(self.ask(store, 1, NOON)).occurrence, SUCCEEDED, now=NOON)
        answer = refused(self.ask(store, 2, NOON + MINUTE - 1))
        assert (answer.verdict, answer.state) == ("duplicate", State.SUCCEEDED)
        assert store.ledger.get(*call(2).identity) is None

    def test_d07_who_asks_for_a_key_is_told_what_holds_it(self, store: Store) -> None:
        """A lookup does not take the key: the first begin takes it."""
        assert store.ledger.holds(KEY, now=NOON) is None
        running = begun(self.ask(store, 1, NOON)).occurrence
        assert must(store.ledger.holds(KEY, now=NOON)).verdict == "in_progress"
        store.ledger.settle(running, SUCCEEDED, now=NOON)
        assert must(store.ledger.holds(KEY, now=NOON + MINUTE - 1)).verdict == "duplicate"
        assert store.ledger.holds(KEY, now=NOON + MINUTE) is None
        assert store.ledger.holds(KEY._replace(flow="other"), now=NOON) is None

    def test_d07_a_key_is_free_after_its_window(self, store: Store) -> None:
        store.ledger.settle(begun(self.ask(store, 1, NOON)).occurrence, SUCCEEDED, now=NOON)
        begun(self.ask(store, 2, NOON + MINUTE))

    def test_d07_a_key_whose_run_goes_on_is_in_progress(self, store: Store) -> None:
        begun(self.ask(store, 1, NOON))
        assert refused(self.ask(store, 2, NOON)).verdict == "in_progress"

    def test_d07_a_run_by_hand_that_failed_keeps_its_key(self, store: Store) -> None:
        first, again = (replace(by_hand(run=f"run:{each}"), policies=ALLOW) for each in (1, 2))
        occurrence = begun(run(store, first, NOON, KEY)).occurrence
        store.ledger.settle(occurrence, FAILED, now=NOON)
        answer = refused(run(store, again, NOON + MINUTE - 1, KEY))
        assert (answer.verdict, answer.state) == ("duplicate", State.DEAD)
        begun(run(store, again, NOON + MINUTE, KEY))

    def test_d07_a_run_by_hand_that_was_cancelled_keeps_its_key(self, store: Store) -> None:
        start(store, by_hand(run="run:0"), NOON)
        answer = refused(run(store, by_hand(), NOON, KEY))
        assert (answer.verdict, answer.reason) == ("cancelled", Reason.OVERLAP)
        again = refused(run(store, by_hand(run="run:2"), NOON, KEY))
        assert (again.verdict, again.state) == ("duplicate", State.CANCELLED)

    def test_d07_a_failure_frees_the_key(self, store: Store) -> None:
        store.ledger.settle(begun(self.ask(store, 1, NOON)).occurrence, FAILED, now=NOON)
        begun(self.ask(store, 2, NOON))

    def test_d07_a_run_that_was_lost_frees_the_key(self, store: Store) -> None:
        lost = begun(self.ask(store, 1, NOON)).occurrence
        begun(self.ask(store, 2, must(lost.lease_until)))

    def test_d07_who_has_a_fence_needs_no_key(self, store: Store) -> None:
        """A fence decides by itself. Another run may have the key, and keeps it."""
        store.index.upsert(row(policies=ALLOW))
        claimed = only(drain(store, SOON))
        occurrence = begun(self.ask(store, 1, SOON)).occurrence
        running = begun(store.ledger.begin(claimed, now=SOON)).occurrence
        store.ledger.settle(running, SUCCEEDED, now=SOON)
        assert must(store.ledger.holds(KEY, now=SOON)).verdict == "in_progress"
        store.ledger.settle(occurrence, FAILED, now=SOON)
        assert store.ledger.holds(KEY, now=SOON) is None

    def test_d07_what_was_brought_with_a_key_begins_with_it(self, store: Store) -> None:
        leased = store.ledger.bring(call(1), now=NOON, key=KEY)
        assert isinstance(leased, Occurrence)
        begun(store.ledger.begin(leased, now=NOON))

    def test_d07_a_key_is_asked_before_the_occurrence_that_comes_with_it(
        self, store: Store
    ) -> None:
        """Both would refuse. The caller gets the answer of the key."""
        store.ledger.settle(begun(self.ask(store, 1, NOON)).occurrence, SUCCEEDED, now=NOON)
        begun(run(store, call(2), NOON))
        for answer in (self.ask(store, 2, NOON), store.ledger.bring(call(2), now=NOON, key=KEY)):
            assert answer == Refused("duplicate", State.SUCCEEDED, Reason.FIRED)

    def test_d07_what_is_there_already_takes_no_key(self, store: Store) -> None:
        store.ledger.settle(start(store, call(1), NOON), SUCCEEDED, now=NOON)
        for answer in (self.ask(store, 1, NOON), store.ledger.bring(call(1), now=NOON, key=KEY)):
            assert answer == Refused("duplicate", State.SUCCEEDED, Reason.FIRED)
        assert store.ledger.holds(KEY, now=NOON) is None
        begun(self.ask(store, 2, NOON))

    def test_d07_a_key_is_its_flows(self, store: Store) -> None:
        begun(self.ask(store, 1, NOON))
        other = replace(call(2), flow="billing")
        begun(run(store, other, NOON, KEY._replace(flow="billing")))

    def test_d07_of_many_callers_with_one_key_one_begins(self, store: Store) -> None:
        self.needs(Capability.THREADS)
        stores = [self.another(store) for _ in range(6)]
        calls = [partial(self.ask, each, number, NOON) for number, each in enumerate(stores)]
        answers = race(calls)
        assert sum(isinstance(answer, Begun) for answer in answers) == 1


class SettlingConformance(StoreSuite):
    """T-04: an action's effects commit with the settling write, or not at all."""

    def test_t04_the_end_of_a_settling_block_settles(self, store: Store) -> None:
        running = self._running(store)
        with store.ledger.settling(running, lambda: SOON):
            pass
        kept = recorded(store, running)
        assert (kept.state, kept.reason, kept.updated_at) == (
            State.SUCCEEDED,
            Reason.FIRED,
            NOON + SECOND,
        )

    def test_t04_a_settling_block_that_raises_settles_nothing(self, store: Store) -> None:
        running = self._running(store)
        with pytest.raises(ZeroDivisionError), store.ledger.settling(running, lambda: NOON):
            raise ZeroDivisionError
        assert recorded(store, running) == running

    def test_t07_a_settling_block_with_a_stale_fence_raises(self, store: Store) -> None:
        running = self._running(store)
        stale = replace(running, fence=running.fence + 1)
        with pytest.raises(LeaseLost), store.ledger.settling(stale, lambda: NOON):
            pass
        assert recorded(store, running) == running

    def test_t04_an_attempt_that_has_ended_is_settled_with_no_effects_again(
        self, store: Store
    ) -> None:
        """The answer of a commit was lost, so the action tries again. Its effects exist already."""
        running = self._running(store)
        with store.ledger.settling(running, lambda: SOON):
            pass
        with pytest.raises(LeaseLost), store.ledger.settling(running, lambda: SOON):
            pass
        assert recorded(store, running).state is State.SUCCEEDED

    def _running(self, store: Store) -> Occurrence:
        once = replace(AT_LEAST_ONCE, delivery=Delivery.EFFECTIVELY_ONCE)
        store.index.upsert(row(policies=once))
        return start(store, only(drain(store, SOON)), NOON)


class WindowConformance(StoreSuite):
    """The start, the end and the number of runs of a schedule."""

    def test_nothing_fires_before_its_start(self, store: Store) -> None:
        opens = Policies(starts_at=NOON + HOUR)
        put = store.schedules.put(schedule(cron=EACH_MINUTE, policies=opens), now=NOON)
        assert put.next_fire_at == NOON + HOUR
        assert drain(store, NOON + HOUR - SECOND) == []
        assert only(drain(store, NOON + HOUR + SECOND)).nominal_at == NOON + HOUR

    def test_nothing_fires_after_its_end_and_the_record_stays(self, store: Store) -> None:
        closes = Policies(ends_at=NOON + 2 * MINUTE)
        store.schedules.put(schedule(cron=EACH_MINUTE, policies=closes), now=NOON)
        fired = [o.nominal_at for o in drain(store, NOON + 2 * MINUTE + SECOND)]
        assert fired == [NOON + MINUTE, NOON + 2 * MINUTE]
        assert drain(store, NOON + DAY) == []
        assert must(store.schedules.get("ada", "digest")).next_fire_at is None

    def test_c04_at_fires_once_and_is_done(self, store: Store) -> None:
        store.schedules.put(schedule(cron="at(2027-03-01T12:01:00)"), now=NOON)
        assert only(drain(store, NOON + MINUTE + SECOND)).nominal_at == NOON + MINUTE
        assert drain(store, NOON + DAY) == []
        assert must(store.schedules.get("ada", "digest")).next_fire_at is None

    def test_the_last_run_that_is_allowed_is_the_last(self, store: Store) -> None:
        twice = Policies(max_runs=2, overlap=Overlap.ALLOW)
        store.schedules.put(schedule(cron=EACH_MINUTE, policies=twice), now=NOON)
        for minute in (1, 2):
            now = NOON + minute * MINUTE + SECOND
            running = start(store, only(drain(store, now)), now)
            store.ledger.settle(running, SUCCEEDED, now=now)
        kept = must(store.schedules.get("ada", "digest"))
        assert (kept.runs, kept.next_fire_at) == (2, None)
        assert drain(store, NOON + DAY) == []
        assert list(store.check(now=NOON + DAY)) == []

    def test_a_claimed_one_beyond_the_limit_is_over_its_quota(self, store: Store) -> None:
        once = Policies(max_runs=1, overlap=Overlap.ALLOW)
        store.schedules.put(schedule(cron=EACH_MINUTE, policies=once), now=NOON)
        first, second = drain(store, NOON + 2 * MINUTE + SECOND)
        start(store, first, NOON + 2 * MINUTE)
        answer = refused(store.ledger.begin(second, now=NOON + 2 * MINUTE))
        assert (answer.verdict, answer.reason) == ("cancelled", Reason.QUOTA)

    def test_what_was_due_at_the_last_run_is_over_its_quota(self, store: Store) -> None:
        policies, now = Policies(max_runs=1), NOON + 3 * MINUTE
        store.schedules.put(schedule(cron=EACH_MINUTE, policies=policies), now=NOON)
        start(store, only(store.index.claim_due(SOON + MINUTE)), NOON + 2 * MINUTE)
        over, ran = store.ledger.find("ada", "digest")
        assert (over.state, over.reason) == (State.CANCELLED, Reason.QUOTA)
        assert (over.nominal_at, over.range_end) == (NOON + 2 * MINUTE, NOON + 2 * MINUTE)
        assert (ran.nominal_at, drain(store, now)) == (NOON + MINUTE, [])

    def test_allowing_more_runs_goes_on(self, store: Store) -> None:
        policies = Policies(max_runs=1)
        store.schedules.put(schedule(cron=EACH_MINUTE, policies=policies), now=NOON)
        start(store, only(drain(store, NOON + MINUTE + SECOND)), NOON + MINUTE)
        more = schedule(cron=EACH_MINUTE, policies=replace(policies, max_runs=3))
        assert store.schedules.put(more, now=NOON + HOUR).next_fire_at == NOON + HOUR + MINUTE


class AheadConformance(StoreSuite):
    """A waiting occurrence can be leased ahead of its time, as a due row can be claimed."""

    def test_t06_what_is_spread_is_leased_ahead_of_its_second(self, store: Store) -> None:
        self.needs(Capability.FIND_WITHOUT_USER)
        self.needs(Capability.LOOK_AHEAD)
        store.index.upsert(row(policies=Policies(spread=3_600)))
        assert drain(store, SOON) == []
        waiting = only(store.ledger.find(state=State.SCHEDULED))
        early = waiting.due_at - 30 * SECOND
        assert list(store.ledger.claim_waiting(early)) == []
        assert only(store.ledger.claim_waiting(early, ahead=MINUTE)).due_at == waiting.due_at

    def test_t07_no_lease_is_taken_over_ahead_of_its_end(self, store: Store) -> None:
        self.needs(Capability.LOOK_AHEAD)
        store.index.upsert(row())
        end = must(only(drain(store, SOON)).lease_until)
        assert list(store.ledger.claim_waiting(end - 1, ahead=MINUTE)) == []

    def test_t12_the_backlog_is_what_is_due(self, store: Store) -> None:
        for number in range(5):
            store.index.upsert(row(f"k{number}"))
        assert [store.index.backlog(NOON - SECOND), store.index.backlog(SOON)] == [0, 5]
        assert store.index.backlog(NOON + SECOND, 3) == 3

    def test_t01_rows_poisoned_since_a_time_are_told(self, store: Store) -> None:
        for number, at in enumerate((NOON, NOON + HOUR)):
            store.index.upsert(row(f"k{number}", cron="not a cron", at=at))
            drain(store, at + SECOND)
        assert [o.key for o in store.index.unreadable(since=NOON + MINUTE)] == ["k1"]
        assert len(store.index.unreadable()) == 2

    def test_t01_a_claim_tells_of_each_row_that_it_poisons(self, store: Store) -> None:
        store.index.upsert(row("bad", cron="not a cron"))
        store.index.upsert(row("good"))
        reported: list[Occurrence] = []
        for _ in range(2):
            store.index.claim_due(SOON, on_poisoned=reported.append)
        assert [(one.key, one.reason) for one in reported] == [("bad", Reason.POISONED)]

    def test_d12_an_occurrence_of_another_flow_is_unknown(self, store: Store) -> None:
        store.schedules.put(schedule(cron=EACH_MINUTE), now=NOON)
        claimed = only(drain(store, NOON + MINUTE + SECOND))
        other = replace(claimed, flow="billing")
        assert refused(store.ledger.begin(other, now=NOON + MINUTE)).verdict == "unknown"
        start(store, claimed, NOON + MINUTE)

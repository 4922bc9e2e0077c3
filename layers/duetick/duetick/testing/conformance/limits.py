"""T-04 and D-02: a limit of runs counts the occurrences that began, not their attempts."""

from dataclasses import replace

import pytest

from duetick.core.store import Store
from duetick.domain.attempts import SUCCEEDED, Outcome
from duetick.domain.pausing import pause, resume
from duetick.domain.policies import Delivery, Overlap, Policies
from duetick.domain.schedule import Occurrence, Record, Schedule
from duetick.domain.states import Reason, State
from duetick.testing.conformance.accounting import outcomes
from duetick.testing.conformance.samples import (
    EACH_MINUTE,
    HOUR,
    MINUTE,
    NOON,
    SECOND,
    SOON,
    schedule,
)
from duetick.testing.conformance.second_attempts import begin_under_namesake
from duetick.testing.conformance.suite import (
    FAILED,
    Capability,
    StoreSuite,
    drain,
    must,
    only,
    refused,
    start,
)

REJECTED = Outcome(State.FAILED, Reason.REJECTED, "no such action")
ONCE = Policies(delivery=Delivery.AT_LEAST_ONCE, max_runs=1)


class LimitConformance(StoreSuite):
    """`max_runs` with retries, and with occurrences that were rejected before they ran."""

    def test_t04_a_limit_of_runs_does_not_end_a_retry(self, store: Store) -> None:
        first = self._first(store)
        assert must(store.ledger.settle(first, FAILED, now=SOON)).state is State.RETRYING
        again = start(store, only(store.ledger.claim_waiting(NOON + MINUTE)), NOON + MINUTE)
        assert (again.attempts, self._runs(store)) == (2, 1)
        done = must(store.ledger.settle(again, SUCCEEDED, now=NOON + MINUTE))
        assert done.reason is Reason.FIRED
        assert drain(store, NOON + 10 * MINUTE) == []

    def test_t04_a_retry_that_is_spent_is_dead_though_its_limit_is_used_up(
        self, store: Store
    ) -> None:
        spent = replace(ONCE, retry=replace(ONCE.retry, attempts=2))
        first = self._first(store, spent)
        store.ledger.settle(first, FAILED, now=SOON)
        again = start(store, only(store.ledger.claim_waiting(NOON + MINUTE)), NOON + MINUTE)
        dead = must(store.ledger.settle(again, FAILED, now=NOON + MINUTE))
        assert (dead.state, dead.reason) == (State.DEAD, Reason.FAILED)

    def test_d02_a_first_attempt_that_was_rejected_gives_its_run_back(self, store: Store) -> None:
        first = self._first(store)
        assert self._schedule(store).next_fire_at is None
        store.ledger.settle(first, REJECTED, now=NOON + 2 * MINUTE + SECOND)
        assert self._runs(store) == 0
        assert self._schedule(store).next_fire_at == NOON + 3 * MINUTE
        between = only(store.ledger.find("ada", "digest", state=State.CANCELLED))
        assert (between.reason, between.nominal_at) == (Reason.QUOTA, NOON + MINUTE)
        assert (between.range_end, between.count) == (NOON + 2 * MINUTE, 2)

    def test_d02_a_run_that_was_given_back_can_be_taken(self, store: Store) -> None:
        store.ledger.settle(self._first(store), REJECTED, now=SOON)
        again = start(store, only(drain(store, NOON + MINUTE)), NOON + MINUTE)
        assert (again.nominal_at, self._runs(store)) == (NOON + MINUTE, 1)
        assert drain(store, NOON + 10 * MINUTE) == []

    def test_d02_a_rejection_that_is_said_twice_gives_one_run_back(self, store: Store) -> None:
        twice = replace(ONCE, max_runs=2, overlap=Overlap.ALLOW)
        first = self._first(store, twice)
        start(store, only(drain(store, NOON + MINUTE)), NOON + MINUTE)
        for _ in range(2):
            store.ledger.settle(first, REJECTED, now=NOON + MINUTE)
        assert self._runs(store) == 1

    def test_d02_a_second_attempt_that_was_rejected_gives_nothing_back(self, store: Store) -> None:
        store.ledger.settle(self._first(store), FAILED, now=SOON)
        again = start(store, only(store.ledger.claim_waiting(NOON + MINUTE)), NOON + MINUTE)
        store.ledger.settle(again, REJECTED, now=NOON + MINUTE)
        assert self._runs(store) == 1
        assert self._schedule(store).next_fire_at is None

    def test_d02_a_first_attempt_that_ran_and_may_not_be_tried_again_counts(
        self, store: Store
    ) -> None:
        first = self._first(store)
        final = replace(FAILED, final=True)
        dead = must(store.ledger.settle(first, final, now=SOON))
        assert (dead.state, dead.reason, self._runs(store)) == (State.DEAD, Reason.FAILED, 1)

    def test_d02_a_run_is_not_given_back_to_a_namesake(self, store: Store) -> None:
        beside = replace(ONCE, overlap=Overlap.ALLOW)
        first = self._first(store, beside)
        store.schedules.delete("ada", "digest", now=SOON + SECOND)
        store.schedules.put(self._make_schedule(beside), now=SOON + 2 * SECOND)
        start(store, only(drain(store, NOON + MINUTE)), NOON + MINUTE)
        store.ledger.settle(first, REJECTED, now=NOON + MINUTE)
        assert self._runs(store) == 1

    def test_d02_what_began_under_a_namesake_gives_its_run_back_to_it(self, store: Store) -> None:
        """The occurrence was claimed before the delete: it counts as a run of the new schedule."""
        self.needs(Capability.LOOK_AHEAD)
        begun = begin_under_namesake(store, self._make_schedule(ONCE))
        assert self._runs(store) == 1
        store.ledger.settle(begun, REJECTED, now=SOON)
        assert self._runs(store) == 0
        assert self._schedule(store).next_fire_at == NOON + MINUTE

    @pytest.mark.parametrize("resumed_first", [True, False])
    def test_d02_a_run_that_is_given_back_after_a_pause_leaves_no_time_out(
        self, store: Store, *, resumed_first: bool
    ) -> None:
        """12:00 begins as the last run, 12:02:30 to 12:03:30 is a pause, 12:04:30 rejects."""
        first = self._first(store)
        at = NOON + 2 * MINUTE + 30 * SECOND
        store.schedules.put(pause(self._schedule(store), "", None, at), now=at)
        if resumed_first:
            self._resume(store, at + MINUTE)
        store.ledger.settle(first, REJECTED, now=at + 2 * MINUTE)
        if not resumed_first:
            self._resume(store, at + 3 * MINUTE)
        drain(store, NOON + 6 * MINUTE)
        times = sorted(outcomes(store, self._schedule(store)))
        assert times == [NOON + n * MINUTE for n in range(7)]

    def test_t04_a_pause_with_an_end_holds_the_retry_of_a_schedule_that_is_done(
        self, store: Store
    ) -> None:
        store.ledger.settle(self._first(store), FAILED, now=SOON)
        until = NOON + HOUR
        store.schedules.put(pause(self._schedule(store), "", until, SOON), now=SOON)
        leased = only(store.ledger.claim_waiting(NOON + MINUTE))
        answer = refused(store.ledger.begin(leased, now=NOON + MINUTE))
        assert (answer.state, answer.due_at) == (State.RETRYING, until)
        start(store, only(store.ledger.claim_waiting(until)), until)

    def _resume(self, store: Store, at: int) -> None:
        store.schedules.put(resume(self._schedule(store)), now=at)

    def test_d02_what_was_claimed_ahead_is_accounted_for_once(self, store: Store) -> None:
        """The mark is later than the settle. No time is made again, and none is missing."""
        store.schedules.put(self._make_schedule(ONCE), now=NOON - SECOND)
        claimed = sorted(drain(store, SOON, ahead=2 * MINUTE), key=lambda one: one.nominal_at)
        first = start(store, claimed[0], SOON)
        store.ledger.settle(first, REJECTED, now=SOON + SECOND)
        assert self._schedule(store).next_fire_at == claimed[-1].nominal_at + MINUTE
        assert start(store, claimed[1], NOON + MINUTE).attempts == 1

    def _make_schedule(self, policies: Policies) -> Schedule:
        return schedule(cron=EACH_MINUTE, policies=policies)

    def _first(self, store: Store, policies: Policies = ONCE) -> Occurrence:
        store.schedules.put(self._make_schedule(policies), now=NOON - SECOND)
        return start(store, only(drain(store, SOON)), SOON)

    def _schedule(self, store: Store) -> Record:
        return must(store.schedules.get("ada", "digest"))

    def _runs(self, store: Store) -> int:
        return self._schedule(store).runs

"""J-06: a schedule that fails several times in a row is paused, if its policy says so."""

from dataclasses import replace

import pytest

from duetick.core.store import Store
from duetick.core.verify import verify
from duetick.domain.attempts import SUCCEEDED, Outcome, reject
from duetick.domain.operating import Operator
from duetick.domain.pausing import resume
from duetick.domain.policies import Backoff, Delivery, Overlap, Policies, Retry
from duetick.domain.schedule import Record
from duetick.testing.conformance.samples import EACH_MINUTE, HOUR, MINUTE, NOON, by_hand, schedule
from duetick.testing.conformance.suite import (
    FAILED,
    StoreSuite,
    begun,
    drain,
    must,
    only,
    run,
    start,
)

TWICE = Policies(pause_after=2)


def fire(store: Store, minute: int, *outcomes: Outcome) -> None:
    """Let the schedule fire in a minute, and end each of its attempts."""
    now = NOON + minute * MINUTE
    for number, outcome in enumerate(outcomes):
        waits = store.ledger.claim_waiting(now) if number else drain(store, now)
        store.ledger.settle(start(store, only(waits), now), outcome, now=now)
        now += 10_000


def put(store: Store, policies: Policies = TWICE) -> Record:
    """Put a schedule of each minute."""
    return store.schedules.put(schedule(cron=EACH_MINUTE, policies=policies), now=NOON)


def current(store: Store) -> Record:
    """Return the schedule as it is now."""
    return must(store.schedules.get("ada", "digest"))


class FailingConformance(StoreSuite):
    """Only a schedule's own deaths in a row pause it, and its resume begins anew."""

    @pytest.mark.parametrize("outcome", [FAILED, reject("no such action")])
    def test_j06_so_many_failures_in_a_row_pause_it(self, store: Store, outcome: Outcome) -> None:
        put(store)
        fire(store, 1, outcome)
        assert current(store).enabled
        fire(store, 2, outcome)
        paused = current(store)
        assert (paused.enabled, paused.pause is not None) == (False, True)
        assert "2 times in a row" in must(paused.pause).note
        assert drain(store, NOON + HOUR) == []
        assert verify(store, 0, NOON + HOUR, now=NOON + HOUR).found == {}

    def test_j06_its_note_repeats_no_error(self, store: Store) -> None:
        put(store, Policies(pause_after=1))
        fire(store, 1, replace(FAILED, error="password=hunter2", told="password=hunter2"))
        assert "hunter2" not in must(current(store).pause).note

    def test_j06_a_success_between_begins_anew(self, store: Store) -> None:
        put(store)
        for minute, outcome in enumerate((FAILED, SUCCEEDED, FAILED), 1):
            fire(store, minute, outcome)
        assert current(store).enabled
        fire(store, 4, FAILED)
        assert not current(store).enabled

    @pytest.mark.parametrize(
        ("outcomes", "goes_on"), [((FAILED, SUCCEEDED, FAILED), True), ((FAILED, FAILED), False)]
    )
    def test_j13_what_an_operator_deletes_counts_as_it_ended(
        self, store: Store, outcomes: tuple[Outcome, ...], goes_on: bool
    ) -> None:
        put(store)
        for minute, outcome in enumerate(outcomes, 1):
            fire(store, minute, outcome)
            if minute == len(outcomes) - 1:
                newest = store.ledger.find("ada", "digest")[0]
                now = NOON + minute * MINUTE + 20_000
                store.ledger.discard(newest, Operator("op"), now=now)
        assert current(store).enabled == goes_on

    def test_j06_an_occurrence_that_is_retried_and_succeeds_is_no_failure(
        self, store: Store
    ) -> None:
        retry = Retry(Backoff.FIXED, attempts=2, first=10)
        put(store, replace(TWICE, delivery=Delivery.AT_LEAST_ONCE, retry=retry))
        for minute in range(1, 5):
            fire(store, minute, FAILED, SUCCEEDED)
        assert current(store).enabled

    def test_j06_a_resume_begins_anew(self, store: Store) -> None:
        put(store)
        fire(store, 1, FAILED)
        fire(store, 2, FAILED)
        store.schedules.put(resume(current(store)), now=NOON + 2 * MINUTE + 20_000)
        fire(store, 3, FAILED)
        assert current(store).enabled
        fire(store, 4, FAILED)
        assert not current(store).enabled

    def test_a03_runs_by_hand_neither_count_nor_end_a_streak(self, store: Store) -> None:
        made = put(store)
        fire(store, 1, FAILED)
        for number, outcome in enumerate((FAILED, SUCCEEDED)):
            asked = replace(by_hand(run=f"run:{number}", at=NOON + MINUTE + 1), policies=TWICE)
            asked = replace(asked, redefined_at=made.redefined_at)
            by_itself = begun(run(store, asked, NOON + MINUTE + 30_000)).occurrence
            store.ledger.settle(by_itself, outcome, now=NOON + MINUTE + 31_000)
        assert current(store).enabled
        fire(store, 2, FAILED)
        assert not current(store).enabled

    def test_t07_a_lost_attempt_is_a_failure(self, store: Store) -> None:
        put(store, Policies(pause_after=1))
        start(store, only(drain(store, NOON + MINUTE)), NOON + MINUTE)
        store.ledger.claim_waiting(NOON + 3 * MINUTE)
        assert not current(store).enabled

    def test_d08_what_is_skipped_between_ends_no_streak(self, store: Store) -> None:
        put(store, replace(TWICE, overlap=Overlap.SKIP))
        fire(store, 1, FAILED)
        long = start(store, only(drain(store, NOON + 2 * MINUTE)), NOON + 2 * MINUTE)
        now = NOON + 2 * MINUTE + 59_999
        skipped = only(drain(store, now, ahead=2))
        store.ledger.begin(skipped, now=now + 1)
        store.ledger.settle(long, FAILED, now=now + 1)
        assert not current(store).enabled

    def test_l01_a_schedule_that_is_done_is_not_paused(self, store: Store) -> None:
        put(store, Policies(pause_after=1, max_runs=1))
        fire(store, 1, FAILED)
        assert current(store).done_at is not None
        assert current(store).pause is None

    def test_m06_a_static_schedule_is_paused_too(self, store: Store) -> None:
        made = schedule("jobs/nightly", cron=EACH_MINUTE, user="", policies=TWICE)
        store.schedules.put(made, now=NOON)
        fire(store, 1, FAILED)
        assert must(store.schedules.get("", "jobs/nightly")).enabled
        fire(store, 2, FAILED)
        paused = must(store.schedules.get("", "jobs/nightly"))
        assert (paused.enabled, drain(store, NOON + HOUR)) == (False, [])
        store.schedules.put(resume(paused), now=NOON + HOUR)
        assert must(store.schedules.get("", "jobs/nightly")).enabled

    def test_j06_without_the_policy_it_goes_on(self, store: Store) -> None:
        put(store, Policies())
        for minute in range(1, 8):
            fire(store, minute, FAILED)
        assert current(store).enabled

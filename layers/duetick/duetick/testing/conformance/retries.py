"""At least once: an occurrence is tried again until it succeeds or its attempts are spent."""

from dataclasses import replace

import pytest

from duetick.core.store import Store
from duetick.domain.attempts import SUCCEEDED, Outcome
from duetick.domain.errors import InvalidSchedule
from duetick.domain.policies import Backoff, Delivery, Policies
from duetick.domain.schedule import Occurrence
from duetick.domain.states import Reason, State
from duetick.testing.conformance.samples import (
    AT_LEAST_ONCE,
    HOUR,
    MINUTE,
    NOON,
    QUIET,
    SECOND,
    SOON,
    TWO_TRIES,
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
    start,
)


def fail_first(
    store: Store, policies: Policies, key: str = "digest", now: int = NOON
) -> Occurrence:
    """Return an occurrence whose first attempt failed at `now`."""
    store.index.upsert(row(key, cron=QUIET, policies=policies, at=now - SECOND))
    running = start(store, only(drain(store, now)), now)
    return must(store.ledger.settle(running, FAILED, now=now))


def with_retry(**fields: int | Backoff) -> Policies:
    """Return the policies for at least once with that retry."""
    return Policies.of({"delivery": Delivery.AT_LEAST_ONCE, "retry": fields})


class RetryConformance(StoreSuite):
    """J-04, J-06 and T-04."""

    def test_t04_a_failure_waits_for_its_next_attempt(self, store: Store) -> None:
        waiting = fail_first(store, AT_LEAST_ONCE)
        assert (waiting.state, waiting.reason) == (State.RETRYING, None)
        assert (waiting.due_at, waiting.error) == (NOON + 10 * SECOND, FAILED.error)
        assert recorded(store, waiting) == waiting

    def test_t04_a_retry_is_not_handed_out_early(self, store: Store) -> None:
        waiting = fail_first(store, AT_LEAST_ONCE)
        assert list(store.ledger.claim_waiting(waiting.due_at - 1)) == []

    def test_t04_a_retry_keeps_its_identity_and_gets_a_new_fence(self, store: Store) -> None:
        waiting = fail_first(store, AT_LEAST_ONCE)
        again = only(store.ledger.claim_waiting(waiting.due_at))
        assert (again.identity, again.id) == (waiting.identity, waiting.id)
        assert again.fence != waiting.fence
        assert recorded(store, waiting) == again

    def test_t04_a_retry_is_the_second_attempt(self, store: Store) -> None:
        waiting = fail_first(store, AT_LEAST_ONCE)
        again = only(store.ledger.claim_waiting(waiting.due_at))
        running = start(store, again, waiting.due_at)
        assert running.attempts == 2
        assert must(store.ledger.settle(running, SUCCEEDED, now=waiting.due_at)).attempts == 2

    @pytest.mark.parametrize("renewed_at", [20, 50])
    def test_t04_a_retry_does_not_wait_for_the_end_of_a_lease_that_was_renewed(
        self, store: Store, renewed_at: int
    ) -> None:
        store.schedules.put(schedule(policies=AT_LEAST_ONCE), now=NOON - HOUR)
        running = start(store, only(drain(store, NOON)), NOON)
        ends = must(running.lease_until)
        store.ledger.renew(running, now=NOON + renewed_at * SECOND)
        assert store.ledger.claim_waiting(ends) == []
        failed_at = ends - 5 * SECOND
        waiting = must(store.ledger.settle(running, FAILED, now=failed_at))
        assert waiting.due_at == failed_at + 10 * SECOND
        assert keys(store.ledger.claim_waiting(waiting.due_at)) == ["digest"]

    def test_t07_a_retry_is_handed_out_once(self, store: Store) -> None:
        waiting = fail_first(store, AT_LEAST_ONCE)
        store.ledger.claim_waiting(waiting.due_at)
        assert list(store.ledger.claim_waiting(waiting.due_at)) == []

    def test_j13_what_waits_for_a_retry_does_not_begin(self, store: Store) -> None:
        waiting = fail_first(store, AT_LEAST_ONCE)
        answer = refused(store.ledger.begin(waiting, now=waiting.due_at))
        assert (answer.verdict, answer.state) == ("duplicate", State.RETRYING)

    def test_j05_a_failure_that_is_said_twice_counts_once(self, store: Store) -> None:
        waiting = fail_first(store, AT_LEAST_ONCE)
        assert store.ledger.settle(waiting, FAILED, now=NOON + SECOND) == waiting
        assert recorded(store, waiting) == waiting

    @pytest.mark.parametrize(
        ("policies", "delays"),
        [
            (with_retry(first=10, longest=50), [10, 20, 40, 50]),
            (with_retry(backoff=Backoff.FIXED, first=7), [7, 7, 7, 7]),
        ],
    )
    def test_j06_delays_grow_as_the_policy_says_until_they_are_spent(
        self, store: Store, policies: Policies, delays: list[int]
    ) -> None:
        retried, now = fail_first(store, policies), NOON
        for delay in delays:
            assert retried.due_at - now == delay * SECOND
            now = retried.due_at
            running = start(store, only(store.ledger.claim_waiting(now)), now)
            retried = must(store.ledger.settle(running, FAILED, now=now))
        assert (retried.state, retried.reason, retried.attempts) == (State.DEAD, Reason.FAILED, 5)

    def test_j06_jitter_brings_an_attempt_sooner_and_leaves_its_name_alone(
        self, store: Store
    ) -> None:
        """Twenty that fail together come back apart, each within the half of its wait."""
        held = with_retry(backoff=Backoff.FIXED, first=1_000, jitter=50)
        for number in range(20):
            store.index.upsert(row(f"k{number}", policies=held))
        running = [start(store, one, SOON) for one in drain(store, SOON)]
        waiting = [must(store.ledger.settle(one, FAILED, now=SOON)) for one in running]
        delays = {one.due_at - SOON for one in waiting}
        assert len(delays) > 10
        assert min(delays) >= 500 * SECOND
        assert max(delays) <= 1_000 * SECOND
        assert [one.identity for one in waiting] == [one.identity for one in running]
        assert [store.ledger.settle(one, FAILED, now=SOON) for one in running] == waiting

    def test_j06_without_retries_the_first_failure_is_the_end(self, store: Store) -> None:
        assert fail_first(store, with_retry(backoff=Backoff.NONE)).state is State.DEAD

    def test_j06_a_store_keeps_no_retry_whose_longest_wait_is_under_its_first(
        self, store: Store
    ) -> None:
        """A retry that names its first wait alone gets the usual longest one, of an hour."""
        contrary = with_retry(first=7_200)
        with pytest.raises(InvalidSchedule, match=r"policies\.retry\.longest: .* from 7200 to"):
            store.schedules.put(schedule(policies=contrary), now=NOON)
        with pytest.raises(InvalidSchedule, match=r"policies\.retry\.longest: .* from 7200 to"):
            store.index.upsert(row(policies=contrary))
        assert (store.schedules.get("ada", "digest"), store.index.get("ada", "digest")) == (
            None,
            None,
        )

    def test_t04_what_was_rejected_is_not_tried_again(self, store: Store) -> None:
        store.index.upsert(row(policies=AT_LEAST_ONCE))
        running = start(store, only(drain(store, SOON)), NOON)
        rejected = Outcome(State.FAILED, Reason.REJECTED, "no such action")
        settled = must(store.ledger.settle(running, rejected, now=NOON))
        assert (settled.state, settled.reason) == (State.DEAD, Reason.REJECTED)

    def test_t04_a_lost_attempt_counts_and_the_last_one_is_the_end(self, store: Store) -> None:
        waiting = fail_first(store, TWO_TRIES)
        again = only(store.ledger.claim_waiting(waiting.due_at))
        running = start(store, again, waiting.due_at)
        assert list(store.ledger.claim_waiting(must(running.lease_until))) == []
        kept = recorded(store, running)
        assert (kept.state, kept.reason, kept.attempts) == (State.DEAD, Reason.LOST, 2)

    def test_j05_a_retry_leaves_a_trace(self, store: Store) -> None:
        self.needs(Capability.TRACES)
        event = only(store.ledger.events(fail_first(store, AT_LEAST_ONCE)))
        assert (event.at, event.before, event.after) == (NOON, State.PROCESSING, State.RETRYING)
        assert str(FAILED.error) in event.note

    def test_j05_traces_are_of_one_occurrence_in_order(self, store: Store) -> None:
        self.needs(Capability.TRACES)
        retried = fail_first(store, AT_LEAST_ONCE)
        fail_first(store, AT_LEAST_ONCE, key="other")
        for _ in range(2):
            running = start(store, self._retry_of(store, retried), retried.due_at)
            retried = must(store.ledger.settle(running, FAILED, now=retried.due_at))
        times = [event.at for event in store.ledger.events(retried)]
        assert times == [NOON, NOON + 10 * SECOND, NOON + 30 * SECOND]

    def _retry_of(self, store: Store, retried: Occurrence) -> Occurrence:
        waiting = store.ledger.claim_waiting(retried.due_at)
        return only([o for o in waiting if o.identity == retried.identity])

    def test_j04_ended_leases_go_before_retries(self, store: Store) -> None:
        retrying = fail_first(store, AT_LEAST_ONCE, "retries", NOON - HOUR)
        store.index.upsert(row("lost", at=NOON))
        end = must(only(drain(store, SOON)).lease_until)
        assert retrying.due_at < end
        assert keys(store.ledger.claim_waiting(end)) == ["lost", "retries"]

    def test_j04_what_waits_goes_by_priority_then_by_due_time(self, store: Store) -> None:
        high = replace(AT_LEAST_ONCE, priority=5)
        fail_first(store, AT_LEAST_ONCE, "low-early", NOON - 2 * MINUTE)
        fail_first(store, AT_LEAST_ONCE, "low-late", NOON - MINUTE)
        fail_first(store, high, "high", NOON)
        found = keys(store.ledger.claim_waiting(NOON + HOUR))
        assert found == ["high", "low-early", "low-late"]

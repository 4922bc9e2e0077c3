"""T-04 and D-08: an occurrence that began is tried again, even if its schedule changes."""

from dataclasses import replace

import pytest

from duetick.core.store import Store
from duetick.domain.attempts import SUCCEEDED
from duetick.domain.pausing import pause, resume
from duetick.domain.policies import Delivery, Overlap, Policies
from duetick.domain.schedule import Occurrence, Record, Schedule
from duetick.domain.states import Reason, State
from duetick.testing.conformance.samples import (
    EACH_MINUTE,
    HOUR,
    MINUTE,
    NOON,
    SECOND,
    SOON,
    by_hand,
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

alone = pytest.mark.parametrize("overlap", [Overlap.SKIP, Overlap.WAIT])


def each_minute(overlap: Overlap = Overlap.SKIP) -> Schedule:
    """Return a schedule that tries a failed attempt again, at first after ten seconds."""
    policies = Policies(delivery=Delivery.AT_LEAST_ONCE, overlap=overlap)
    return schedule(cron=EACH_MINUTE, policies=policies)


def fail_first(store: Store, overlap: Overlap = Overlap.SKIP) -> Occurrence:
    """Return the occurrence of 12:00. Its first attempt failed at 12:00:01."""
    store.schedules.put(each_minute(overlap), now=NOON - SECOND)
    running = start(store, only(drain(store, SOON)), SOON)
    return must(store.ledger.settle(running, FAILED, now=SOON))


def successor(store: Store, minute: int = 1) -> Occurrence:
    """Claim a later occurrence of the same schedule, at its time."""
    now = NOON + minute * MINUTE
    return only([one for one in drain(store, now) if one.nominal_at == now])


def begin_under_namesake(store: Store, wanted: Schedule) -> Occurrence:
    """Claim the occurrence of noon ahead, delete its schedule, put the same one again, and begin
    the occurrence.
    """
    store.schedules.put(wanted, now=NOON - 2 * MINUTE)
    early = NOON - 90 * SECOND
    claimed = [one for one in drain(store, early, ahead=2 * MINUTE) if one.nominal_at == NOON]
    store.schedules.delete("ada", "digest", now=early)
    store.schedules.put(wanted, now=early + SECOND)
    return start(store, only(claimed), NOON)


class SecondAttemptConformance(StoreSuite):
    """A retry meets its successor, and changes of its schedule."""

    @alone
    def test_d08_a_retry_is_not_leased_while_its_successor_runs(
        self, store: Store, overlap: Overlap
    ) -> None:
        retry, now = fail_first(store, overlap), NOON + MINUTE
        running = start(store, successor(store), now)
        assert list(store.ledger.claim_waiting(now + SECOND)) == []
        assert recorded(store, retry).state is State.RETRYING
        store.ledger.settle(running, SUCCEEDED, now=now + 2 * SECOND)
        again = only(store.ledger.claim_waiting(now + 2 * SECOND))
        assert start(store, again, now + 2 * SECOND).attempts == 2

    def test_d08_a_leased_retry_has_its_place_and_its_successor_is_skipped(
        self, store: Store
    ) -> None:
        fail_first(store)
        now = NOON + MINUTE
        again = only(store.ledger.claim_waiting(now))
        answer = refused(store.ledger.begin(successor(store), now=now))
        assert (answer.verdict, answer.reason) == ("cancelled", Reason.OVERLAP)
        assert start(store, again, now).attempts == 2

    def test_d08_a_leased_retry_has_its_place_and_its_successor_waits(self, store: Store) -> None:
        self.needs(Capability.WAIT)
        fail_first(store, Overlap.WAIT)
        now = NOON + MINUTE
        again, later = only(store.ledger.claim_waiting(now)), successor(store)
        answer = refused(store.ledger.begin(later, now=now))
        assert (answer.verdict, answer.state) == ("in_progress", State.QUEUED)
        store.ledger.settle(start(store, again, now), SUCCEEDED, now=now + SECOND)
        start(store, only(store.ledger.claim_waiting(now + SECOND)), now + SECOND)

    @alone
    def test_d08_of_two_retries_of_a_schedule_one_is_leased(
        self, store: Store, overlap: Overlap
    ) -> None:
        first, now = fail_first(store, overlap), NOON + MINUTE
        second = start(store, successor(store), now)
        store.ledger.settle(second, FAILED, now=now)
        assert only(store.ledger.claim_waiting(now + MINUTE)).identity == first.identity
        assert recorded(store, second).state is State.RETRYING

    def test_t04_what_began_under_a_namesake_is_tried_again(self, store: Store) -> None:
        self.needs(Capability.LOOK_AHEAD)
        begun = begin_under_namesake(store, each_minute())
        store.ledger.settle(begun, FAILED, now=SOON)
        now = NOON + 30 * SECOND
        again = [o for o in store.ledger.claim_waiting(now) if o.identity == begun.identity]
        assert start(store, only(again), now).attempts == 2

    def test_d08_a_retry_that_was_given_back_has_its_place_before_a_second_successor(
        self, store: Store
    ) -> None:
        """The gateway refused its delivery after one successor had run."""
        fail_first(store)
        first = start(store, successor(store), NOON + MINUTE)
        store.ledger.settle(first, SUCCEEDED, now=NOON + MINUTE + SECOND)
        leased = only(store.ledger.claim_waiting(NOON + 90 * SECOND))
        assert store.ledger.release(leased, now=NOON + 91 * SECOND)
        answer = refused(store.ledger.begin(successor(store, 2), now=NOON + 2 * MINUTE))
        assert (answer.verdict, answer.reason) == ("cancelled", Reason.OVERLAP)
        again = only(store.ledger.claim_waiting(NOON + 2 * MINUTE))
        assert start(store, again, NOON + 2 * MINUTE).attempts == 2

    @alone
    def test_d08_a_retry_whose_delay_is_not_over_blocks_nobody(
        self, store: Store, overlap: Overlap
    ) -> None:
        store.schedules.put(each_minute(overlap), now=NOON - SECOND)
        first, now = start(store, only(drain(store, SOON)), SOON), NOON + MINUTE
        store.ledger.settle(first, FAILED, now=now)
        assert start(store, successor(store), now).state is State.PROCESSING

    @alone
    def test_d08_a_retry_that_is_leased_before_its_time_blocks_nobody(
        self, store: Store, overlap: Overlap
    ) -> None:
        self.needs(Capability.LOOK_AHEAD)
        store.schedules.put(each_minute(overlap), now=NOON - SECOND)
        first, now = start(store, only(drain(store, SOON)), SOON), NOON + MINUTE
        store.ledger.settle(first, FAILED, now=now)
        ahead = only(store.ledger.claim_waiting(now, ahead=MINUTE))
        start(store, successor(store), now)
        assert recorded(store, first).state is State.RETRYING
        assert refused(store.ledger.begin(ahead, now=ahead.due_at)).verdict == "duplicate"

    @pytest.mark.parametrize("scope", ["user:ada", "flow:reminders"])
    def test_o02_a_retry_that_a_pause_of_its_group_holds_reserves_no_place(
        self, store: Store, scope: str
    ) -> None:
        waiting = fail_first(store)
        running = start(store, successor(store), NOON + MINUTE)
        for now in (NOON + 110 * SECOND, NOON + 160 * SECOND):
            running = must(store.ledger.renew(running, now=now))
        later, kept = NOON + 200 * SECOND, recorded(store, waiting)
        store.pauses.pause(scope, by="ops", now=NOON + MINUTE)
        pauses = store.pauses.announce(later, later)
        assert store.ledger.claim_waiting(later, pauses=pauses) == []
        assert recorded(store, waiting) == kept

    def test_o03_a_retry_that_a_limit_keeps_back_reserves_no_place(self, store: Store) -> None:
        waiting = fail_first(store)
        running = start(store, successor(store), NOON + MINUTE)
        for now in (NOON + 110 * SECOND, NOON + 160 * SECOND):
            running = must(store.ledger.renew(running, now=now))
        store.limits.set("user:ada", parallel=1, rate=None, now=NOON + 160 * SECOND)
        store.schedules.put(schedule("other"), now=NOON + 160 * SECOND)
        start(store, by_hand("other"), NOON + 190 * SECOND)
        later, kept = NOON + 200 * SECOND, recorded(store, waiting)
        limits = store.limits.handing_on(later, {}, fresh=True)
        assert store.ledger.claim_waiting(later, limits=limits) == []
        assert recorded(store, waiting) == kept

    @alone
    def test_d08_a_retry_waits_for_one_successor_at_most(
        self, store: Store, overlap: Overlap
    ) -> None:
        """The next one was claimed ahead, and begins before the next tick leases the retry."""
        if overlap is Overlap.WAIT:
            self.needs(Capability.WAIT)
        retry = fail_first(store, overlap)
        first, third = successor(store), successor(store, 3)
        running = start(store, first, NOON + MINUTE)
        half_past = NOON + MINUTE + 30 * SECOND
        assert list(store.ledger.claim_waiting(half_past)) == []
        store.ledger.settle(running, SUCCEEDED, now=half_past + SECOND)
        answer = refused(store.ledger.begin(third, now=NOON + 3 * MINUTE))
        assert answer.reason is Reason.OVERLAP
        ready = store.ledger.claim_waiting(NOON + 3 * MINUTE + SECOND)
        again = only([one for one in ready if one.identity == retry.identity])
        assert start(store, again, NOON + 3 * MINUTE + SECOND).attempts == 2

    def test_d08_the_place_of_a_retry_is_free_again_where_no_tick_comes(self, store: Store) -> None:
        fail_first(store)
        running = start(store, successor(store), NOON + MINUTE)
        half_past = NOON + MINUTE + 30 * SECOND
        store.ledger.claim_waiting(half_past)
        store.ledger.settle(running, SUCCEEDED, now=half_past)
        start(store, successor(store, 30), NOON + 30 * MINUTE)

    def test_d08_a_retry_is_not_displaced_by_the_newest_that_waits(self, store: Store) -> None:
        self.needs(Capability.WAIT)
        fail_first(store, Overlap.WAIT)
        now = NOON + MINUTE
        again = only(store.ledger.claim_waiting(now))
        refused(store.ledger.begin(successor(store), now=now))
        assert recorded(store, again).state is State.QUEUED
        start(store, again, now)

    def test_t04_a_lease_that_ends_before_its_retry_began_never_makes_it_lost(
        self, store: Store
    ) -> None:
        fail_first(store)
        again = only(store.ledger.claim_waiting(NOON + MINUTE))
        much_later = NOON + 5 * HOUR
        assert only(store.ledger.claim_waiting(much_later)).identity == again.identity

    def test_t04_a_retry_outlives_a_change_of_timing(self, store: Store) -> None:
        fail_first(store)
        store.schedules.put(replace(each_minute(), cron="0 6 * * *"), now=SOON + SECOND)
        assert self._second_attempt(store, NOON + MINUTE).attempts == 2

    def test_t04_a_retry_outlives_the_end_of_its_schedule(self, store: Store) -> None:
        over = replace(each_minute().policies, ends_at=NOON + 2 * SECOND)
        store.schedules.put(replace(each_minute(), policies=over), now=NOON - SECOND)
        running = start(store, only(drain(store, SOON)), SOON)
        store.ledger.settle(running, FAILED, now=SOON)
        assert self._second_attempt(store, NOON + MINUTE).attempts == 2

    @pytest.mark.parametrize("until", [None, NOON + HOUR])
    def test_t04_a_pause_holds_a_retry_until_it_is_over(
        self, store: Store, until: int | None
    ) -> None:
        retry, over = fail_first(store), NOON + HOUR
        self._pause(store, until)
        assert self._lease_under_pause(store, NOON + 5 * MINUTE) == retry.identity
        assert list(store.ledger.claim_waiting(over - MINUTE)) == []
        if until is None:
            store.schedules.put(resume(self._schedule(store)), now=over)
        assert self._second_attempt(store, over).identity == retry.identity

    def test_t04_a_pause_that_is_lifted_early_holds_nothing_more(self, store: Store) -> None:
        fail_first(store)
        self._pause(store, NOON + 5 * HOUR)
        self._lease_under_pause(store, NOON + 5 * MINUTE)
        store.schedules.put(resume(self._schedule(store)), now=NOON + HOUR)
        assert self._second_attempt(store, NOON + HOUR).attempts == 2

    def test_t04_a_disabling_ends_a_retry_that_a_pause_holds(self, store: Store) -> None:
        retry = fail_first(store)
        self._pause(store, None)
        self._lease_under_pause(store, NOON + 5 * MINUTE)
        disabled = replace(self._schedule(store), pause=None, enabled=False)
        store.schedules.put(disabled, now=NOON + HOUR)
        answer = self._refusal(store, NOON + HOUR)
        assert answer == (State.CANCELLED, Reason.DISABLED)
        assert recorded(store, retry).reason is Reason.DISABLED

    def test_t04_a_delete_ends_a_retry_that_a_pause_holds(self, store: Store) -> None:
        fail_first(store)
        self._pause(store, None)
        self._lease_under_pause(store, NOON + 5 * MINUTE)
        store.schedules.delete("ada", "digest", now=NOON + HOUR)
        answer = self._refusal(store, NOON + HOUR)
        assert answer == (State.CANCELLED, Reason.SCHEDULE_DELETED)

    def test_t04_a_retry_of_a_schedule_that_was_deleted_is_not_one_of_its_namesakes(
        self, store: Store
    ) -> None:
        fail_first(store)
        store.schedules.delete("ada", "digest", now=SOON + SECOND)
        store.schedules.put(each_minute(), now=SOON + 2 * SECOND)
        answer = self._refusal(store, NOON + MINUTE)
        assert answer == (State.CANCELLED, Reason.SCHEDULE_DELETED)

    @pytest.mark.parametrize("until", [None, NOON + HOUR])
    def test_t04_a_retry_outlives_a_pause_after_which_its_schedule_fires_no_more(
        self, store: Store, until: int | None
    ) -> None:
        over = replace(each_minute().policies, ends_at=NOON + 2 * HOUR)
        store.schedules.put(replace(each_minute(), policies=over), now=NOON - SECOND)
        running = start(store, only(drain(store, SOON)), SOON)
        store.ledger.settle(running, FAILED, now=SOON)
        self._pause(store, until)
        self._lease_under_pause(store, NOON + 5 * MINUTE)
        late = NOON + 3 * HOUR
        store.schedules.put(resume(self._schedule(store)), now=late)
        assert self._schedule(store).next_fire_at is None
        assert self._second_attempt(store, late).attempts == 2
        assert list(store.check(now=late)) == []

    def test_t04_a_retry_of_a_run_by_hand_ends_when_its_schedule_is_disabled(
        self, store: Store
    ) -> None:
        store.schedules.put(each_minute(), now=NOON - SECOND)
        made = replace(by_hand(), redefined_at=self._schedule(store).redefined_at)
        running = start(store, made, SOON)
        store.ledger.settle(running, FAILED, now=SOON)
        disabled = replace(self._schedule(store), enabled=False)
        store.schedules.put(disabled, now=SOON + SECOND)
        assert self._refusal(store, NOON + MINUTE) == (State.CANCELLED, Reason.DISABLED)

    def test_t04_a_retry_of_a_run_by_hand_ends_where_its_schedule_was_disabled_before(
        self, store: Store
    ) -> None:
        store.schedules.put(replace(each_minute(), enabled=False), now=NOON - SECOND)
        since = self._schedule(store).redefined_at
        made = replace(by_hand(), cron=EACH_MINUTE, redefined_at=since)
        running = start(store, made, SOON)
        store.ledger.settle(running, FAILED, now=SOON)
        assert self._refusal(store, NOON + MINUTE) == (State.CANCELLED, Reason.DISABLED)

    def test_t04_a_pause_holds_a_retry_that_began_under_it(self, store: Store) -> None:
        store.schedules.put(each_minute(), now=NOON - SECOND)
        self._pause(store, NOON + HOUR)
        made = replace(by_hand(), redefined_at=self._schedule(store).redefined_at)
        running = start(store, made, NOON + MINUTE)
        store.ledger.settle(running, FAILED, now=NOON + MINUTE)
        assert self._lease_under_pause(store, NOON + 2 * MINUTE) == running.identity

    def test_t04_a_retry_is_not_one_of_a_namesake_whose_clock_was_behind(
        self, store: Store
    ) -> None:
        """The dispatch that began it had a clock ahead of the one that put the schedule again."""
        store.schedules.put(each_minute(), now=NOON - SECOND)
        ahead = SOON + 30 * SECOND
        running = start(store, only(drain(store, SOON)), ahead)
        store.ledger.settle(running, FAILED, now=ahead)
        store.schedules.delete("ada", "digest", now=SOON + SECOND)
        store.schedules.put(each_minute(), now=SOON + 2 * SECOND)
        answer = self._refusal(store, NOON + MINUTE)
        assert answer == (State.CANCELLED, Reason.SCHEDULE_DELETED)

    def test_d08_a_retry_follows_the_overlap_policy_of_its_schedule(self, store: Store) -> None:
        fail_first(store)
        allowed = replace(
            each_minute(), policies=replace(each_minute().policies, overlap=Overlap.ALLOW)
        )
        store.schedules.put(allowed, now=SOON + SECOND)
        start(store, successor(store), NOON + MINUTE)
        assert self._second_attempt(store, NOON + MINUTE).attempts == 2

    @alone
    def test_d08_one_successor_begins_before_a_retry_though_no_tick_comes(
        self, store: Store, overlap: Overlap
    ) -> None:
        if overlap is Overlap.WAIT:
            self.needs(Capability.WAIT)
        fail_first(store, overlap)
        first, second = successor(store), successor(store, 2)
        running = start(store, first, NOON + MINUTE)
        store.ledger.settle(running, SUCCEEDED, now=NOON + MINUTE + SECOND)
        answer = refused(store.ledger.begin(second, now=NOON + 2 * MINUTE))
        assert answer.reason is Reason.OVERLAP

    def test_j05_a_pause_that_holds_a_retry_leaves_a_trace(self, store: Store) -> None:
        self.needs(Capability.TRACES)
        retry = fail_first(store)
        self._pause(store, None)
        self._lease_under_pause(store, NOON + 5 * MINUTE)
        newest = store.ledger.events(retry)[-1]
        assert (newest.before, newest.after) == (State.QUEUED, State.RETRYING)
        assert "paused" in newest.note

    def _schedule(self, store: Store) -> Record:
        return must(store.schedules.get("ada", "digest"))

    def _pause(self, store: Store, until: int | None) -> None:
        now = SOON + SECOND
        store.schedules.put(pause(self._schedule(store), "", until, now), now=now)

    def _lease_under_pause(self, store: Store, now: int) -> tuple[str, str, int, str]:
        """Lease a retry that a pause keeps from its begin. Return its identity."""
        again = only(store.ledger.claim_waiting(now))
        answer = refused(store.ledger.begin(again, now=now))
        assert (answer.verdict, answer.reason) == ("in_progress", Reason.PAUSED)
        assert recorded(store, again).state is State.RETRYING
        return again.identity

    def _second_attempt(self, store: Store, now: int) -> Occurrence:
        return start(store, only(store.ledger.claim_waiting(now)), now)

    def _refusal(self, store: Store, now: int) -> tuple[State | None, Reason | None]:
        again = only(store.ledger.claim_waiting(now))
        answer = refused(store.ledger.begin(again, now=now))
        return answer.state, answer.reason

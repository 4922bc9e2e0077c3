"""D-08: an occurrence while another one of its schedule is running."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from duetick.core.store import Store
from duetick.domain.attempts import SUCCEEDED
from duetick.domain.policies import Overlap, Policies
from duetick.domain.schedule import Occurrence
from duetick.domain.states import Reason, State
from duetick.testing.conformance.samples import (
    ALLOW,
    AT_LEAST_ONCE,
    EACH_MINUTE,
    MINUTE,
    NOON,
    SECOND,
    SOON,
    WAIT,
    by_hand,
    row,
    schedule,
)
from duetick.testing.conformance.suite import (
    Capability,
    StoreSuite,
    begun,
    drain,
    must,
    only,
    recorded,
    refused,
    start,
)

LATER = NOON + 2 * MINUTE


def three(store: Store, policies: Policies) -> Sequence[Occurrence]:
    """Claim three occurrences of one schedule together, still on time."""
    store.index.upsert(row(cron=EACH_MINUTE, policies=policies))
    return sorted(drain(store, LATER), key=lambda o: o.nominal_at)


class OverlapConformance(StoreSuite):
    """Skip, allow and wait, as one conditional write."""

    def test_d08_skip_ends_what_meets_another_running(self, store: Store) -> None:
        first, second, _ = three(store, Policies())
        start(store, first, LATER)
        answer = refused(store.ledger.begin(second, now=LATER))
        assert (answer.verdict, answer.reason) == ("cancelled", Reason.OVERLAP)
        kept = recorded(store, second)
        assert (kept.state, kept.reason, kept.attempts) == (State.CANCELLED, Reason.OVERLAP, 0)

    def test_d08_skip_lets_the_next_one_begin_when_the_first_has_ended(self, store: Store) -> None:
        first, second, _ = three(store, Policies())
        store.ledger.settle(start(store, first, LATER), SUCCEEDED, now=LATER)
        start(store, second, LATER)

    def test_d08_skip_leaves_other_schedules_alone(self, store: Store) -> None:
        for key in ("a", "b"):
            store.index.upsert(row(key))
        first, second = drain(store, SOON)
        start(store, first, SOON)
        start(store, second, SOON)

    def test_d08_skip_leaves_equal_keys_of_other_users_alone(self, store: Store) -> None:
        for user in ("ada", "bob"):
            store.index.upsert(row(user=user))
        first, second = drain(store, SOON)
        start(store, first, SOON)
        start(store, second, SOON)

    def test_d08_skip_counts_a_run_by_hand(self, store: Store) -> None:
        start(store, by_hand(), SOON)
        store.index.upsert(row())
        answer = refused(store.ledger.begin(only(drain(store, SOON)), now=SOON))
        assert (answer.verdict, answer.reason) == ("cancelled", Reason.OVERLAP)

    def test_d08_allow_runs_them_side_by_side(self, store: Store) -> None:
        for occurrence in three(store, ALLOW):
            start(store, occurrence, LATER)

    @pytest.mark.parametrize("overlap", [Overlap.SKIP, Overlap.WAIT])
    def test_d08_a_crashed_holder_frees_it_when_its_lease_ends(
        self, store: Store, overlap: Overlap
    ) -> None:
        if overlap is Overlap.WAIT:
            self.needs(Capability.WAIT)
        policies = Policies(overlap=overlap)
        store.index.upsert(row(cron=EACH_MINUTE, policies=policies))
        crashed = start(store, only(drain(store, SOON)), SOON)
        end = must(crashed.lease_until)
        later = only([o for o in drain(store, end) if o.nominal_at > NOON])
        reported: list[Occurrence] = []
        begun(store.ledger.begin(later, now=end, on_lost=reported.append))
        assert recorded(store, crashed).state is State.DEAD
        assert reported == [recorded(store, crashed)]

    @pytest.mark.parametrize("overlap", [Overlap.SKIP, Overlap.WAIT])
    def test_t04_one_that_crashed_comes_back_after_its_successor(
        self, store: Store, overlap: Overlap
    ) -> None:
        policies = replace(AT_LEAST_ONCE, overlap=overlap)
        store.index.upsert(row(cron=EACH_MINUTE, policies=policies))
        crashed = start(store, only(drain(store, SOON)), SOON)
        end = must(crashed.lease_until)
        successor = start(store, only(drain(store, end)), end)
        assert recorded(store, crashed).state is State.RETRYING
        assert list(store.ledger.claim_waiting(end + SECOND)) == []
        store.ledger.settle(successor, SUCCEEDED, now=end + MINUTE)
        assert only(store.ledger.claim_waiting(end + MINUTE)).identity == crashed.identity

    def test_d08_the_policy_of_now_decides(self, store: Store) -> None:
        store.schedules.put(schedule(cron=EACH_MINUTE, policies=ALLOW), now=NOON)
        first, second = drain(store, LATER)
        store.schedules.put(schedule(cron=EACH_MINUTE), now=LATER)
        start(store, first, LATER)
        assert refused(store.ledger.begin(second, now=LATER)).reason is Reason.OVERLAP

    def test_d08_skip_sees_what_began_while_it_was_allowed(self, store: Store) -> None:
        now = LATER + SECOND
        store.schedules.put(schedule(cron=EACH_MINUTE, policies=ALLOW), now=NOON)
        first, second = drain(store, now)
        running = start(store, first, now)
        store.schedules.put(schedule(cron=EACH_MINUTE), now=now)
        assert refused(store.ledger.begin(second, now=now)).reason is Reason.OVERLAP
        store.ledger.settle(running, SUCCEEDED, now=now)
        third = only(drain(store, now + MINUTE))
        start(store, third, now + MINUTE)

    def test_d08_each_of_those_that_were_allowed_counts(self, store: Store) -> None:
        """Two run because overlap was allowed. The one that began alone has ended."""
        now = LATER + MINUTE + SECOND
        store.schedules.put(schedule(cron=EACH_MINUTE), now=NOON)
        first, second, third = drain(store, now)
        alone = start(store, first, now)
        store.schedules.put(schedule(cron=EACH_MINUTE, policies=ALLOW), now=now)
        start(store, second, now)
        store.schedules.put(schedule(cron=EACH_MINUTE), now=now)
        store.ledger.settle(alone, SUCCEEDED, now=now)
        assert refused(store.ledger.begin(third, now=now)).reason is Reason.OVERLAP

    def test_d08_wait_keeps_it_for_later(self, store: Store) -> None:
        self.needs(Capability.WAIT)
        first, second, _ = three(store, WAIT)
        start(store, first, LATER)
        answer = refused(store.ledger.begin(second, now=LATER))
        assert (answer.verdict, answer.state) == ("in_progress", State.QUEUED)
        assert recorded(store, second).attempts == 0

    def test_d08_who_waited_begins_when_the_other_has_ended(self, store: Store) -> None:
        self.needs(Capability.WAIT)
        first, second, _ = three(store, WAIT)
        running = start(store, first, LATER)
        store.ledger.begin(second, now=LATER)
        store.ledger.settle(running, SUCCEEDED, now=LATER + SECOND)
        again = self._waiting(store, second, LATER + SECOND)
        start(store, again, LATER + SECOND)

    def test_d08_who_waits_goes_on_waiting_while_the_other_runs(self, store: Store) -> None:
        self.needs(Capability.WAIT)
        first, second, _ = three(store, WAIT)
        start(store, first, LATER)
        store.ledger.begin(second, now=LATER)
        again = self._waiting(store, second, LATER + SECOND)
        answer = refused(store.ledger.begin(again, now=LATER + SECOND))
        assert answer.verdict == "in_progress"
        assert recorded(store, second).state is State.QUEUED

    def test_d08_the_newest_that_waits_displaces_an_older_one(self, store: Store) -> None:
        self.needs(Capability.WAIT)
        first, second, third = three(store, WAIT)
        start(store, first, LATER)
        store.ledger.begin(second, now=LATER)
        store.ledger.begin(third, now=LATER)
        older = recorded(store, second)
        assert (older.state, older.reason) == (State.CANCELLED, Reason.OVERLAP)
        assert recorded(store, third).state is State.QUEUED

    def test_d08_an_older_one_does_not_wait_behind_a_newer(self, store: Store) -> None:
        self.needs(Capability.WAIT)
        first, second, third = three(store, WAIT)
        start(store, first, LATER)
        store.ledger.begin(third, now=LATER)
        store.ledger.begin(second, now=LATER)
        older = recorded(store, second)
        assert (older.state, older.reason) == (State.CANCELLED, Reason.OVERLAP)
        assert recorded(store, third).state is State.QUEUED

    def _waiting(self, store: Store, wanted: Occurrence, now: int) -> Occurrence:
        found = store.ledger.claim_waiting(now)
        return only([o for o in found if o.identity == wanted.identity])

"""T-07: the owner of the fence may act. Leases end and are taken over."""

from dataclasses import replace

import pytest

from duetick.core.store import Store
from duetick.domain.attempts import SUCCEEDED
from duetick.domain.policies import Policies
from duetick.domain.schedule import Occurrence
from duetick.domain.states import Reason, State
from duetick.testing.conformance.attempts import claim_one
from duetick.testing.conformance.jobs import work
from duetick.testing.conformance.samples import (
    AT_LEAST_ONCE,
    HOUR,
    MINUTE,
    NOON,
    QUIET,
    SECOND,
    SOON,
    row,
)
from duetick.testing.conformance.suite import (
    Capability,
    StoreSuite,
    drain,
    must,
    only,
    recorded,
    refused,
    start,
)


def other_fence(occurrence: Occurrence) -> Occurrence:
    """Return the same occurrence with a fence that nobody has."""
    return replace(occurrence, fence=occurrence.fence + 1)


class FenceConformance(StoreSuite):
    """T-07: a stale fence is refused and changes nothing. Leases end and are taken over."""

    def test_t07_a_stale_fence_may_not_begin(self, store: Store) -> None:
        occurrence = claim_one(store)
        before = recorded(store, occurrence)
        answer = refused(store.ledger.begin(other_fence(occurrence), now=SOON))
        assert answer.verdict == "stale"
        assert recorded(store, occurrence) == before

    def test_t07_a_stale_fence_may_not_settle(self, store: Store) -> None:
        running = start(store, claim_one(store), SOON)
        before = recorded(store, running)
        assert store.ledger.settle(other_fence(running), SUCCEEDED, now=SOON) is None
        assert recorded(store, running) == before

    def test_t07_a_stale_fence_may_not_renew(self, store: Store) -> None:
        running = start(store, claim_one(store), SOON)
        before = recorded(store, running)
        assert store.ledger.renew(other_fence(running), now=SOON + SECOND) is None
        assert recorded(store, running) == before

    def test_t07_a_stale_fence_may_not_release(self, store: Store) -> None:
        occurrence = claim_one(store)
        before = recorded(store, occurrence)
        assert store.ledger.release(other_fence(occurrence), now=SOON) is False
        assert recorded(store, occurrence) == before

    def test_t07_renewing_holds_it_longer(self, store: Store) -> None:
        running = start(store, claim_one(store), SOON)
        renewed = must(store.ledger.renew(running, now=SOON + 30 * SECOND))
        assert renewed.lease_until == SOON + 30 * SECOND + running.policies.lease_ms
        assert recorded(store, running) == renewed

    @pytest.mark.parametrize("ahead", [0, 2 * MINUTE])
    def test_t07_an_attempt_that_began_before_its_claim_is_lost_at_the_end_of_its_lease(
        self, store: Store, ahead: int
    ) -> None:
        """The attempt began by a clock that is behind, or before the time for which it was
        claimed.
        """
        store.index.upsert(row(policies=AT_LEAST_ONCE))
        waiting = only(drain(store, NOON - ahead, ahead=ahead))
        running = start(store, waiting, NOON - 50 * SECOND)
        assert must(running.lease_until) < must(waiting.lease_until)
        again = only(store.ledger.claim_waiting(must(running.lease_until)))
        assert (again.identity, again.fence) == (running.identity, running.fence + 1)

    def test_t07_what_was_renewed_is_not_taken_over(self, store: Store) -> None:
        running = start(store, claim_one(store), SOON)
        store.ledger.renew(running, now=SOON + 30 * SECOND)
        assert list(store.ledger.claim_waiting(must(running.lease_until))) == []

    def test_t07_who_outlived_its_lease_settles_while_nobody_took_it(self, store: Store) -> None:
        running = start(store, claim_one(store), SOON)
        late = must(running.lease_until) + HOUR
        settled = must(store.ledger.settle(running, SUCCEEDED, now=late))
        assert recorded(store, running) == settled

    def test_t07_what_never_began_cannot_be_renewed(self, store: Store) -> None:
        assert store.ledger.renew(claim_one(store), now=SOON) is None

    def test_t07_what_began_cannot_be_released(self, store: Store) -> None:
        running = start(store, claim_one(store), SOON)
        assert store.ledger.release(running, now=SOON) is False
        assert recorded(store, running) == running

    def test_t03_what_is_released_is_handed_out_again(self, store: Store) -> None:
        occurrence = claim_one(store)
        assert store.ledger.release(occurrence, now=SOON) is True
        again = only(store.ledger.claim_waiting(SOON + SECOND))
        assert again.identity == occurrence.identity
        assert (again.state, again.attempts) == (State.QUEUED, 0)

    def test_t07_who_released_it_holds_nothing(self, store: Store) -> None:
        occurrence = claim_one(store)
        store.ledger.release(occurrence, now=SOON)
        again = only(store.ledger.claim_waiting(SOON + SECOND))
        assert refused(store.ledger.begin(occurrence, now=SOON + SECOND)).verdict == "stale"
        start(store, again, SOON + SECOND)

    def test_t03_what_is_released_too_late_is_lost(self, store: Store) -> None:
        occurrence = claim_one(store)
        late = SOON + occurrence.policies.begin_within_ms + 1
        assert store.ledger.release(occurrence, now=late) is True
        kept = recorded(store, occurrence)
        assert (kept.state, kept.reason) == (State.DEAD, Reason.LOST)

    def test_t03_a_misfire_made_good_is_not_lost_when_it_is_released(self, store: Store) -> None:
        """After hours of downtime, the API still fails. The next tick delivers the occurrence."""
        store.index.upsert(row(cron=QUIET))
        late = NOON + 3 * HOUR
        occurrence = only(store.index.claim_due(late))
        assert store.ledger.release(occurrence, now=late + SECOND) is True
        again = only(store.ledger.claim_waiting(late + MINUTE))
        assert again.identity == occurrence.identity

    def test_t03_one_that_is_too_late_by_its_own_rule_is_lost(self, store: Store) -> None:
        store.index.upsert(row(cron=QUIET, policies=Policies(longest_lateness=7_200)))
        late = NOON + 2 * HOUR
        occurrence = only(store.index.claim_due(late))
        assert store.ledger.release(occurrence, now=late + SECOND) is True
        assert list(store.ledger.claim_waiting(late + MINUTE)) == []
        assert recorded(store, occurrence).reason is Reason.LOST

    def test_t07_a_lease_lasts_until_its_end(self, store: Store) -> None:
        occurrence = claim_one(store)
        assert list(store.ledger.claim_waiting(must(occurrence.lease_until) - 1)) == []

    def test_t03_a_lease_that_ended_before_begin_is_handed_out_again(self, store: Store) -> None:
        occurrence = claim_one(store)
        again = only(store.ledger.claim_waiting(must(occurrence.lease_until)))
        assert again.identity == occurrence.identity
        assert again.fence != occurrence.fence
        assert recorded(store, occurrence) == again

    def test_t07_a_fence_of_a_lease_that_was_taken_over_is_stale(self, store: Store) -> None:
        occurrence = claim_one(store)
        end = must(occurrence.lease_until)
        again = only(store.ledger.claim_waiting(end))
        assert refused(store.ledger.begin(occurrence, now=end)).verdict == "stale"
        assert recorded(store, again) == again

    def test_t07_a_lease_that_is_over_may_not_begin(self, store: Store) -> None:
        occurrence = claim_one(store)
        answer = refused(store.ledger.begin(occurrence, now=must(occurrence.lease_until)))
        assert answer.verdict == "stale"

    def test_t03_what_never_began_in_its_window_is_lost(self, store: Store) -> None:
        occurrence = claim_one(store)
        late = SOON + occurrence.policies.begin_within_ms + 1
        assert list(store.ledger.claim_waiting(late)) == []
        kept = recorded(store, occurrence)
        assert (kept.state, kept.reason) == (State.DEAD, Reason.LOST)

    def test_t03_an_attempt_lost_at_most_once_is_the_end(self, store: Store) -> None:
        running = start(store, claim_one(store), SOON)
        assert list(store.ledger.claim_waiting(must(running.lease_until))) == []
        kept = recorded(store, running)
        assert (kept.state, kept.reason, kept.attempts) == (State.DEAD, Reason.LOST, 1)

    def test_t07_who_lost_the_lease_cannot_settle(self, store: Store) -> None:
        running = start(store, claim_one(store), SOON)
        end = must(running.lease_until)
        store.ledger.claim_waiting(end)
        assert store.ledger.settle(running, SUCCEEDED, now=end) is None
        assert recorded(store, running).reason is Reason.LOST

    def test_t04_an_attempt_lost_at_least_once_is_handed_out_again(self, store: Store) -> None:
        store.index.upsert(row(policies=AT_LEAST_ONCE))
        running = start(store, only(drain(store, SOON)), SOON)
        end = must(running.lease_until)
        again = only(store.ledger.claim_waiting(end))
        assert again.identity == running.identity
        assert store.ledger.settle(running, SUCCEEDED, now=end) is None
        assert start(store, again, end).attempts == 2

    def test_t05_lost_leases_beyond_one_page_are_all_handed_out(self, store: Store) -> None:
        for number in range(230):
            store.index.upsert(row(f"k{number:03}"))
        end = max(must(o.lease_until) for o in drain(store, SOON, 500))
        found: set[str] = set()
        for _ in range(5):
            found |= {o.key for o in store.ledger.claim_waiting(end)}
        assert len(found) == 230

    def test_t05_lost_leases_are_handed_out_within_the_limit(self, store: Store) -> None:
        for number in range(5):
            store.index.upsert(row(f"k{number}"))
        end = max(must(o.lease_until) for o in drain(store, SOON))
        assert len(store.ledger.claim_waiting(end, 2)) == 2

    def test_q05_a_late_lease_leaves_what_waits_for_less(self, store: Store) -> None:
        """So a tick that goes on takes the occurrences that waited as it began; the lease counts
        from now on.
        """
        store.index.upsert(row())
        end = must(only(drain(store, SOON)).lease_until)
        due = store.jobs.enqueue(work(), due_at=end, now=SOON).job.occurrence
        assert store.ledger.claim_waiting(end + MINUTE - 1, late=MINUTE) == []
        leased = store.ledger.claim_waiting(end + MINUTE, late=MINUTE)
        assert {one.key for one in leased} == {"digest", due.key}
        assert {must(one.lease_until) for one in leased} == {end + MINUTE + Policies().lease_ms}

    def test_t05_dead_ones_do_not_end_the_search_for_what_waits(self, store: Store) -> None:
        for number in range(3):
            store.index.upsert(row(f"dies{number}", cron=QUIET, at=NOON - 2 * MINUTE))
        for lost in drain(store, SOON - 2 * MINUTE):
            start(store, lost, SOON - 2 * MINUTE)
        store.index.upsert(row("lives"))
        end = max(must(o.lease_until) for o in drain(store, SOON))
        assert [o.key for o in store.ledger.claim_waiting(end, 2)] == ["lives"]

    def test_t01_each_one_that_is_lost_is_told_once(self, store: Store) -> None:
        for number in range(60):
            store.index.upsert(row(f"k{number:02}"))
        drain(store, SOON)
        late = SOON + Policies().begin_within_ms + 1
        reported: list[Occurrence] = []
        for _ in range(2):
            assert list(store.ledger.claim_waiting(late, 25, on_lost=reported.append)) == []
        assert {one.reason for one in reported} == {Reason.LOST}
        assert sorted(one.key for one in reported) == [f"k{number:02}" for number in range(60)]

    def test_t01_what_is_released_too_late_is_told(self, store: Store) -> None:
        occurrence = claim_one(store)
        reported: list[Occurrence] = []
        late = SOON + occurrence.policies.begin_within_ms + 1
        assert store.ledger.release(occurrence, now=late, on_lost=reported.append)
        assert reported == [recorded(store, occurrence)]

    def test_t01_what_is_not_lost_is_not_told(self, store: Store) -> None:
        store.index.upsert(row(policies=AT_LEAST_ONCE))
        reported: list[Occurrence] = []
        occurrence = only(drain(store, SOON))
        store.ledger.release(occurrence, now=SOON, on_lost=reported.append)
        again = only(store.ledger.claim_waiting(SOON + SECOND, on_lost=reported.append))
        running = start(store, again, SOON + SECOND)
        store.ledger.claim_waiting(must(running.lease_until), on_lost=reported.append)
        assert reported == []

    def test_j05_a_lost_attempt_leaves_a_trace(self, store: Store) -> None:
        self.needs(Capability.TRACES)
        running = start(store, claim_one(store), SOON)
        store.ledger.claim_waiting(must(running.lease_until))
        event = only(store.ledger.events(running))
        assert (event.before, event.after) == (State.PROCESSING, State.DEAD)
        assert event.note

    def test_j05_a_release_leaves_a_trace(self, store: Store) -> None:
        self.needs(Capability.TRACES)
        occurrence = claim_one(store)
        store.ledger.release(occurrence, now=SOON)
        assert only(store.ledger.events(occurrence)).at == SOON

"""A-03 and D-07: callers that are not the tick bring an occurrence of their own."""

from dataclasses import replace
from typing import Any, Final

from duetick.domain.schedule import Occurrence
from duetick.domain.states import Reason, State
from duetick.ports import SUCCEEDED, CallerKey, Refused, Store
from duetick.testing.conformance.attempts import claimed
from duetick.testing.conformance.samples import (
    DAY,
    HOUR,
    NOON,
    SECOND,
    SOON,
    TWO_TRIES,
    by_hand,
    schedule,
)
from duetick.testing.conformance.suite import (
    FAILED,
    StoreSuite,
    must,
    only,
    recorded,
    refused,
    start,
)

ONCE_DEAD: Final[dict[str, Any]] = {
    "state": State.DEAD,
    "reason": Reason.FAILED,
    "attempts": 4,
    "error": "it went wrong before",
    "begun_at": NOON,
    "range_end": NOON + DAY,
    "count": 2,
}
"""What a caller may tell of an occurrence whose life was over elsewhere."""


class CallerConformance(StoreSuite):
    """What a caller begins or brings is its own, and new."""

    def test_a03_a_run_by_hand_is_recorded_as_it_begins(self, store: Store) -> None:
        running = start(store, by_hand(), SOON)
        assert (running.state, running.origin, running.attempts) == (
            State.PROCESSING,
            "run:1",
            1,
        )
        assert recorded(store, running) == running

    def test_a03_a_run_by_hand_does_not_collide_with_the_scheduled_one(self, store: Store) -> None:
        store.ledger.settle(start(store, by_hand(), SOON), SUCCEEDED, now=SOON)
        scheduled = claimed(store)
        assert scheduled.nominal_at == NOON
        start(store, scheduled, SOON)

    def test_a03_two_runs_by_hand_are_two(self, store: Store) -> None:
        for run in ("run:1", "run:2"):
            store.ledger.settle(start(store, by_hand(run=run), SOON), SUCCEEDED, now=SOON)
        assert len(store.ledger.find("ada", "digest")) == 2

    def test_d07_a_caller_that_repeats_itself_is_in_progress(self, store: Store) -> None:
        start(store, by_hand(), SOON)
        assert refused(store.ledger.begin(by_hand(), now=SOON)).verdict == "in_progress"

    def test_d07_a_caller_that_repeats_itself_later_is_a_duplicate(self, store: Store) -> None:
        store.ledger.settle(start(store, by_hand(), SOON), SUCCEEDED, now=SOON)
        answer = refused(store.ledger.begin(by_hand(), now=SOON + HOUR))
        assert (answer.verdict, answer.state) == ("duplicate", State.SUCCEEDED)

    def test_d07_a_caller_without_a_fence_does_not_take_over_a_claimed_one(
        self, store: Store
    ) -> None:
        occurrence = claimed(store)
        answer = refused(store.ledger.begin(replace(occurrence, fence=0), now=SOON))
        assert answer.verdict == "in_progress"
        assert recorded(store, occurrence) == occurrence

    def test_j02_what_a_caller_says_of_its_occurrence_is_kept(self, store: Store) -> None:
        told = replace(
            by_hand(),
            correlation_id="req-1",
            idempotency_key="key-1",
            labels={"by": "日本"},
            priority=7,
        )
        kept = recorded(store, start(store, told, SOON))
        assert (kept.correlation_id, kept.idempotency_key) == ("req-1", "key-1")
        assert (kept.labels, kept.priority) == ({"by": "日本"}, 7)

    def test_j13_a_run_by_hand_of_a_deleted_schedule_never_begins(self, store: Store) -> None:
        made = store.schedules.put(schedule(), now=NOON)
        store.schedules.delete("ada", "digest", now=NOON)
        asked = replace(by_hand(), timing=made.timing)
        answer = refused(store.ledger.begin(asked, now=SOON))
        assert (answer.verdict, answer.reason) == ("cancelled", Reason.SCHEDULE_DELETED)

    def test_d04_what_is_brought_is_leased_until_it_begins(self, store: Store) -> None:
        brought = store.ledger.bring(by_hand(), now=SOON)
        assert isinstance(brought, Occurrence)
        assert recorded(store, brought) == brought
        assert (brought.state, brought.attempts, brought.fence > 0) == (State.QUEUED, 0, True)
        assert start(store, brought, SOON + SECOND).attempts == 1

    def test_d04_what_is_brought_and_never_begins_is_handed_out(self, store: Store) -> None:
        brought = store.ledger.bring(by_hand(at=SOON), now=SOON)
        assert isinstance(brought, Occurrence)
        again = only(store.ledger.claim_waiting(must(brought.lease_until)))
        assert again.identity == brought.identity

    def test_j13_what_is_brought_begins_its_life_whatever_its_caller_says(
        self, store: Store
    ) -> None:
        brought = store.ledger.bring(replace(by_hand(), **ONCE_DEAD), now=SOON)
        new = store.ledger.bring(by_hand(run="run:2"), now=SOON)
        assert isinstance(brought, Occurrence)
        assert isinstance(new, Occurrence)
        assert recorded(store, brought) == brought
        assert brought == replace(new, id=brought.id, origin=brought.origin)

    def test_j13_what_a_caller_begins_has_all_its_tries_whatever_it_says(
        self, store: Store
    ) -> None:
        told = replace(by_hand(), policies=TWO_TRIES, **ONCE_DEAD)
        running = start(store, told, SOON)
        assert (running.attempts, running.error) == (1, None)
        failed = must(store.ledger.settle(running, FAILED, now=SOON))
        assert failed.state is State.RETRYING

    def test_d07_what_is_recorded_already_is_not_brought_again(self, store: Store) -> None:
        occurrence = claimed(store)
        answer = store.ledger.bring(replace(occurrence, fence=0), now=SOON)
        assert answer == Refused("in_progress", State.QUEUED)
        store.ledger.settle(start(store, occurrence, SOON), SUCCEEDED, now=SOON)
        answer = store.ledger.bring(replace(occurrence, fence=0), now=SOON)
        assert answer == Refused("duplicate", State.SUCCEEDED, Reason.FIRED)

    def test_d07_what_is_brought_takes_its_callers_key(self, store: Store) -> None:
        key = CallerKey("reminders", "k", 60 * SECOND)
        assert isinstance(store.ledger.bring(by_hand(), now=SOON, key=key), Occurrence)
        other = store.ledger.bring(by_hand(run="run:2"), now=SOON, key=key)
        assert other == Refused("in_progress", State.QUEUED)
        assert store.ledger.get("ada", "digest", NOON, "run:2") is None

    def test_d18_a_run_by_hand_of_a_disabled_schedule_begins(self, store: Store) -> None:
        made = store.schedules.put(schedule(enabled=False), now=NOON)
        start(store, replace(by_hand(), timing=made.timing), SOON)

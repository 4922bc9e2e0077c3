"""A-03 and D-07: callers that are not the tick bring an occurrence of their own."""

from dataclasses import replace

import pytest

from duetick.core.store import Store
from duetick.domain.attempts import SUCCEEDED, CallerKey, Refused
from duetick.domain.operating import Operator
from duetick.domain.policies import Policies
from duetick.domain.schedule import Occurrence
from duetick.domain.states import Reason, State
from duetick.testing.conformance.attempts import claim_one
from duetick.testing.conformance.samples import (
    DAY,
    HOUR,
    NOON,
    SECOND,
    SOON,
    TWO_TRIES,
    ask_again,
    by_hand,
    row,
    schedule,
)
from duetick.testing.conformance.suite import (
    FAILED,
    StoreSuite,
    drain,
    must,
    only,
    recorded,
    refused,
    run,
    start,
)


class CallerConformance(StoreSuite):
    """An occurrence that a caller begins or brings is its own, and new."""

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
        scheduled = claim_one(store)
        assert scheduled.nominal_at == NOON
        start(store, scheduled, SOON)

    def test_a03_two_runs_by_hand_are_two(self, store: Store) -> None:
        for origin in ("run:1", "run:2"):
            store.ledger.settle(start(store, by_hand(run=origin), SOON), SUCCEEDED, now=SOON)
        assert len(store.ledger.find("ada", "digest")) == 2

    def test_d07_a_caller_that_repeats_itself_is_in_progress(self, store: Store) -> None:
        start(store, by_hand(), SOON)
        assert refused(run(store, by_hand(), SOON)).verdict == "in_progress"

    def test_d07_a_caller_that_repeats_itself_later_is_a_duplicate(self, store: Store) -> None:
        store.ledger.settle(start(store, by_hand(), SOON), SUCCEEDED, now=SOON)
        answer = refused(run(store, by_hand(), SOON + HOUR))
        assert (answer.verdict, answer.state) == ("duplicate", State.SUCCEEDED)

    def test_d07_a_caller_without_a_fence_does_not_take_over_a_claimed_one(
        self, store: Store
    ) -> None:
        occurrence = claim_one(store)
        answer = refused(run(store, ask_again(occurrence), SOON))
        assert answer.verdict == "in_progress"
        assert recorded(store, occurrence) == occurrence

    def test_j02_what_a_caller_says_of_its_occurrence_is_kept(self, store: Store) -> None:
        told = replace(by_hand(), idempotency_key="key-1", policies=Policies(priority=7))
        kept = recorded(store, start(store, told, SOON))
        assert (kept.idempotency_key, kept.priority) == ("key-1", 7)

    def test_j02_labels_are_those_of_the_schedule_as_it_begins(self, store: Store) -> None:
        store.schedules.put(replace(schedule(), labels={"by": "ann"}), now=NOON)
        held = only(drain(store, SOON + DAY))
        assert recorded(store, held).labels == {}
        store.schedules.put(replace(schedule(), labels={"by": "日本"}), now=SOON + DAY)
        start(store, held, SOON + DAY)
        store.schedules.put(replace(schedule(), labels={}), now=SOON + DAY)
        assert recorded(store, held).labels == {"by": "日本"}

    @pytest.mark.parametrize("limit", [None, 9])
    def test_j02_each_attempt_has_the_labels_of_its_own_begin(
        self, store: Store, limit: int | None
    ) -> None:
        policies = replace(TWO_TRIES, max_runs=limit)
        made = store.schedules.put(
            replace(schedule(policies=policies), labels={"by": "ann"}), now=NOON
        )
        first = start(store, only(drain(store, SOON + DAY)), SOON + DAY)
        assert (first.labels, recorded(store, first).labels) == ({"by": "ann"}, {"by": "ann"})
        waits = must(store.ledger.settle(first, FAILED, now=SOON + DAY))
        assert waits.labels == {"by": "ann"}
        store.schedules.put(replace(made, labels={}), now=SOON + DAY)
        again = only(store.ledger.claim_waiting(waits.due_at))
        assert recorded(store, again).labels == {"by": "ann"}
        second = start(store, again, waits.due_at)
        assert (second.attempts, second.labels) == (2, {})
        ended = must(store.ledger.settle(second, SUCCEEDED, now=waits.due_at))
        assert (ended.labels, recorded(store, ended).labels) == ({}, {})

    def test_j02_a_row_without_a_record_has_no_labels(self, store: Store) -> None:
        store.index.upsert(row())
        begun = start(store, only(drain(store, SOON)), SOON)
        assert (begun.labels, recorded(store, begun).labels) == ({}, {})

    def test_j13_a_run_by_hand_of_a_deleted_schedule_never_begins(self, store: Store) -> None:
        made = store.schedules.put(schedule(), now=NOON)
        store.schedules.delete("ada", "digest", now=NOON)
        asked = replace(by_hand(), redefined_at=made.redefined_at)
        answer = refused(run(store, asked, SOON))
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

    def test_j13_what_a_caller_begins_has_all_its_tries(self, store: Store) -> None:
        running = start(store, replace(by_hand(), policies=TWO_TRIES), SOON)
        assert (running.attempts, running.error) == (1, None)
        failed = must(store.ledger.settle(running, FAILED, now=SOON))
        assert failed.state is State.RETRYING

    def test_d07_what_is_recorded_already_is_not_brought_again(self, store: Store) -> None:
        occurrence = claim_one(store)
        answer = store.ledger.bring(ask_again(occurrence), now=SOON)
        assert answer == Refused("in_progress", State.QUEUED)
        store.ledger.settle(start(store, occurrence, SOON), SUCCEEDED, now=SOON)
        answer = store.ledger.bring(ask_again(occurrence), now=SOON)
        assert answer == Refused("duplicate", State.SUCCEEDED, Reason.FIRED)

    def test_d07_what_is_brought_takes_its_callers_key(self, store: Store) -> None:
        key = CallerKey("reminders", "k", 60 * SECOND)
        assert isinstance(store.ledger.bring(by_hand(), now=SOON, key=key), Occurrence)
        other = store.ledger.bring(by_hand(run="run:2"), now=SOON, key=key)
        assert other == Refused("in_progress", State.QUEUED)
        assert store.ledger.get("ada", "digest", NOON, "run:2") is None

    def test_d18_a_run_by_hand_of_a_disabled_schedule_begins(self, store: Store) -> None:
        made = store.schedules.put(schedule(enabled=False), now=NOON)
        start(store, replace(by_hand(), redefined_at=made.redefined_at), SOON)

    def test_g08_what_a_caller_sends_is_kept_for_its_own_occurrence(self, store: Store) -> None:
        bodies = ['{"text":"día\\u0000"}', None, "x" * 200_000]
        brought = [
            store.ledger.bring(by_hand(run=f"call:{number}"), now=SOON, body=body)
            for number, body in enumerate(bodies)
        ]
        kept = [store.ledger.body(one.identity) for one in brought if isinstance(one, Occurrence)]
        assert kept == bodies
        assert store.ledger.body(by_hand(run="call:9").identity) is None

    def test_g08_a_refused_repeat_leaves_the_body_as_it_was(self, store: Store) -> None:
        first = store.ledger.bring(by_hand(run="call:1"), now=SOON, body="1")
        assert isinstance(first, Occurrence)
        refused(store.ledger.bring(by_hand(run="call:1"), now=SOON, body="2"))
        assert store.ledger.body(first.identity) == "1"

    def test_g08_an_erasure_takes_what_a_caller_sent(self, store: Store) -> None:
        store.schedules.put(schedule(), now=NOON)
        first = store.ledger.bring(by_hand(run="call:1"), now=SOON, body="1")
        assert isinstance(first, Occurrence)
        store.erase("ada")
        assert store.ledger.body(first.identity) is None

    def test_o01_a_discarded_occurrence_has_no_body(self, store: Store) -> None:
        first = store.ledger.bring(by_hand(run="call:1"), now=SOON, body="1")
        assert isinstance(first, Occurrence)
        running = start(store, first, SOON)
        ended = must(store.ledger.settle(running, SUCCEEDED, now=SOON))
        store.ledger.discard(ended, Operator("ops"), now=SOON + 1)
        assert store.ledger.body(first.identity) is None

"""J-07: operators retry, cancel and delete occurrences, one or many."""

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final

import pytest

from duetick.core.occurrences import AllOccurrences, OperatorVerb, Which
from duetick.core.purge import purge
from duetick.core.store import Store
from duetick.core.verify import verify
from duetick.domain.attempts import SUCCEEDED, Outcome, reject
from duetick.domain.errors import InvalidQuery, OccurrenceConflict, OccurrenceNotFound
from duetick.domain.group_pauses import HELD_MS
from duetick.domain.operating import Operator
from duetick.domain.pausing import pause, resume
from duetick.domain.policies import Delivery, Overlap, Policies, Retry
from duetick.domain.retention import Retention
from duetick.domain.schedule import Occurrence
from duetick.domain.states import LEASED, TERMINAL, Reason, State
from duetick.testing.conformance.concurrency import race
from duetick.testing.conformance.samples import (
    BAD,
    DAY,
    EACH_MINUTE,
    HOUR,
    MINUTE,
    NOON,
    SECOND,
    SOON,
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

if TYPE_CHECKING:
    from collections.abc import Callable

BY: Final = Operator("arn:aws:iam::1:user/op", "the partner is back")
ONE_TRY: Final = Policies(delivery=Delivery.AT_LEAST_ONCE, retry=Retry(attempts=1))
SCOLDED: Final = Outcome(State.FAILED, Reason.FAILED, "it rained", told="rain")


def claim_noon(store: Store, policies: Policies | None = None, key: str = "digest") -> Occurrence:
    """Put a schedule of each minute, with labels, and claim its occurrence of noon."""
    wanted = replace(schedule(key, cron=EACH_MINUTE, policies=policies), labels={"team": "one"})
    store.schedules.put(wanted, now=NOON - SECOND)
    return only([one for one in drain(store, SOON) if one.key == key])


def dead(store: Store, policies: Policies | None = None, key: str = "digest") -> Occurrence:
    """Return an occurrence of noon that failed for good."""
    running = start(store, claim_noon(store, policies, key), SOON)
    found = must(store.ledger.settle(running, SCOLDED, now=SOON))
    assert found.state is State.DEAD
    return found


def begin_again(store: Store, now: int) -> Occurrence:
    """Lease the only occurrence that waits, and begin it."""
    return start(store, only(store.ledger.claim_waiting(now)), now)


def successor(store: Store, minute: int = 1) -> Occurrence:
    """Claim and begin a later occurrence of the schedule, at its time."""
    now = NOON + minute * MINUTE
    return start(store, only([o for o in drain(store, now) if o.nominal_at == now]), now)


def notes(store: Store, one: Occurrence) -> list[str]:
    """Return the notes of the occurrence's events."""
    return [event.note for event in store.ledger.events(one)]


def in_state(store: Store, state: State) -> Occurrence:
    """Return an occurrence of noon in a state."""
    made: dict[State, Callable[[], Occurrence]] = {
        State.SCHEDULED: lambda: _spread(store),
        State.QUEUED: lambda: claim_noon(store),
        State.PROCESSING: lambda: start(store, claim_noon(store), SOON),
        State.RETRYING: lambda: must(
            store.ledger.settle(
                start(store, claim_noon(store, Policies(delivery=Delivery.AT_LEAST_ONCE)), SOON),
                FAILED,
                now=SOON,
            )
        ),
        State.DEAD: lambda: dead(store),
        State.SUCCEEDED: lambda: must(
            store.ledger.settle(start(store, claim_noon(store), SOON), SUCCEEDED, now=SOON)
        ),
        State.CANCELLED: lambda: store.ledger.cancel(claim_noon(store), BY, now=SOON).occurrence,
    }
    found = made[state]()
    assert found.state is state
    return found


def _spread(store: Store) -> Occurrence:
    store.index.upsert(row(policies=Policies(spread=3_600)))
    drain(store, SOON)
    return only(store.ledger.find("ada", "digest"))


def adds_up(store: Store, until: int) -> bool:
    """Return True if verify finds nothing."""
    whole = verify(store, NOON - DAY, until, now=until, tell=print)
    return not whole.found


class OperatingConformance(StoreSuite):
    """Retry, cancel and delete, in each state and under each promise."""

    @pytest.mark.parametrize("delivery", Delivery)
    @pytest.mark.parametrize("attempts", [1, 3])
    def test_j07_a_retry_begins_once_more_under_the_same_name(
        self, store: Store, delivery: Delivery, attempts: int
    ) -> None:
        """Spent attempts get one more; at most once is begun once more, and no further."""
        policies, now = Policies(delivery=delivery, retry=Retry(attempts=attempts)), SOON
        running = start(store, claim_noon(store, policies), now)
        died = must(store.ledger.settle(running, SCOLDED, now=now))
        while died.state is State.RETRYING:
            now += MINUTE
            died = must(store.ledger.settle(begin_again(store, now), SCOLDED, now=now))
        answer = store.ledger.retry(died, BY, now=SOON + HOUR)
        assert answer.changed
        assert answer.occurrence == recorded(store, died)
        assert (answer.occurrence.state, answer.occurrence.reason) == (State.QUEUED, None)
        assert (answer.occurrence.error, answer.occurrence.told) == (None, None)
        running = begin_again(store, SOON + HOUR + SECOND)
        assert (running.identity, running.attempts) == (died.identity, died.attempts + 1)
        ended = must(store.ledger.settle(running, SCOLDED, now=SOON + HOUR + SECOND))
        assert (ended.state, ended.reason) == (State.DEAD, Reason.FAILED)
        assert list(store.ledger.claim_waiting(SOON + DAY)) == []

    def test_o01_a_retry_leaves_a_trace_with_who_and_why_beside_the_failure(
        self, store: Store
    ) -> None:
        self.needs(Capability.TRACES)
        died = dead(store)
        store.ledger.retry(died, BY, now=SOON + HOUR)
        events = store.ledger.events(died)
        assert [event.note for event in events] == [
            "attempt 1: it rained",
            f"retried by {BY.who}: {BY.why}",
        ]
        assert (events[1].at, events[1].before, events[1].after) == (
            SOON + HOUR,
            State.DEAD,
            State.QUEUED,
        )

    def test_j05_a_second_retry_changes_nothing(self, store: Store) -> None:
        died = dead(store)
        first = store.ledger.retry(died, BY, now=SOON + HOUR)
        second = store.ledger.retry(died, BY, now=SOON + HOUR + SECOND)
        assert (first.changed, second.changed) == (True, False)
        assert second.occurrence == first.occurrence
        running = begin_again(store, SOON + HOUR + SECOND)
        assert not store.ledger.retry(died, BY, now=SOON + HOUR + MINUTE).changed
        assert recorded(store, died) == running

    def test_j07_two_operators_at_once_retry_once(self, store: Store) -> None:
        self.needs(Capability.THREADS)
        died = dead(store)
        stores = (store, self.another(store))
        race([partial(each.ledger.retry, died, BY, now=SOON + HOUR) for each in stores])
        assert len([note for note in notes(store, died) if "retried" in note]) == 1
        assert begin_again(store, SOON + HOUR + SECOND).attempts == 2

    def test_t03_a_lost_one_that_is_retried_is_not_lost_by_its_old_window(
        self, store: Store
    ) -> None:
        """It began, and its process died: at most once begins once more, a day later."""
        running = start(store, claim_noon(store), SOON)
        assert list(store.ledger.claim_waiting(SOON + HOUR)) == []
        assert recorded(store, running).reason is Reason.LOST
        store.ledger.retry(running, BY, now=SOON + DAY)
        assert store.ledger.settle(running, SUCCEEDED, now=SOON + DAY) is None
        second = begin_again(store, SOON + DAY + SECOND)
        assert store.ledger.settle(running, SUCCEEDED, now=SOON + DAY + SECOND) is None
        assert must(store.ledger.settle(second, SUCCEEDED, now=SOON + DAY + MINUTE)).attempts == 2

    def test_t03_one_that_never_began_has_its_window_anew(self, store: Store) -> None:
        lost = claim_noon(store)
        assert list(store.ledger.claim_waiting(SOON + 2 * HOUR)) == []
        assert recorded(store, lost).reason is Reason.LOST
        store.ledger.retry(lost, BY, now=SOON + DAY)
        assert refused(store.ledger.begin(lost, now=SOON + DAY)).verdict == "stale"
        assert begin_again(store, SOON + DAY + SECOND).attempts == 1

    def test_t03_a_longest_lateness_counts_from_the_retry(self, store: Store) -> None:
        lost = claim_noon(store, Policies(longest_lateness=60))
        assert list(store.ledger.claim_waiting(SOON + HOUR)) == []
        store.ledger.retry(lost, BY, now=SOON + DAY)
        assert begin_again(store, SOON + DAY + SECOND).attempts == 1

    def test_t04_a_retry_by_an_operator_outlives_the_end_of_its_schedule(
        self, store: Store
    ) -> None:
        died = dead(store, Policies(ends_at=NOON + HOUR))
        store.ledger.retry(died, BY, now=SOON + DAY)
        assert begin_again(store, SOON + DAY + SECOND).attempts == 2

    def test_l01_a_schedule_stays_while_an_operators_retry_is_under_way(self, store: Store) -> None:
        died = dead(store, Policies(max_runs=1, after_completion="delete"))
        store.ledger.retry(died, BY, now=SOON)
        assert not store.schedules.purge("ada", "digest", now=SOON)
        store.ledger.settle(begin_again(store, SOON + SECOND), SUCCEEDED, now=SOON + SECOND)
        assert store.schedules.purge("ada", "digest", now=SOON + HOUR)

    @pytest.mark.parametrize("overlap", [Overlap.SKIP, Overlap.WAIT])
    def test_d08_a_retry_waits_while_another_of_its_schedule_runs(
        self, store: Store, overlap: Overlap
    ) -> None:
        died, now = dead(store, replace(ONE_TRY, overlap=overlap)), NOON + MINUTE
        other = successor(store)
        answer = store.ledger.retry(died, BY, now=now)
        assert (answer.changed, answer.occurrence.state) == (True, State.RETRYING)
        assert list(store.ledger.claim_waiting(now + SECOND)) == []
        store.ledger.settle(other, SUCCEEDED, now=now + SECOND)
        assert begin_again(store, now + SECOND).attempts == 2

    def test_d08_a_retry_that_may_overlap_waits_for_nobody(self, store: Store) -> None:
        died = dead(store, replace(ONE_TRY, overlap=Overlap.ALLOW))
        successor(store)
        assert store.ledger.retry(died, BY, now=NOON + MINUTE).occurrence.state is State.QUEUED
        assert begin_again(store, NOON + MINUTE + SECOND).identity == died.identity

    def test_d08_a_retry_has_the_place_before_its_successor(self, store: Store) -> None:
        died, now = dead(store), NOON + MINUTE
        store.ledger.retry(died, BY, now=now - SECOND)
        later = only([one for one in drain(store, now) if one.nominal_at == now])
        answer = refused(store.ledger.begin(later, now=now))
        assert (answer.verdict, answer.reason) == ("cancelled", Reason.OVERLAP)
        assert begin_again(store, now).identity == died.identity

    def test_d08_of_many_retries_of_a_schedule_one_runs_at_a_time(self, store: Store) -> None:
        store.schedules.put(schedule(cron=EACH_MINUTE), now=NOON - SECOND)
        for minute in range(3):
            now = NOON + minute * MINUTE
            one = start(store, only([o for o in drain(store, now) if o.nominal_at == now]), now)
            store.ledger.settle(one, SCOLDED, now=now)
        now = NOON + 2 * MINUTE
        for one in store.ledger.find("ada", "digest", state=State.DEAD):
            assert store.ledger.retry(one, BY, now=now).changed
        seen = set()
        for second in range(1, 4):
            running = begin_again(store, now + second * SECOND)
            seen.add(running.nominal_at)
            store.ledger.settle(running, SUCCEEDED, now=now + second * SECOND)
        assert len(seen) == 3

    def test_t04_a_retry_of_a_deleted_schedule_is_refused(self, store: Store) -> None:
        died = dead(store)
        store.schedules.delete("ada", "digest", now=SOON + MINUTE)
        with pytest.raises(OccurrenceConflict, match="deleted"):
            store.ledger.retry(died, BY, now=SOON + HOUR)
        store.schedules.put(schedule(cron=EACH_MINUTE), now=SOON + 2 * MINUTE)
        with pytest.raises(OccurrenceConflict, match="deleted"):
            store.ledger.retry(died, BY, now=SOON + HOUR)
        assert recorded(store, died) == died

    def test_t04_a_retry_of_a_disabled_schedule_is_refused(self, store: Store) -> None:
        died = dead(store)
        store.schedules.put(replace(schedule(cron=EACH_MINUTE), enabled=False), now=SOON + MINUTE)
        with pytest.raises(OccurrenceConflict, match="disabled"):
            store.ledger.retry(died, BY, now=SOON + HOUR)

    def test_t04_a_retry_of_a_paused_schedule_is_held_until_it_is_resumed(
        self, store: Store
    ) -> None:
        died = dead(store)
        paused = pause(must(store.schedules.get("ada", "digest")), "rain", None, SOON + SECOND)
        store.schedules.put(paused, now=SOON + SECOND)
        held = store.ledger.retry(died, BY, now=SOON + HOUR)
        assert (held.changed, held.occurrence.state) == (True, State.RETRYING)
        assert list(store.ledger.claim_waiting(SOON + 2 * HOUR)) == []
        store.schedules.put(resume(paused), now=SOON + 3 * HOUR)
        assert begin_again(store, SOON + 3 * HOUR).identity == died.identity

    @pytest.mark.parametrize("until", [None, SOON + HOUR])
    def test_o02_one_that_never_began_is_not_retried_if_a_pause_of_its_group_covers_it(
        self, store: Store, until: int | None
    ) -> None:
        lost = claim_noon(store)
        store.ledger.claim_waiting(SOON + 2 * HOUR)
        store.pauses.pause("user:ada", until=until, now=NOON)
        with pytest.raises(OccurrenceConflict, match="would not begin"):
            store.ledger.retry(lost, BY, now=SOON + 3 * HOUR)
        assert recorded(store, lost).state is State.DEAD

    def test_o02_what_has_begun_once_is_retried_when_the_pause_of_its_group_ends(
        self, store: Store
    ) -> None:
        died = dead(store)
        store.pauses.pause("user:ada", now=SOON + HOUR)
        assert store.ledger.retry(died, BY, now=SOON + 2 * HOUR).changed
        leased = only(store.ledger.claim_waiting(SOON + 2 * HOUR + SECOND))
        assert refused(store.ledger.begin(leased, now=SOON + 2 * HOUR + SECOND)).reason == "paused"
        later = SOON + 100 * DAY
        assert list(store.ledger.claim_waiting(later, pauses=store.pauses.current(later))) == []
        purge(store, later)
        store.pauses.resume("user:ada", now=later)
        assert begin_again(store, later + HELD_MS).identity == died.identity

    def test_t06_one_that_never_began_is_not_retried_under_another_timing(
        self, store: Store
    ) -> None:
        lost = claim_noon(store)
        store.ledger.claim_waiting(SOON + 2 * HOUR)
        store.schedules.put(schedule(cron="30 6 * * *"), now=SOON + 2 * HOUR)
        with pytest.raises(OccurrenceConflict, match="fire times"):
            store.ledger.retry(lost, BY, now=SOON + 3 * HOUR)

    def test_d02_a_retry_counts_no_second_run(self, store: Store) -> None:
        died = dead(store, replace(ONE_TRY, max_runs=3))
        store.ledger.retry(died, BY, now=SOON + HOUR)
        begin_again(store, SOON + HOUR + SECOND)
        assert must(store.schedules.get("ada", "digest")).runs == 1

    def test_d02_the_run_that_a_rejected_attempt_gave_back_is_counted_by_its_retry(
        self, store: Store
    ) -> None:
        running = start(store, claim_noon(store, Policies(max_runs=1)), SOON)
        died = must(store.ledger.settle(running, reject("no such action"), now=SOON))
        assert must(store.schedules.get("ada", "digest")).runs == 0
        store.ledger.retry(died, BY, now=SOON + SECOND)
        done = must(store.schedules.get("ada", "digest"))
        assert (done.runs, done.next_fire_at) == (1, None)
        begin_again(store, SOON + 2 * SECOND)
        assert must(store.schedules.get("ada", "digest")).runs == 1
        assert adds_up(store, SOON + HOUR)

    def test_d02_such_a_retry_is_refused_if_the_runs_are_used_up(self, store: Store) -> None:
        running = start(store, claim_noon(store, Policies(max_runs=1)), SOON)
        died = must(store.ledger.settle(running, reject("no such action"), now=SOON))
        successor(store)
        with pytest.raises(OccurrenceConflict, match="used up"):
            store.ledger.retry(died, BY, now=NOON + MINUTE)

    def test_i13_what_is_poisoned_is_mended_not_retried(self, store: Store) -> None:
        store.index.upsert(row(cron=BAD))
        drain(store, SOON)
        died = only(store.ledger.find("ada", "digest"))
        with pytest.raises(OccurrenceConflict, match="resume"):
            store.ledger.retry(died, BY, now=SOON)

    @pytest.mark.parametrize("state", [State.SUCCEEDED, State.CANCELLED])
    def test_j05_what_is_not_dead_is_not_retried(self, store: Store, state: State) -> None:
        one = in_state(store, state)
        with pytest.raises(OccurrenceConflict, match=f"It is {state}"):
            store.ledger.retry(one, BY, now=SOON + HOUR)
        assert recorded(store, one) == one

    def test_j07_what_is_not_there_is_not_found(self, store: Store) -> None:
        one = replace(claim_noon(store), nominal_at=NOON - DAY)
        for change in (store.ledger.retry, store.ledger.cancel, store.ledger.discard):
            with pytest.raises(OccurrenceNotFound):
                change(one, BY, now=SOON)

    def test_j07_one_that_died_long_ago_is_retried_and_listed_as_dead_no_more(
        self, store: Store
    ) -> None:
        """On DynamoDB it is in the history by then, not in its schedule's item."""
        died = dead(store)
        for minute in range(1, 8):
            store.ledger.settle(successor(store, minute), SUCCEEDED, now=NOON + minute * MINUTE)
        now = NOON + 7 * MINUTE + SECOND
        store.ledger.retry(died, BY, now=now)
        assert list(store.ledger.find("ada", state=State.DEAD)) == []
        if Capability.FIND_WITHOUT_USER in self.capabilities:
            assert list(store.ledger.find(state=State.DEAD)) == []
            assert only(store.ledger.find(state=LEASED)).identity == died.identity
        running = begin_again(store, now + SECOND)
        store.ledger.settle(running, SUCCEEDED, now=now + SECOND)
        assert adds_up(store, now + SECOND)
        if Capability.TRACES in self.capabilities:
            assert notes(store, died)[0] == "attempt 1: it rained"

    # Cancel.

    @pytest.mark.parametrize(
        "state", [State.SCHEDULED, State.QUEUED, State.RETRYING, State.PROCESSING]
    )
    def test_j07_what_runs_or_waits_is_cancelled_and_begins_no_more(
        self, store: Store, state: State
    ) -> None:
        one = in_state(store, state)
        answer = store.ledger.cancel(one, BY, now=SOON + SECOND)
        assert answer.changed
        assert answer.occurrence == recorded(store, one)
        assert (answer.occurrence.state, answer.occurrence.reason) == (
            State.CANCELLED,
            Reason.OPERATOR,
        )
        assert answer.occurrence.lease_until is None
        assert store.ledger.settle(one, SUCCEEDED, now=SOON + SECOND) is None
        assert store.ledger.renew(one, now=SOON + SECOND) is None
        assert not store.ledger.release(one, now=SOON + SECOND)
        assert refused(store.ledger.begin(one, now=SOON + SECOND)).verdict == "duplicate"
        waiting = store.ledger.claim_waiting(SOON + DAY)
        assert one.identity not in [each.identity for each in waiting]
        repeated = store.ledger.cancel(one, BY, now=SOON + DAY)
        assert (repeated.changed, repeated.occurrence) == (False, answer.occurrence)
        if Capability.TRACES in self.capabilities:
            assert notes(store, one)[-1] == f"cancelled by {BY.who}: {BY.why}"

    def test_d08_a_cancelled_attempt_frees_its_place(self, store: Store) -> None:
        running = start(store, claim_noon(store), SOON)
        store.ledger.cancel(running, BY, now=SOON)
        assert successor(store).attempts == 1

    @pytest.mark.parametrize("state", [State.DEAD, State.SUCCEEDED])
    def test_j05_what_has_ended_otherwise_is_not_cancelled(
        self, store: Store, state: State
    ) -> None:
        one = in_state(store, state)
        with pytest.raises(OccurrenceConflict, match=f"It is {state}"):
            store.ledger.cancel(one, BY, now=SOON + HOUR)
        assert recorded(store, one) == one

    # Delete.

    @pytest.mark.parametrize("state", [State.DEAD, State.SUCCEEDED, State.CANCELLED, State.QUEUED])
    def test_j13_what_is_deleted_keeps_its_name_and_the_reason_of_its_end(
        self, store: Store, state: State
    ) -> None:
        one = in_state(store, state)
        answer = store.ledger.discard(one, BY, now=SOON + HOUR)
        left = recorded(store, one)
        assert answer == (left, True)
        assert left.state is State.DELETED
        assert left.reason is (one.reason or Reason.OPERATOR)
        assert (left.error, left.told, left.labels) == (None, None, {})
        assert (left.id, left.attempts, left.lease_until) == (one.id, one.attempts, None)
        assert refused(store.ledger.begin(one, now=SOON + SECOND)).verdict == "duplicate"
        assert not store.ledger.discard(one, BY, now=SOON + DAY).changed
        if Capability.TRACES in self.capabilities:
            assert notes(store, one) == [f"deleted by {BY.who}: {BY.why}"]

    def test_j13_what_is_deleted_fires_no_more_even_if_its_row_is_set_back(
        self, store: Store
    ) -> None:
        store.index.upsert(row())
        store.ledger.discard(only(drain(store, SOON)), BY, now=SOON)
        store.index.upsert(row())
        assert drain(store, SOON) == []
        assert list(store.ledger.claim_waiting(SOON + DAY)) == []

    @pytest.mark.parametrize("state", [State.SCHEDULED, State.PROCESSING, State.RETRYING])
    def test_j05_what_may_still_settle_is_not_deleted(self, store: Store, state: State) -> None:
        one = in_state(store, state)
        with pytest.raises(OccurrenceConflict, match="cancel it first"):
            store.ledger.discard(one, BY, now=SOON + SECOND)
        assert recorded(store, one) == one

    def test_j05_a_retry_that_is_queued_is_not_deleted(self, store: Store) -> None:
        died = dead(store)
        store.ledger.retry(died, BY, now=SOON + SECOND)
        with pytest.raises(OccurrenceConflict, match="cancel it first"):
            store.ledger.discard(died, BY, now=SOON + SECOND)

    def test_j07_a_page_of_a_state_passes_over_what_was_deleted_since(self, store: Store) -> None:
        store.schedules.put(schedule(cron=EACH_MINUTE), now=NOON - SECOND)
        for minute in range(6):
            now = NOON + minute * MINUTE
            newest = only(drain(store, now))
            if minute < 4:
                store.ledger.cancel(newest, BY, now=now)
        for minute in (3, 1):
            (one,) = store.ledger.find("ada", "digest", before=NOON + minute * MINUTE + 1, limit=1)
            store.ledger.discard(one, BY, now=NOON + HOUR)
        page = store.ledger.find("ada", "digest", state=State.CANCELLED, limit=2)
        assert [one.nominal_at for one in page] == [NOON + 2 * MINUTE, NOON]
        deleted = store.ledger.find("ada", "digest", state=State.DELETED, limit=2)
        assert [one.nominal_at for one in deleted] == [NOON + 3 * MINUTE, NOON + MINUTE]

    def test_a01_what_operators_change_still_adds_up(self, store: Store) -> None:
        """One of each verb, and a range that is deleted."""
        store.schedules.put(schedule(cron=EACH_MINUTE), now=NOON - SECOND)
        verbs: list[tuple[OperatorVerb, ...]] = [("cancel", "delete"), ("delete",), ("retry",)]
        for minute, names in enumerate(verbs):
            now = NOON + minute * MINUTE
            one = only([o for o in drain(store, now) if o.nominal_at == now])
            if names[0] != "cancel":
                store.ledger.settle(start(store, one, now), SCOLDED, now=now)
            for verb in names:
                AllOccurrences(store).change(verb, one, BY, now)
        later = NOON + 2 * HOUR
        drain(store, later)
        whole = next(o for o in store.ledger.find("ada", "digest") if o.range_end is not None)
        left = store.ledger.discard(whole, BY, now=later).occurrence
        assert (left.range_end, left.count) == (whole.range_end, whole.count)
        assert adds_up(store, later)

    def test_a01_a_poisoned_one_that_is_deleted_still_adds_up(self, store: Store) -> None:
        store.schedules.put(schedule(cron=EACH_MINUTE), now=NOON - SECOND)
        broken = replace(must(store.index.get("ada", "digest")), cron=BAD)
        store.index.upsert(broken)
        drain(store, SOON)
        store.ledger.discard(only(store.ledger.find("ada", "digest")), BY, now=SOON)
        assert adds_up(store, SOON + HOUR)

    def test_j10_what_is_deleted_leaves_in_time(self, store: Store) -> None:
        self.needs(Capability.FORGETS)
        died = dead(store)
        store.ledger.discard(died, BY, now=SOON)
        store.schedules.delete("ada", "digest", now=SOON)
        later = SOON + 200 * DAY
        assert died.identity in store.shelf.retire(Retention(), later, 100).left
        assert store.ledger.get(*died.identity) is None

    def test_j07_a_user_is_erased_with_what_operators_changed(self, store: Store) -> None:
        died, other = dead(store), dead(store, key="other")
        store.ledger.retry(died, BY, now=SOON)
        store.ledger.discard(other, BY, now=SOON)
        store.erase("ada")
        assert list(store.ledger.find("ada")) == []
        assert notes(store, died) == notes(store, other) == []
        assert list(store.ledger.claim_waiting(SOON + DAY)) == []

    # Many.

    def test_o04_a_dry_run_answers_as_the_run_and_changes_nothing(self, store: Store) -> None:
        self.needs(Capability.FIND_WITHOUT_USER)
        every, which = AllOccurrences(store), Which()
        kept = [dead(store, key=key) for key in ("a", "b")]
        gone = dead(store, key="c")
        store.schedules.delete("ada", "c", now=SOON + SECOND)
        dry = every.change_many("retry", which, BY, 10, dry=True)
        assert (dry.changed, dry.declined, dry.cursor) == (2, 1, None)
        assert only(dry.first_declined).occurrence.identity == gone.identity
        assert [recorded(store, one) for one in kept] == kept
        real = every.change_many("retry", which, BY, 10)
        assert (real.changed, real.declined) == (2, 1)
        assert {recorded(store, one).state for one in kept} == {State.QUEUED}

    def test_o04_many_are_changed_in_bounded_pages_and_twice_does_nothing_more(
        self, store: Store
    ) -> None:
        self.needs(Capability.FIND_WITHOUT_USER)
        every, which = AllOccurrences(store), Which(states=frozenset({State.DEAD}))
        for number in range(5):
            dead(store, key=f"k{number}")
        first = every.change_many("delete", which, BY, 2)
        assert (first.changed, first.cursor is None) == (2, False)
        rest = every.change_many("delete", which, BY, 100, first.cursor)
        assert (rest.changed, rest.cursor) == (3, None)
        assert every.change_many("delete", which, BY, 100).changed == 0

    def test_o04_a_call_that_has_no_more_time_stops_where_it_can_go_on(self, store: Store) -> None:
        self.needs(Capability.FIND_WITHOUT_USER)
        every = AllOccurrences(store)
        for number in range(3):
            dead(store, key=f"k{number}")
        first = every.change_many("retry", Which(), BY, 100, may_go_on=lambda: False)
        assert first.changed == 1
        assert every.change_many("retry", Which(), BY, 100, first.cursor).changed == 2

    def test_o05_filters_sift_what_an_index_lists(self, store: Store) -> None:
        self.needs(Capability.FIND_WITHOUT_USER)
        every = AllOccurrences(store)
        dead(store, key="a")
        start(store, claim_noon(store, key="b"), SOON)
        store.ledger.claim_waiting(SOON + HOUR)
        asked = {"reason": "lost", "flow": "reminders", "label": "team=one"}
        assert [one.key for one in every.page(Which.read(asked), 10).found] == ["b"]
        assert every.page(Which.read(asked | {"label": "team=two"}), 10).found == []
        late = Which.read({"state": "dead", "since": "2099-01-01T00:00:00Z"})
        assert every.page(late, 10) == ([], None)
        assert len(every.page(Which.read({"reason": "failed", "user": "ada"}), 10).found) == 1

    @pytest.mark.parametrize("state", sorted(TERMINAL - {State.DEAD}))
    def test_o05_what_ended_well_is_listed_by_user_alone(self, store: Store, state: State) -> None:
        every, one = AllOccurrences(store), in_state(store, state)
        with pytest.raises(InvalidQuery, match="by user"):
            every.page(Which(states=frozenset({state})), 10)
        listed = every.page(Which(states=frozenset({state}), user_id="ada"), 10)
        assert only(listed.found) == one

    def test_j07_one_that_ended_well_is_found_by_its_id_and_schedule(self, store: Store) -> None:
        one = in_state(store, State.SUCCEEDED)
        assert AllOccurrences(store).get(one.id, ("ada", "digest")) == one
        for of in (("ada", "other"), ("bob", "digest")):
            with pytest.raises(OccurrenceNotFound):
                AllOccurrences(store).get(one.id, of)

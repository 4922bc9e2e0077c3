"""J-07: the changes that a book notes of an operator's retry, cancel and delete."""

from dataclasses import replace

import pytest
from duetick.domain.attempts import reject_gone
from duetick.domain.errors import OccurrenceConflict, OccurrenceNotFound
from duetick.domain.failures import Event, failures_of, without_operator
from duetick.domain.occurrence import Missed, Occurrence, range_of
from duetick.domain.operating import Operator
from duetick.domain.overlap import PLACE_KEPT_MS
from duetick.domain.pausing import pause
from duetick.domain.policies import Overlap, Policies
from duetick.domain.rows import row_of
from duetick.domain.states import Reason, State
from duetick.domain.transitions import holds_key

from tests.unit.listed import blank
from tests.unit.test_book_attempts import (
    ANOTHER,
    CLAIMED,
    DAY,
    HOUR,
    MINUTE,
    NOON,
    RECORD,
    RUNNING,
    SECOND,
    after,
    holding,
)

BY = Operator("op", "the partner is back")
DEAD = replace(
    RUNNING,
    state=State.DEAD,
    reason=Reason.FAILED,
    lease_until=None,
    error="it rained",
    told="rain",
    labels={"team": "one"},
    updated_at=NOON + SECOND,
)
LOST = replace(CLAIMED, state=State.DEAD, reason=Reason.LOST, lease_until=None)
NOW = NOON + HOUR


def test_j07_a_retry_is_due_now_under_a_new_fence_and_without_the_old_error() -> None:
    book = holding(DEAD)
    answer = book.retry(DEAD, BY, NOW)
    assert answer == (after(book, DEAD), True)
    assert answer.occurrence == replace(
        DEAD,
        state=State.QUEUED,
        reason=None,
        due_at=NOW,
        fence=DEAD.fence + 1,
        lease_until=NOW + 1,
        error=None,
        told=None,
        updated_at=NOW,
    )


def test_j07_the_failure_that_it_died_of_becomes_a_part_of_its_trace() -> None:
    book = holding(DEAD)
    again = book.retry(DEAD, BY, NOW).occurrence
    events = [event for _, event in book.events]
    assert [one.note for one in events] == [
        "attempt 1: it rained",
        "retried by op: the partner is back",
    ]
    (failure,) = failures_of(again, events)
    assert (failure.attempt, failure.at, failure.told) == (1, NOON + SECOND, "rain")


def test_j07_a_lost_one_has_its_loss_in_the_trace_already() -> None:
    lost = replace(DEAD, reason=Reason.LOST, error=None, told=None)
    book = holding(lost)
    book.retry(lost, BY, NOW)
    assert [event.note for _, event in book.events] == ["retried by op: the partner is back"]


@pytest.mark.parametrize("state", [State.SCHEDULED, State.QUEUED, State.PROCESSING])
def test_j05_a_retry_of_what_is_under_way_changes_nothing(state: State) -> None:
    book = holding(replace(RUNNING, state=state))
    assert not book.retry(RUNNING, BY, NOW).changed
    assert (book.moved, book.events) == ({}, [])


def test_d08_a_retry_waits_behind_another_even_if_that_ones_lease_is_over() -> None:
    """A tick has to end that one first: two may not be in the place at once."""
    ended = replace(ANOTHER, lease_until=NOW - DAY)
    again = holding(DEAD, ended).retry(DEAD, BY, NOW).occurrence
    assert (again.state, again.due_at) == (State.RETRYING, NOW)
    assert again.lease_until == NOW + PLACE_KEPT_MS


def test_d08_a_retry_has_the_overlap_policy_of_its_schedule_now() -> None:
    alone = replace(DEAD, policies=Policies(overlap=Overlap.ALLOW))
    assert holding(alone, ANOTHER).retry(DEAD, BY, NOW).occurrence.state is State.RETRYING
    shared = replace(RECORD, policies=Policies(overlap=Overlap.ALLOW))
    book = holding(DEAD, ANOTHER, record=shared)
    assert book.retry(DEAD, BY, NOW).occurrence.state is State.QUEUED


def test_d08_one_that_never_began_waits_for_nobody_until_it_begins() -> None:
    again = holding(LOST, ANOTHER).retry(LOST, BY, NOW).occurrence
    assert (again.state, again.due_at, again.attempts) == (State.QUEUED, NOW, 0)


def test_t04_a_pause_holds_a_retry_and_stops_one_that_never_began() -> None:
    paused = pause(RECORD, "rain", None, NOON)
    held = holding(DEAD, record=paused).retry(DEAD, BY, NOW).occurrence
    assert held.state is State.RETRYING
    assert held.due_at > NOW + DAY
    with pytest.raises(OccurrenceConflict, match="resume"):
        holding(LOST, record=paused).retry(LOST, BY, NOW)


@pytest.mark.parametrize("one", [DEAD, LOST])
def test_t04_a_retry_in_vain_is_refused(one: Occurrence) -> None:
    for record in (None, replace(RECORD, enabled=False)):
        book = holding(one, record=record)
        with pytest.raises(OccurrenceConflict, match="would not begin"):
            book.retry(one, BY, NOW)
        assert book.moved == {}


def test_a_row_without_a_record_has_retries_too() -> None:
    bare = replace(DEAD, redefined_at=0)
    assert holding(bare, record=None).retry(bare, BY, NOW).changed


def test_a_store_with_room_for_no_more_refuses_a_retry() -> None:
    book = holding(DEAD)
    book.room = 0
    with pytest.raises(OccurrenceConflict, match="Too many"):
        book.retry(DEAD, BY, NOW)


def test_d02_a_retry_after_a_rejected_first_attempt_takes_the_run_again() -> None:
    rejected = replace(DEAD, reason=Reason.REJECTED)
    once = replace(RECORD, policies=Policies(max_runs=1))
    book = holding(rejected, record=once)
    book.retry(rejected, BY, NOW)
    assert book.record is not None
    assert (book.record.runs, book.row) == (1, None)
    used = holding(rejected, record=replace(once, runs=1))
    with pytest.raises(OccurrenceConflict, match="used up"):
        used.retry(rejected, BY, NOW)
    assert (used.moved, used.events) == ({}, [])


def test_d02_no_other_retry_takes_a_run() -> None:
    for one in (DEAD, LOST, replace(DEAD, reason=Reason.REJECTED, attempts=2)):
        book = holding(one)
        book.retry(one, BY, NOW)
        assert book.record == RECORD


def test_j07_a_cancel_ends_it_and_leaves_its_fence() -> None:
    book = holding(RUNNING)
    ended = book.cancel(RUNNING, BY, NOW).occurrence
    assert (ended.state, ended.reason, ended.lease_until) == (
        State.CANCELLED,
        Reason.OPERATOR,
        None,
    )
    assert book.events == [
        (
            RUNNING.identity,
            Event(NOW, State.PROCESSING, State.CANCELLED, "cancelled by op: the partner is back"),
        )
    ]


def test_j05_a_cancel_of_what_is_cancelled_for_another_reason_changes_nothing() -> None:
    skipped = replace(CLAIMED, state=State.CANCELLED, reason=Reason.OVERLAP)
    book = holding(skipped)
    assert book.cancel(skipped, BY, NOW) == (skipped, False)


def test_j13_a_delete_strips_a_range_of_its_texts_and_keeps_its_times() -> None:
    row = row_of(RECORD, NOON)
    whole = range_of(row, Missed(NOON, NOON + DAY, 2), Reason.MISSED, NOON)
    whole = replace(whole, error="unknown")
    left = holding(whole).discard(whole, BY, NOW).occurrence
    assert (left.state, left.reason, left.error) == (State.DELETED, Reason.MISSED, None)
    assert (left.range_end, left.count) == (NOON + DAY, 2)


def test_j13_a_delete_names_what_the_store_drops() -> None:
    book = holding(DEAD, CLAIMED)
    book.discard(DEAD, BY, NOW)
    assert book.discarded == [DEAD.identity]
    assert [event.note for _, event in book.events] == ["deleted by op: the partner is back"]


def test_d07_a_deleted_one_holds_its_key_as_it_did() -> None:
    for reason, held in ((Reason.FIRED, "duplicate"), (Reason.FAILED, None)):
        left = replace(DEAD, state=State.DELETED, reason=reason)
        assert holds_key(left, NOW + MINUTE, NOW) == held


def test_what_is_not_there_is_not_found() -> None:
    for verb in (blank().retry, blank().cancel, blank().discard):
        with pytest.raises(OccurrenceNotFound):
            verb(DEAD, BY, NOW)


def test_a_users_note_does_not_name_the_operator() -> None:
    assert without_operator("retried by op: the partner is back") == "retried by an operator"
    assert without_operator("cancelled by the user") == "cancelled by the user"
    assert without_operator("cancelled by the user of eve") == "cancelled by an operator"
    assert without_operator("attempt 1: retried by op") == "attempt 1: retried by op"


def test_what_died_of_a_flow_that_is_gone_may_be_retried_when_it_is_back() -> None:
    gone = replace(DEAD, reason=Reason.REJECTED, error=reject_gone("x").error, attempts=2)
    assert holding(gone).retry(gone, BY, NOW).changed


def test_l01_one_that_never_began_is_not_retried_if_the_runs_are_used_up() -> None:
    used_up = replace(RECORD, policies=Policies(max_runs=1), runs=1)
    with pytest.raises(OccurrenceConflict, match="used up"):
        holding(LOST, record=used_up).retry(LOST, BY, NOW)
    assert holding(DEAD, record=used_up).retry(DEAD, BY, NOW).changed


def test_l01_a_retry_of_a_rejected_one_of_a_backfill_counts_no_run() -> None:
    """Its attempt counted none, so it gave none back."""
    rejected = replace(DEAD, reason=Reason.REJECTED, origin="backfill:b1")
    book = holding(rejected, record=replace(RECORD, policies=Policies(max_runs=1), runs=1))
    assert book.retry(rejected, BY, NOW).changed
    assert book.record is not None
    assert book.record.runs == 1


def test_d08_a_retry_of_one_of_a_backfill_stands_beside_the_schedules_own() -> None:
    beside = replace(DEAD, origin="backfill:b1", policies=Policies(overlap=Overlap.ALLOW))
    again = holding(beside, ANOTHER).retry(beside, BY, NOW).occurrence
    assert (again.state, again.policies.overlap) == (State.QUEUED, Overlap.ALLOW)

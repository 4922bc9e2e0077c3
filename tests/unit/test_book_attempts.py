"""T-07 and D-08: the changes that a book notes of a begin, a settle and a lease."""

from dataclasses import replace

import pytest
from duetick.domain.attempts import RELEASED, SUCCEEDED, Begun, Outcome, Refused
from duetick.domain.book import Book
from duetick.domain.errors import LeaseLost
from duetick.domain.occurrence import Missed, range_of
from duetick.domain.overlap import PLACE_KEPT_MS
from duetick.domain.pausing import pause, resume
from duetick.domain.policies import Delivery, Overlap, Policies
from duetick.domain.rows import row_of
from duetick.domain.schedule import NewOccurrence, Occurrence, Record
from duetick.domain.states import Reason, State

from tests.unit.listed import UnaskedPages, blank, moves, notes, reopen

NOON = 1_803_902_400_000
SECOND = 1_000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
DAY = 24 * HOUR
REDEFINED = NOON - HOUR

RETRIED = Policies(delivery=Delivery.AT_LEAST_ONCE)
RECORD = Record(
    "ada",
    "digest",
    "0 12 * * *",
    "reminders",
    "send",
    version=1,
    redefined_at=REDEFINED,
    created_at=REDEFINED,
    labels={"team": "one"},
)
ONCE = replace(RECORD, policies=Policies(max_runs=1))
CLAIMED = Occurrence(
    "ada",
    "digest",
    "0 12 * * *",
    None,
    NOON,
    1,
    due_at=NOON,
    lease_until=NOON + MINUTE,
    redefined_at=REDEFINED,
)
RUNNING = replace(CLAIMED, state=State.PROCESSING, attempts=1, begun_at=NOON)
ANOTHER = replace(RUNNING, nominal_at=NOON - DAY)
FAILED = Outcome(State.FAILED, Reason.FAILED, "it rained")
REJECTED = Outcome(State.FAILED, Reason.REJECTED, "no such action")


def holding(*kept: Occurrence, record: Record | None = RECORD) -> Book:
    book = blank(*kept)
    book.record = record
    book.row = row_of(record, NOON + DAY) if record else None
    return book


def after(book: Book, one: Occurrence = CLAIMED) -> Occurrence:
    """Return the occurrence as the change leaves it."""
    return book.moved[one.identity]


def refused(answer: Begun | Refused) -> Refused:
    assert isinstance(answer, Refused)
    return answer


def test_t07_a_begin_counts_the_attempt_and_holds_a_lease() -> None:
    book = holding(CLAIMED)
    answer = book.begin(CLAIMED, NOON + SECOND)
    begun = after(book)
    assert isinstance(answer, Begun)
    assert answer.occurrence == begun
    assert (begun.state, begun.attempts, begun.begun_at) == (State.PROCESSING, 1, NOON + SECOND)
    assert begun.lease_until == NOON + SECOND + CLAIMED.policies.lease_ms
    assert begun.labels == {"team": "one"}
    assert answer.schedule is not None
    assert answer.schedule.last_run_at == NOON + SECOND


def test_t06_a_begin_runs_under_the_definition_of_now() -> None:
    late = replace(RECORD, policies=Policies(timeout=900), redefined_at=NOON - 1)
    book = holding(CLAIMED, record=late)
    book.begin(CLAIMED, NOON)
    begun = after(book)
    assert (begun.policies, begun.redefined_at) == (late.policies, NOON - 1)
    assert begun.lease_until == NOON + late.policies.lease_ms


def test_d03_what_was_never_recorded_is_unknown() -> None:
    assert refused(holding().begin(CLAIMED, NOON)).verdict == "unknown"


def test_t06_a_begin_after_a_delete_is_cancelled() -> None:
    book = holding(CLAIMED, record=None)
    answer = refused(book.begin(CLAIMED, NOON))
    assert (answer.verdict, answer.reason) == ("cancelled", Reason.SCHEDULE_DELETED)
    assert after(book).state is State.CANCELLED


def test_l01_a_run_is_counted_always() -> None:
    book = holding(CLAIMED)
    assert isinstance(book.begin(CLAIMED, NOON), Begun)
    assert book.record is not None
    assert book.record.runs == 1


def test_a_run_beyond_the_limit_is_cancelled() -> None:
    book = holding(CLAIMED, record=replace(ONCE, runs=1))
    assert refused(book.begin(CLAIMED, NOON)).reason is Reason.QUOTA
    cancelled = after(book)
    assert (cancelled.state, cancelled.attempts) == (State.CANCELLED, 0)


def test_what_another_one_keeps_from_running_is_not_counted() -> None:
    book = holding(CLAIMED, ANOTHER, record=ONCE)
    assert refused(book.begin(CLAIMED, NOON)).reason is Reason.OVERLAP
    assert book.record == ONCE


def test_t04_a_second_attempt_is_no_run() -> None:
    retry = replace(CLAIMED, attempts=1, policies=RETRIED)
    book = holding(retry, record=replace(ONCE, runs=1))
    assert isinstance(book.begin(retry, NOON), Begun)


def test_d02_the_last_run_takes_the_row_off_and_accounts_for_what_was_due() -> None:
    book = holding(CLAIMED, record=ONCE)
    book.begin(CLAIMED, NOON + 2 * DAY)
    assert refused(book.begin(CLAIMED, NOON + 2 * DAY)).verdict == "stale"
    book = holding(replace(CLAIMED, lease_until=NOON + 3 * DAY), record=ONCE)
    book.begin(CLAIMED, NOON + 2 * DAY)
    assert (book.row, book.mark) == (None, NOON + 2 * DAY)
    assert [(one.reason, one.count) for one in book.made] == [(Reason.QUOTA, 2)]
    assert [one.standing for one in book.definitions] == ["done"]


def test_d08_where_others_may_run_nobody_asks_for_them() -> None:
    shared = replace(RECORD, policies=Policies(overlap=Overlap.ALLOW))
    book = blank(CLAIMED, pages=UnaskedPages())
    book.record = shared
    assert isinstance(book.begin(CLAIMED, NOON), Begun)


def test_d08_skip_ends_it_and_wait_keeps_it() -> None:
    book = holding(CLAIMED, ANOTHER)
    assert refused(book.begin(CLAIMED, NOON)).reason is Reason.OVERLAP
    waits = replace(RECORD, policies=Policies(overlap=Overlap.WAIT))
    book = holding(CLAIMED, ANOTHER, record=waits)
    assert refused(book.begin(CLAIMED, NOON)).verdict == "in_progress"
    assert (after(book).state, after(book).lease_until) == (State.QUEUED, NOON + 1)


def test_d08_the_newest_that_waits_displaces_an_older_one() -> None:
    waits = replace(RECORD, policies=Policies(overlap=Overlap.WAIT))
    older = replace(CLAIMED, nominal_at=NOON - HOUR)
    retry = replace(older, nominal_at=NOON - 2 * HOUR, attempts=1)
    book = holding(CLAIMED, older, retry, ANOTHER, record=waits)
    book.begin(CLAIMED, NOON)
    assert (after(book, older).state, after(book, older).reason) == (
        State.CANCELLED,
        Reason.OVERLAP,
    )
    assert retry.identity not in book.moved


def test_d08_a_crashed_holder_makes_way_and_leaves_a_trace() -> None:
    crashed = replace(ANOTHER, lease_until=NOON)
    book = holding(CLAIMED, crashed)
    assert isinstance(book.begin(CLAIMED, NOON), Begun)
    assert [one.identity for one in book.lost] == [crashed.identity]
    assert notes(book) == ["lease ended during attempt 1"]
    retried = replace(crashed, policies=RETRIED)
    book = holding(CLAIMED, retried)
    book.begin(CLAIMED, NOON)
    assert after(book, retried).state is State.RETRYING
    assert (book.lost, moves(book)) == ([], [(State.PROCESSING, State.RETRYING)])


def test_t04_a_pause_puts_off_what_has_begun_once_until_its_end() -> None:
    retry = replace(CLAIMED, attempts=1, policies=RETRIED)
    book = holding(retry, record=pause(RECORD, "away", NOON + HOUR, NOON))
    answer = refused(book.begin(retry, NOON + SECOND))
    assert (answer.reason, answer.due_at) == (Reason.PAUSED, NOON + HOUR)
    assert after(book).state is State.RETRYING
    assert notes(book) == ["put off: its schedule is paused"]


def test_t04_a_retry_that_a_pause_held_is_due_when_it_is_lifted() -> None:
    retry = replace(CLAIMED, state=State.RETRYING, attempts=1, lease_until=None, policies=RETRIED)
    paused = pause(RECORD, "away", NOON + DAY + HOUR, NOON)
    book = holding(replace(retry, due_at=NOON + DAY + HOUR), record=paused)
    book.put(resume(paused), NOON + HOUR)
    assert after(book).due_at == NOON + HOUR
    book = holding(replace(retry, due_at=NOON + DAY + HOUR), record=paused)
    book.delete(NOON + 2 * HOUR)
    assert after(book).due_at == NOON + 2 * HOUR


def test_d08_a_retry_that_waits_follows_the_overlap_policy_of_its_schedule() -> None:
    retry = replace(CLAIMED, state=State.RETRYING, attempts=1, lease_until=None, policies=RETRIED)
    book = holding(retry)
    book.put(replace(RECORD, policies=Policies(overlap=Overlap.ALLOW)), NOON)
    led = after(book).policies
    assert (led.overlap, led.delivery) == (Overlap.ALLOW, Delivery.AT_LEAST_ONCE)


def test_t07_a_settle_ends_the_attempt_and_said_again_changes_nothing() -> None:
    book = holding(RUNNING)
    ended = book.settle(RUNNING, SUCCEEDED, NOON + SECOND)
    assert ended is not None
    assert (ended.state, ended.reason) == (State.SUCCEEDED, Reason.FIRED)
    again = reopen(book)
    assert again.settle(RUNNING, SUCCEEDED, NOON + MINUTE) == ended
    assert again.settle(RUNNING, FAILED, NOON + MINUTE) is None
    assert again.moved == {}


def test_t07_a_settle_with_a_stale_fence_changes_nothing() -> None:
    book = holding(RUNNING)
    assert book.settle(replace(RUNNING, fence=2), SUCCEEDED, NOON) is None
    assert holding().settle(RUNNING, SUCCEEDED, NOON) is None
    assert book.moved == {}


def test_t07_effects_are_written_by_one_who_runs_and_by_nobody_else() -> None:
    assert holding(RUNNING).settle_running(RUNNING, SUCCEEDED, NOON).reason is Reason.FIRED
    ended = replace(RUNNING, state=State.SUCCEEDED, reason=Reason.FIRED)
    for held in (ended, replace(RUNNING, fence=2), CLAIMED):
        with pytest.raises(LeaseLost):
            holding(held).settle_running(RUNNING, SUCCEEDED, NOON)


def test_d02_a_rejected_first_attempt_gives_its_run_back_and_its_schedule_fires_again() -> None:
    used_up = replace(ONCE, runs=1)
    running = replace(RUNNING, policies=ONCE.policies)
    book = replace(holding(running, record=used_up), row=None, mark=NOON)
    book.settle(running, REJECTED, NOON + 2 * DAY + HOUR)
    assert book.record == ONCE
    assert book.row == row_of(ONCE, NOON + 3 * DAY)
    (between,) = book.made
    assert (between.reason, between.nominal_at, between.count) == (Reason.QUOTA, NOON + DAY, 2)
    assert [one.standing for one in book.definitions] == ["active"]


@pytest.mark.parametrize(
    "running",
    [replace(RUNNING, attempts=2), replace(RUNNING, redefined_at=REDEFINED - 1)],
    ids=["a second attempt", "a namesake's"],
)
def test_d02_no_other_rejection_gives_a_run_back(running: Occurrence) -> None:
    running = replace(running, policies=ONCE.policies)
    used_up = replace(ONCE, runs=1)
    book = replace(holding(running, record=used_up), row=None)
    book.settle(running, REJECTED, NOON + HOUR)
    assert (book.record, book.row) == (used_up, None)


def test_t07_what_never_began_can_be_given_back_by_who_holds_it() -> None:
    book = holding(CLAIMED)
    assert book.release(CLAIMED, NOON)
    assert (after(book).fence, notes(book)) == (2, [RELEASED])
    for held in (RUNNING, replace(CLAIMED, fence=2)):
        book = holding(held)
        assert not book.release(CLAIMED, NOON)
        assert book.moved == {}


def test_t03_what_is_given_back_too_late_is_lost() -> None:
    book = holding(CLAIMED)
    assert book.release(CLAIMED, NOON + HOUR + 1)
    assert [one.reason for one in book.lost] == [Reason.LOST]


def test_t07_only_what_runs_is_renewed_and_by_who_holds_it() -> None:
    renewed = holding(RUNNING).renew(RUNNING, NOON + HOUR)
    assert renewed is not None
    assert renewed.lease_until == NOON + HOUR + RUNNING.policies.lease_ms
    assert holding(CLAIMED).renew(CLAIMED, NOON) is None
    assert holding(RUNNING).renew(replace(RUNNING, fence=2), NOON) is None


def test_t04_a_tick_leases_what_waits_and_what_was_lost() -> None:
    waiting = replace(CLAIMED, state=State.SCHEDULED, fence=0, lease_until=None)
    crashed = replace(ANOTHER, lease_until=NOON - SECOND)
    book = holding(waiting, crashed)
    book.lease([waiting, crashed], [], NOON)
    assert (after(book).state, after(book).fence) == (State.QUEUED, 1)
    assert [one.identity for one in book.lost] == [crashed.identity]
    assert notes(book) == ["lease ended during attempt 1"]


def test_d08_a_retry_behind_another_that_is_leased_keeps_its_place() -> None:
    first = replace(CLAIMED, state=State.RETRYING, attempts=1, lease_until=None, policies=RETRIED)
    second = replace(first, nominal_at=NOON - DAY)
    book = holding(first, second)
    book.lease([first], [second], NOON)
    assert after(book).state is State.QUEUED
    assert after(book, second) == replace(second, lease_until=NOON + PLACE_KEPT_MS)


ASKED = NewOccurrence("ada", "digest", "0 12 * * *", None, NOON, "schedule", NOON, flow="reminders")


def test_d06_what_a_caller_brings_is_recorded_once_under_its_id() -> None:
    book = blank()
    made = book.bring(ASKED, "occ_1", NOON)
    assert isinstance(made, Occurrence)
    assert book.made == [made]
    again = reopen(book)
    assert again.bring(ASKED, "occ_1", NOON) == made
    answer = again.bring(ASKED, "occ_2", NOON)
    assert isinstance(answer, Refused)
    assert (answer.verdict, again.made) == ("in_progress", [])


def test_j13_a_time_that_lies_in_a_range_is_brought_by_nobody_but_an_origin_of_its_own() -> None:
    missed = Missed(NOON - DAY, NOON + DAY, 3)
    told = range_of(row_of(RECORD, NOON), missed, Reason.MISSED, NOON + DAY)
    answer = blank(told).bring(ASKED, "occ_1", NOON)
    assert isinstance(answer, Refused)
    assert (answer.verdict, answer.reason) == ("duplicate", Reason.MISSED)
    assert isinstance(blank(told).bring(replace(ASKED, origin="call:1"), "x", NOON), Occurrence)
    beyond = replace(ASKED, nominal_at=NOON + 2 * DAY)
    assert isinstance(blank(told).bring(beyond, "x", NOON), Occurrence)

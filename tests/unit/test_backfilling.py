"""J-13, D-08, A-03: a backfill, step by step, as the book of its schedule decides."""

import json
from dataclasses import asdict, replace

import pytest
from duetick.domain.attempts import SUCCEEDED, Begun, Outcome, Refused, reject
from duetick.domain.backfilling import (
    KEPT_STOPPED_MS,
    LEAST_PRIORITY,
    MOST_BESIDE,
    MOST_LOOKED_AT,
    MOST_UNDER_WAY,
    Backfill,
    needs_step,
    window_of,
)
from duetick.domain.book import Book, Unreadable
from duetick.domain.claims import Templates
from duetick.domain.occurrence import Missed, Occurrence, range_of
from duetick.domain.pausing import pause, resume
from duetick.domain.policies import Overlap, Policies
from duetick.domain.rows import row_of
from duetick.domain.schedule import Record, Schedule
from duetick.domain.standing import StandingOrder
from duetick.domain.states import Reason, State

from tests.unit.listed import ListedPages, blank, reopen

NOON = 1_803_902_400_000
MINUTE = 60_000
HOUR = 60 * MINUTE
DAY = 24 * HOUR

HOURLY = Schedule("ada", "digest", "0 * * * *", "reminders", "send")


def stored(schedule: Schedule = HOURLY, now: int = NOON) -> Book:
    """Return the book of a schedule that was made at noon, and so has no history."""
    book = blank()
    assert book.put(schedule, now)
    return reopen(book)


def record_of(book: Book) -> Record:
    assert book.record is not None
    return book.record


def order(book: Book, *, hours: int = 5, **fields: object) -> StandingOrder:
    """Return a backfill of the hours before noon."""
    found = record_of(book)
    one = Backfill(
        user_id=found.user_id,
        key=found.key,
        of=found.created_at,
        cron=found.cron,
        timezone=found.timezone,
        anchor=found.anchor,
        window=window_of(found),
        since=NOON - hours * HOUR,
        until=NOON,
        total=hours,
    )
    one = Backfill.load(StandingOrder("backfill", "b1", NOON, json.dumps(asdict(one) | fields)))
    return StandingOrder("backfill", "b1", NOON, one.dump())


def step(book: Book, this: StandingOrder, now: int = NOON) -> tuple[Book, StandingOrder, list[int]]:
    """Return the book and the order after a step, and the times that it brought."""
    taken = book.backfill(this, now)
    brought = [one.nominal_at for one in taken.made]
    return reopen(book), this.change(taken.after.dump()), brought


def ended(book: Book, outcome: Outcome = SUCCEEDED, now: int = NOON) -> Book:
    """Return the book after its leased occurrences have run to this end."""
    for one in book.pages.find_unfinished():
        begun = book.begin(one, now)
        assert isinstance(begun, Begun)
        book = reopen(book)
        book.settle(begun.occurrence, outcome, now)
        book = reopen(book)
    return book


def hours_ago(*hours: int) -> list[int]:
    return [NOON - hour * HOUR for hour in hours]


def with_entries(*entries: Occurrence) -> Book:
    """Return the book of the schedule with these entries in its history."""
    book = stored()
    assert isinstance(book.pages, ListedPages)
    book.pages.kept += entries
    return book


def own(at: int, state: State, reason: Reason | None = None) -> Occurrence:
    """Return an occurrence of the schedule itself."""
    return Occurrence("ada", "digest", "0 * * * *", None, at, state=state, reason=reason)


def test_a03_it_brings_times_before_the_schedule_was_made_oldest_first() -> None:
    book, this, brought = step(stored(), order(stored()))
    assert brought == hours_ago(5)
    (one,) = book.pages.find_unfinished()
    assert (one.origin, one.due_at, one.state) == ("backfill:b1", NOON, State.QUEUED)
    assert (one.fence, one.priority) == (1, LEAST_PRIORITY)
    assert Backfill.load(this).under_way == (NOON - 5 * HOUR,)


def test_a03_newest_first_goes_the_other_way() -> None:
    book, this = stored(), order(stored(), overlap="allow", at_once=3, newest_first=True)
    book, this, brought = step(book, this)
    assert brought == hours_ago(1, 2, 3)
    assert step(ended(book), this)[2] == hours_ago(4, 5)


def test_d08_one_after_another_the_next_waits_for_the_end() -> None:
    book, this, _ = step(stored(), order(stored()))
    book, this, brought = step(book, this)
    assert brought == []
    assert Backfill.load(this).waits_for is None
    assert step(ended(book), this)[2] == hours_ago(4)


def test_j13_a_repeat_from_the_order_before_brings_nothing_twice() -> None:
    first = order(stored(), overlap="allow", at_once=2)
    book, after, brought = step(stored(), first)
    assert brought == hours_ago(5, 4)
    book, again, brought = step(book, first)
    assert (brought, again) == ([], after)
    book, last, brought = step(ended(book), first)
    assert brought == hours_ago(3, 2)
    found = Backfill.load(last)
    assert (found.brought, found.succeeded, found.under_way) == (4, 2, tuple(hours_ago(3, 2)))


def test_a03_it_ends_when_its_last_one_has_ended_and_counts_how() -> None:
    book, this = stored(), order(stored(), hours=4, overlap="allow", at_once=2)
    book, this, _ = step(book, this)
    book = ended(book, Outcome(State.FAILED, Reason.FAILED))
    book, this, _ = step(book, this)
    book, this, _ = step(ended(book), this)
    found = Backfill.load(this)
    assert (found.phase, found.is_over) == ("done", True)
    assert (found.brought, found.failed, found.succeeded, found.cancelled) == (4, 2, 2, 0)


def test_a03_it_is_not_over_while_its_last_one_is_under_way() -> None:
    book, this, _ = step(stored(), order(stored(), hours=1))
    book, this, _ = step(book, this)
    found = Backfill.load(this)
    assert (found.phase, found.is_over, len(found.under_way)) == ("done", False, 1)
    assert Backfill.load(step(ended(book), this)[1]).is_over


@pytest.mark.parametrize(
    ("entry", "brought"),
    [
        (own(NOON - HOUR, State.SUCCEEDED, Reason.FIRED), False),
        (own(NOON - HOUR, State.PROCESSING), False),
        (own(NOON - HOUR, State.RETRYING), False),
        (replace(own(NOON - HOUR, State.SUCCEEDED, Reason.FIRED), origin="backfill:b0"), False),
        (replace(own(NOON - HOUR, State.SUCCEEDED, Reason.FIRED), origin="call:time"), False),
        (own(NOON - HOUR, State.DEAD, Reason.FAILED), True),
        (own(NOON - HOUR, State.CANCELLED, Reason.OVERLAP), True),
        (replace(own(NOON - HOUR, State.DEAD, Reason.LOST), origin="backfill:b0"), True),
        (own(NOON - 2 * HOUR, State.SUCCEEDED, Reason.FIRED), True),
    ],
)
def test_a03_a_time_that_has_fired_is_passed_over(entry: Occurrence, brought: bool) -> None:
    book = with_entries(entry)
    book, this, times = step(book, order(book, hours=1))
    assert times == hours_ago(1) * brought
    assert Backfill.load(this).fired_before == (not brought)
    book = with_entries(entry)
    assert step(book, order(book, hours=1, only_missing=False))[2] == hours_ago(1)


def test_a03_a_time_within_a_range_did_not_fire() -> None:
    book = stored()
    row = row_of(record_of(book), NOON)
    missed = range_of(row, Missed(NOON - 3 * HOUR, NOON - HOUR, 3), Reason.MISSED, NOON)
    book = with_entries(missed)
    assert step(book, order(book, hours=3, overlap="allow", at_once=3))[2] == hours_ago(3, 2, 1)


def test_a03_times_that_no_tick_has_claimed_wait_for_the_claim() -> None:
    book = stored(now=NOON - 3 * HOUR)
    this = order(book, overlap="allow", at_once=5)
    book, this, brought = step(book, this)
    assert brought == hours_ago(5, 4, 3)
    assert Backfill.load(this).waits_for == "not_claimed"
    book.claim(Templates(NOON - 1, 0))
    book, this, brought = step(ended(reopen(book)), this)
    assert (brought, Backfill.load(this).waits_for) == (hours_ago(2), None)  # a misfire left it out
    assert Backfill.load(this).fired_before == 1


def test_d08_it_waits_while_its_schedule_is_paused_and_goes_on_then() -> None:
    book, this = stored(), order(stored())
    book.put(pause(record_of(book), "", None, NOON), NOON + 1)
    book, this, brought = step(reopen(book), this)
    assert (brought, Backfill.load(this).waits_for) == ([], "paused")
    book.put(resume(record_of(book)), NOON + 2)
    book, this, brought = step(reopen(book), this, NOON + 2)
    assert (brought, Backfill.load(this).waits_for) == (hours_ago(5), None)


@pytest.mark.parametrize("until", [None, NOON + HOUR])
def test_d08_what_it_brought_before_a_pause_is_held(until: int | None) -> None:
    book, _, _ = step(stored(), order(stored()))
    book.put(pause(record_of(book), "", until, NOON), NOON + 1)
    book = reopen(book)
    (one,) = book.pages.find_unfinished()
    refused = book.begin(one, NOON + 2)
    assert isinstance(refused, Refused)
    assert (refused.state, refused.reason) == (State.RETRYING, Reason.PAUSED)
    book = reopen(book)
    book.put(resume(record_of(book)), NOON + 3)
    (one,) = reopen(book).pages.find_unfinished()
    assert (one.state, one.due_at, one.attempts) == (State.RETRYING, NOON + 3, 0)


def test_t04_a_disabling_without_a_pause_cancels_what_it_brought() -> None:
    book, this, _ = step(stored(), order(stored()))
    book.put(replace(record_of(book), enabled=False), NOON + 1)
    book = reopen(book)
    (one,) = book.pages.find_unfinished()
    refused = book.begin(one, NOON + 2)
    assert isinstance(refused, Refused)
    assert refused.reason is Reason.DISABLED
    book, this, brought = step(reopen(book), this, NOON + 2)
    found = Backfill.load(this)
    assert (brought, found.cancelled, found.waits_for) == ([], 1, "paused")


def test_a03_the_delete_of_its_schedule_ends_it() -> None:
    book, this, _ = step(stored(), order(stored()))
    book.delete(NOON + 1)
    book, this, brought = step(reopen(book), this, NOON + 2)
    assert (brought, Backfill.load(this).phase) == ([], "schedule_deleted")
    (one,) = book.pages.find_unfinished()
    refused = book.begin(one, NOON + 2)
    assert isinstance(refused, Refused)
    assert refused.reason is Reason.SCHEDULE_DELETED
    assert Backfill.load(step(reopen(book), this)[1]).is_over


def test_a03_a_schedule_that_is_made_again_is_another_one() -> None:
    book, this, _ = step(stored(), order(stored()))
    book.delete(NOON + 1)
    book = reopen(book)
    book.put(HOURLY, NOON + 2)
    book = reopen(book)
    (one,) = book.pages.find_unfinished()
    refused = book.begin(one, NOON + 3)
    assert isinstance(refused, Refused)
    assert refused.reason is Reason.SCHEDULE_DELETED
    book, this, brought = step(reopen(book), this, NOON + 3)
    assert (brought, Backfill.load(this).phase) == ([], "schedule_deleted")


def test_a03_what_a_step_that_died_had_brought_is_counted_at_the_end() -> None:
    book = with_entries(own(NOON - 4 * HOUR, State.SUCCEEDED, Reason.FIRED))
    this = order(book, overlap="allow", at_once=2)
    book, _, died = step(book, this)
    assert died == hours_ago(5, 3)
    book.delete(NOON + 1)
    found = Backfill.load(step(reopen(book), this)[1])
    assert (found.phase, found.brought, found.fired_before) == ("schedule_deleted", 2, 1)
    assert found.under_way == tuple(hours_ago(5, 3))


def test_a03_an_edit_of_timing_moves_none_of_its_times() -> None:
    book, this = stored(), order(stored())
    book.put(replace(record_of(book), cron="30 4 * * *"), NOON + 1)
    book, this, brought = step(reopen(book), this, NOON + 2)
    assert brought == hours_ago(5)
    (one,) = book.pages.find_unfinished()
    assert one.cron == "0 * * * *"
    assert isinstance(book.begin(one, NOON + 3), Begun)


def test_a03_an_unreadable_row_and_a_zone_that_is_gone_hold_it() -> None:
    book, this = stored(), order(stored())
    book.row, book.unreadable = None, Unreadable(row_of(record_of(book), NOON), "no", NOON)
    assert Backfill.load(step(book, this)[1]).waits_for == "unreadable"
    gone = replace(Backfill.load(this), timezone="Mars/Olympus")
    book, this, brought = step(stored(), this._replace(body=gone.dump()))
    assert (brought, Backfill.load(this).waits_for) == ([], "unreadable")


@pytest.mark.parametrize("overlap", list(Overlap))
def test_d08_it_neither_has_the_place_of_its_schedule_nor_needs_it(overlap: Overlap) -> None:
    schedule = replace(HOURLY, policies=Policies(overlap=overlap))
    book = stored(schedule, NOON - 30 * MINUTE)
    book.claim(Templates(NOON, 0))
    book = reopen(book)
    (mine,) = book.pages.find_unfinished()
    book, _, _ = step(book, order(book))
    theirs = next(one for one in book.pages.find_unfinished() if one.origin != "schedule")
    assert isinstance(book.begin(theirs, NOON), Begun)
    book = reopen(book)
    assert isinstance(book.begin(mine, NOON), Begun)
    book = reopen(book)
    states = {one.origin: one.state for one in book.pages.find_unfinished()}
    assert states == {"schedule": State.PROCESSING, "backfill:b1": State.PROCESSING}


def test_d08_one_that_waits_for_its_schedule_displaces_none_of_a_backfill() -> None:
    policies = Policies(overlap=Overlap.WAIT, timeout=300)
    book = stored(replace(HOURLY, cron="* * * * *", policies=policies), NOON - 90_000)
    for at in (NOON - MINUTE, NOON):
        book.claim(Templates(at, 0))
        book = reopen(book)
    first, second = sorted(book.pages.find_unfinished(), key=lambda one: one.nominal_at)
    book.begin(first, NOON - MINUTE)
    book, _, _ = step(reopen(book), order(book))
    assert isinstance(book.begin(second, NOON), Refused)
    brought = next(o for o in reopen(book).pages.find_unfinished() if o.origin != "schedule")
    assert brought.state is State.QUEUED


def test_l01_it_uses_up_no_run_and_gives_none_back() -> None:
    schedule = replace(HOURLY, policies=Policies(max_runs=1))
    book = stored(schedule, NOON - 30 * MINUTE)
    book, this, _ = step(book, order(book))
    book = ended(book)
    assert record_of(book).runs == 0
    book, this, _ = step(book, this)
    book = ended(book, reject("no such action"))
    assert record_of(book).runs == 0


def test_l01_a_schedule_that_is_done_can_be_backfilled() -> None:
    schedule = replace(HOURLY, policies=Policies(max_runs=1))
    book = stored(schedule, NOON - 30 * MINUTE)
    book.claim(Templates(NOON, 0))
    book = ended(reopen(book))
    assert record_of(book).done_at is not None
    book, _, brought = step(book, order(book))
    assert brought == hours_ago(5)
    book = ended(book)
    assert record_of(book).runs == 1


def test_o04_what_was_stopped_brings_nothing_and_counts_what_ends() -> None:
    book, this, _ = step(stored(), order(stored()))
    stopped = replace(Backfill.load(this), phase="stopped", changed_at=NOON)
    book, this, brought = step(ended(book), this._replace(body=stopped.dump()))
    found = Backfill.load(this)
    assert (brought, found.succeeded, found.phase) == ([], 1, "stopped")
    assert not needs_step(found, NOON + KEPT_STOPPED_MS)
    assert needs_step(found, NOON + KEPT_STOPPED_MS + 1)
    book, this, _ = step(book, this, NOON + KEPT_STOPPED_MS + 1)
    assert Backfill.load(this).phase == "abandoned"


def test_d08_it_leaves_the_schedules_own_ones_their_room() -> None:
    book = with_entries(*(own(NOON + at, State.SCHEDULED) for at in range(MOST_UNDER_WAY - 2)))
    book, this, brought = step(book, order(book, overlap="allow", at_once=5))
    assert len(brought) == 2
    book, this, brought = step(book, this)
    assert (brought, Backfill.load(this).waits_for) == ([], "busy")
    theirs = (replace(own(at, State.QUEUED), origin="backfill:b0") for at in range(MOST_BESIDE))
    book = with_entries(*theirs)
    assert step(book, order(book))[2] == []


def test_a03_a_step_looks_at_so_many_times_and_the_next_goes_on() -> None:
    fired = [own(NOON - h * HOUR, State.SUCCEEDED, Reason.FIRED) for h in range(1, 101)]
    book = with_entries(*fired)
    book, this, _ = step(book, order(book, hours=100))
    found = Backfill.load(this)
    assert (found.fired_before, found.phase) == (MOST_LOOKED_AT, "running")
    assert Backfill.load(step(book, this)[1]).is_over


def test_a03_one_that_is_gone_from_the_ledger_is_under_way_no_more() -> None:
    _, this, _ = step(stored(), order(stored(), hours=1))
    found = Backfill.load(step(stored(), this)[1])
    assert (found.under_way, found.succeeded, found.failed) == ((), 0, 0)


def test_a03_a_rate_has_times_before_its_anchor() -> None:
    book = stored(replace(HOURLY, cron="rate(2 hours)"), NOON + MINUTE)
    this = order(book, overlap="allow", at_once=5)
    assert step(book, this)[2] == [at + MINUTE for at in hours_ago(4, 2)]


def test_a03_the_window_of_the_schedule_holds_and_a_pause_moves_it_not() -> None:
    window = Policies(starts_at=NOON - 2 * HOUR)
    book = stored(replace(HOURLY, policies=window))
    book.put(pause(record_of(book), "", NOON + HOUR, NOON), NOON + 1)
    book = reopen(book)
    this = order(book, overlap="allow", at_once=5)
    assert step(book, this, NOON + HOUR)[2] == hours_ago(2, 1)


def test_a_later_releases_field_is_ignored() -> None:
    this = order(stored())
    more = this._replace(body=this.body.replace("{", '{"colour":"red",', 1))
    assert Backfill.load(more) == Backfill.load(this)

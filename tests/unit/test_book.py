"""M-01 to M-07: a change of a schedule, as its book notes it."""

from dataclasses import replace

import pytest
from duetick.domain.book import FURTHEST_BEHIND, Book, Unreadable, check_future
from duetick.domain.definitions import define
from duetick.domain.errors import InvalidSchedule, PoisonedRow
from duetick.domain.occurrence import Missed, range_of
from duetick.domain.pausing import pause, resume
from duetick.domain.policies import Policies
from duetick.domain.rows import fresh_row, row_of
from duetick.domain.schedule import IndexRow, Record, Schedule, check_pace
from duetick.domain.states import Reason, State

from tests.unit.listed import blank, reopen

NOON = 1_803_902_400_000
HOUR = 3_600_000
DAY = 24 * HOUR

WANTED = Schedule("ada", "digest", "0 12 * * *", "reminders", "send")
OFTEN = replace(WANTED, cron="rate(30 seconds)")


def put(book: Book, wanted: Schedule, now: int) -> Book:
    assert book.put(wanted, now)
    return book


def stored(schedule: Schedule = WANTED, now: int = NOON) -> Book:
    """Return the book after a first put."""
    return reopen(put(blank(), schedule, now))


def record_of(book: Book) -> Record:
    assert book.record is not None
    return book.record


def row_in(book: Book) -> IndexRow:
    assert book.row is not None
    return book.row


def test_m01_a_new_schedule_is_stamped() -> None:
    made = record_of(stored())
    assert (made.version, made.redefined_at, made.anchor) == (1, NOON, NOON)
    assert (made.created_at, made.updated_at, made.runs) == (NOON, NOON, 0)


def test_m01_what_a_caller_wrote_into_the_stores_fields_is_ignored() -> None:
    plain = put(blank(), WANTED, NOON)
    own = Record.of(WANTED)
    meddled = replace(own, version=9, anchor=1, redefined_at=5, defect="none", last_run_at=3)
    again = put(blank(), meddled, NOON)
    assert (again.record, again.row, again.definitions) == (
        plain.record,
        plain.row,
        plain.definitions,
    )


def test_m01_a_record_of_another_store_is_checked_like_any_definition() -> None:
    unchecked = replace(Record.of(WANTED), labels={"a": "日" * 2_000})
    with pytest.raises(InvalidSchedule, match="labels: has 6,001 bytes"):
        blank().put(unchecked, NOON)
    with pytest.raises(InvalidSchedule, match="labels: has 6,001 bytes"):
        stored().put(unchecked, NOON)


def test_m01_the_row_says_what_the_record_says() -> None:
    row = row_in(stored())
    assert (row.cron, row.flow, row.anchor) == ("0 12 * * *", "reminders", NOON)
    assert (row.redefined_at, row.next_fire_at) == (NOON, NOON + DAY)


def test_m01_callers_see_the_time_and_the_defect_of_the_row_in_the_record() -> None:
    book = stored()
    seen = book.view()
    assert seen is not None
    assert (seen.next_fire_at, seen.defect) == (NOON + DAY, None)
    book.unreadable, book.row = Unreadable(row_in(book), "no such zone", NOON), None
    seen = book.view()
    assert seen is not None
    assert (seen.next_fire_at, seen.defect) == (None, "no such zone")


def test_m02_a_disabled_one_has_no_row_and_says_since_when() -> None:
    book = put(blank(), replace(WANTED, enabled=False), NOON)
    assert book.row is None
    assert [(one.since, one.standing) for one in book.definitions] == [(NOON, "paused")]


@pytest.mark.parametrize(("cron", "zone"), [("never", None), ("0 12 * * *", "Mars/Olympus")])
def test_m03_what_cannot_be_read_is_refused(cron: str, zone: str | None) -> None:
    with pytest.raises(ValueError, match=r".{10}"):
        blank().put(replace(WANTED, cron=cron, timezone=zone), NOON)


def test_c04_a_time_that_has_passed_is_refused() -> None:
    with pytest.raises(InvalidSchedule, match="has no time after now"):
        blank().put(replace(WANTED, cron="at(2027-03-01T12:00:00)"), NOON)


def test_c04_a_definition_is_asked_for_its_future_without_a_store() -> None:
    check_future(WANTED, NOON)
    past = replace(WANTED, cron="at(2027-03-01T12:00:00)")
    check_future(replace(past, enabled=False), NOON)
    with pytest.raises(InvalidSchedule, match="has no time after now"):
        check_future(past, NOON)


def test_c05_a_rate_below_a_minute_is_refused_unless_ticks_look_ahead() -> None:
    with pytest.raises(InvalidSchedule, match=r"below a minute.*look-ahead.*60 seconds"):
        check_pace(OFTEN)
    assert record_of(put(blank(), OFTEN, NOON)).cron == "rate(30 seconds)"


def test_c05_what_was_taken_with_look_ahead_can_be_paused_without_but_not_resumed() -> None:
    book, held = stored(OFTEN), replace(OFTEN, enabled=False)
    assert record_of(book).is_paused_by(held)
    paused = reopen(put(book, held, NOON + HOUR))
    assert paused.row is None
    assert not record_of(paused).is_paused_by(OFTEN)


def test_m04_the_same_again_is_no_change() -> None:
    book = stored()
    before = book.record, book.row, book.mark, book.defined_at
    assert not book.put(WANTED, NOON + DAY)
    assert (book.record, book.row, book.mark, book.defined_at) == before
    assert (book.made, book.ranges, book.moved, book.definitions) == ([], [], {}, [])


def test_m04_an_input_that_only_python_takes_for_the_same_is_a_change() -> None:
    book = reopen(put(stored(), replace(WANTED, input=1), NOON))
    assert not book.put(replace(WANTED, input=1), NOON)
    assert book.put(replace(WANTED, input=True), NOON)


def test_m04_the_stores_fields_are_kept_through_a_change() -> None:
    changed = record_of(put(stored(), replace(WANTED, input=1), NOON + HOUR))
    assert (changed.version, changed.anchor, changed.created_at) == (2, NOON, NOON)
    assert (changed.redefined_at, changed.updated_at) == (NOON, NOON + HOUR)


def test_m04_a_change_of_input_leaves_the_time_and_accounts_for_nothing() -> None:
    book = put(stored(), replace(WANTED, input=1), NOON + 2 * DAY)
    assert row_in(book).next_fire_at == NOON + DAY
    assert (book.made, book.ranges, book.definitions) == ([], [], [])


def test_m04_a_change_of_input_brings_no_unreadable_row_back() -> None:
    book = stored()
    book.unreadable, book.row = Unreadable(row_in(book), "no such zone", NOON), None
    put(book, replace(WANTED, input=1), NOON)
    assert (book.row, book.unreadable is None) == (None, False)


def test_m07_a_change_of_timing_accounts_and_moves() -> None:
    book = put(stored(), replace(WANTED, cron="0 6 * * *"), NOON + 2 * DAY)
    (missed,) = book.made
    assert (missed.state, missed.reason) == (State.CANCELLED, Reason.SUPERSEDED)
    assert (missed.nominal_at, missed.range_end, missed.count) == (NOON + DAY, NOON + 2 * DAY, 2)
    assert row_in(book).next_fire_at == NOON + 2 * DAY + 18 * HOUR
    until = NOON + 2 * DAY
    wanted = define(record_of(book), until, "active", before=NOON)
    assert book.definitions == [wanted]


@pytest.mark.parametrize("unreadable", [False, True])
@pytest.mark.parametrize("deleted", [False, True])
def test_m07_a_change_accounts_for_what_was_due_without_a_row(
    *, deleted: bool, unreadable: bool
) -> None:
    """The row was lost, or could not be read, and is not mended yet."""
    book, now = stored(), NOON + 2 * DAY + HOUR
    row = row_in(book)
    book.remove_row()
    if unreadable:
        book.unreadable = Unreadable(row, "nonsense", NOON + HOUR)
    if deleted:
        assert book.delete(now)
    else:
        put(book, replace(WANTED, cron="0 15 * * *"), now)
    [whole] = book.made
    assert (whole.nominal_at, whole.range_end, whole.count) == (NOON + DAY, NOON + 2 * DAY, 2)
    assert whole.reason is (Reason.SCHEDULE_DELETED if deleted else Reason.SUPERSEDED)


def test_m07_two_changes_in_one_millisecond_are_two_definitions() -> None:
    book = stored()
    before = book.defined_at
    put(book, replace(WANTED, cron="0 6 * * *"), NOON)
    assert record_of(book).redefined_at > before


def test_a02_a_schedule_made_anew_begins_a_new_definition() -> None:
    book = blank()
    book.defined_at = NOON + 5
    again = record_of(put(book, WANTED, NOON))
    assert (again.redefined_at, again.created_at, again.anchor) == (NOON + 6, NOON + 6, NOON)


def test_a01_a_resume_closes_the_pause() -> None:
    paused = stored(replace(WANTED, enabled=False))
    (held,) = put(paused, WANTED, NOON + 2 * DAY + HOUR).made
    assert (held.reason, held.nominal_at, held.count) == (Reason.PAUSED, NOON + DAY, 2)


def test_a01_a_pause_begins_after_what_was_claimed() -> None:
    paused = stored(replace(WANTED, enabled=False))
    paused.mark = NOON + DAY
    (held,) = put(paused, WANTED, NOON + 2 * DAY + HOUR).made
    assert (held.nominal_at, held.count) == (NOON + 2 * DAY, 1)


def paused_with_an_end() -> Book:
    """Pause a schedule: its window begins at the pause's end, ten days on."""
    book = stored()
    paused = pause(record_of(book), "away", NOON + 10 * DAY, NOON)
    return reopen(put(book, paused, NOON))


@pytest.mark.parametrize("deleted", [False, True])
def test_a01_a_pause_with_an_end_is_closed_by_its_resume_or_a_delete(*, deleted: bool) -> None:
    book, back = paused_with_an_end(), NOON + 2 * DAY + HOUR
    assert row_in(book).next_fire_at == NOON + 10 * DAY
    assert book.delete(back) if deleted else book.put(resume(record_of(book)), back)
    (held,) = book.made
    assert (held.reason, held.nominal_at, held.count) == (Reason.PAUSED, NOON + DAY, 2)


def test_m03_a_pause_whose_zone_is_gone_can_still_be_mended() -> None:
    book = stored(replace(WANTED, enabled=False))
    book.record = replace(record_of(book), timezone="Mars/Olympus")
    put(book, WANTED, NOON + DAY)
    assert book.made == []
    assert book.row is not None


def test_m07_a_delete_leaves_a_mark_and_a_dated_definition() -> None:
    book = stored()
    assert book.delete(NOON + 2 * DAY + HOUR)
    assert (book.record, book.row) == (None, None)
    assert book.mark == NOON + 2 * DAY
    assert [(o.reason, o.count) for o in book.made] == [(Reason.SCHEDULE_DELETED, 2)]
    assert [(one.since, one.standing) for one in book.definitions] == [
        (NOON + 2 * DAY + HOUR, "deleted")
    ]
    assert not reopen(book).delete(NOON + 3 * DAY)


def test_i16_what_is_mended_has_its_row_anew_and_is_accounted_for() -> None:
    book = stored()
    book.row = None
    assert book.mend(NOON + 2 * DAY)
    assert book.row == fresh_row(record_of(book), NOON + 2 * DAY)
    (missed,) = book.made
    assert (missed.reason, missed.count) == (Reason.MISSED, 2)


def test_i16_what_agrees_is_not_mended_and_what_cannot_be_read_loses_its_row() -> None:
    book = stored()
    assert not book.mend(NOON + HOUR)
    assert book.row is not None
    book.record = replace(record_of(book), cron="never")
    assert not book.mend(NOON + HOUR)
    assert book.row is None


def test_i13_what_can_be_read_again_is_due_for_the_times_since() -> None:
    book = stored()
    broken = replace(row_in(book), timezone="Mars/Olympus")
    book.unreadable, book.row = Unreadable(broken, "no such zone", NOON + DAY), None
    assert book.restore(NOON + 3 * DAY + HOUR)
    assert row_in(book) == row_of(record_of(book), NOON + 2 * DAY)
    assert book.made == []
    assert not reopen(book).restore(NOON + 4 * DAY)


def test_i13_a_row_that_is_put_for_an_unreadable_one_misses_the_times_behind_it() -> None:
    book = stored()
    broken = replace(row_in(book), timezone="Mars/Olympus")
    book.unreadable, book.row = Unreadable(broken, "no such zone", NOON + DAY), None
    book.mark = NOON + DAY
    book.put_row(row_of(record_of(book), NOON + 4 * DAY), NOON + 3 * DAY + HOUR)
    (missed,) = book.made
    assert (missed.reason, missed.nominal_at, missed.count) == (Reason.MISSED, NOON + 2 * DAY, 2)


def test_i13_what_still_cannot_be_read_is_said() -> None:
    book = blank()
    row = IndexRow("ada", "digest", "never", None, NOON)
    book.unreadable = Unreadable(row, "has 1 fields", NOON)
    with pytest.raises(PoisonedRow, match="ada/digest still cannot be read"):
        book.restore(NOON + HOUR)
    assert book.unreadable is not None


def test_m01_policies_travel_to_the_row() -> None:
    policies = Policies(priority=7)
    assert row_in(stored(replace(WANTED, policies=policies))).policies == policies


def defined(now: int, *, behind: bool = False) -> int:
    """Return the start of a change after one at noon, behind a range up to the next noon or not."""
    missed = Missed(NOON, NOON + DAY, 2)
    row = row_of(Record.of(WANTED), 0)
    told = range_of(row, missed, Reason.MISSED, NOON + DAY)
    book = blank(*([told] if behind else []))
    book.defined_at = NOON
    return record_of(put(book, WANTED, now)).redefined_at


def test_a01_a_change_takes_effect_after_the_one_before_and_not_far_behind_a_range() -> None:
    assert defined(NOON + HOUR) == NOON + HOUR
    assert defined(NOON - HOUR) == NOON + 1
    assert defined(NOON + HOUR, behind=True) == NOON + DAY - FURTHEST_BEHIND
    assert defined(NOON + DAY - 1, behind=True) == NOON + DAY - 1


def test_a01_a_change_under_a_range_divides_it_and_brings_the_mark_back() -> None:
    told = range_of(
        row_of(Record.of(WANTED), 0), Missed(NOON, NOON + DAY, 2), Reason.MISSED, NOON + DAY
    )
    book = blank(replace(told, id="occ_whole"))
    book.mark = NOON + DAY
    put(book, replace(WANTED, cron="0 * * * *"), NOON + DAY - 1)
    assert book.mark == NOON + DAY - 1
    parts = [(part.nominal_at, part.range_end, part.count) for part in book.ranges]
    assert parts == [(NOON, NOON, 1), (NOON + DAY, NOON + DAY, 1)]
    assert book.ranges[0].id == "occ_whole"
    assert book.ranges[1].id not in ("", "occ_whole")

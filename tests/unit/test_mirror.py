"""M-01 to M-07: what a change of a schedule writes, as a pure plan."""

from dataclasses import replace

import pytest
from duetick.domain.errors import InvalidSchedule
from duetick.domain.mirror import Before, Change, due_range, fresh_row, held_back, plan_put, repair
from duetick.domain.policies import Policies
from duetick.domain.schedule import IndexRow, Schedule
from duetick.domain.states import Reason, State

NOON = 1_803_902_400_000
HOUR = 3_600_000
DAY = 24 * HOUR

WANTED = Schedule("ada", "digest", "0 12 * * *", "reminders", "send")
NOTHING = Before(None, None, None, 0)


def planned(before: Before, wanted: Schedule, now: int) -> Change:
    change = plan_put(before, wanted, now)
    assert change is not None
    return change


def stored(schedule: Schedule = WANTED, now: int = NOON) -> Before:
    """What a store holds after a first put."""
    change = planned(NOTHING, schedule, now)
    return Before(change.schedule, change.row, None, change.schedule.timing)


def indexed(before: Before) -> IndexRow:
    assert before.row is not None
    return before.row


def test_m01_a_new_schedule_is_stamped() -> None:
    made = planned(NOTHING, WANTED, NOON).schedule
    assert (made.version, made.timing, made.anchor) == (1, NOON, NOON)
    assert (made.created_at, made.updated_at, made.disabled_at) == (NOON, NOON, None)


def test_m01_what_a_caller_wrote_into_the_stores_fields_is_ignored() -> None:
    meddled = replace(WANTED, version=9, anchor=1, timing=5, defect="none", last_run_at=3)
    assert planned(NOTHING, meddled, NOON) == planned(NOTHING, WANTED, NOON)


def test_m01_the_row_says_what_the_record_says() -> None:
    row = indexed(stored())
    assert (row.cron, row.flow, row.anchor, row.timing) == ("0 12 * * *", "reminders", NOON, NOON)
    assert row.next_fire_at == NOON + DAY


def test_m02_a_disabled_one_has_no_row_and_says_since_when() -> None:
    change = planned(NOTHING, replace(WANTED, enabled=False), NOON)
    assert change.row is None
    assert change.schedule.disabled_at == NOON


@pytest.mark.parametrize(("cron", "zone"), [("never", None), ("0 12 * * *", "Mars/Olympus")])
def test_m03_what_cannot_be_read_is_refused(cron: str, zone: str | None) -> None:
    with pytest.raises(ValueError, match=r".{10}"):
        plan_put(NOTHING, replace(WANTED, cron=cron, timezone=zone), NOON)


def test_c04_a_time_that_has_passed_is_refused() -> None:
    with pytest.raises(InvalidSchedule, match="has no time after now"):
        plan_put(NOTHING, replace(WANTED, cron="at(2027-03-01T12:00:00)"), NOON)


OFTEN = replace(WANTED, cron="rate(30 seconds)")


def test_c05_a_rate_below_a_minute_is_refused_unless_ticks_look_ahead() -> None:
    with pytest.raises(InvalidSchedule, match=r"below a minute.*Turn look-ahead on.*60 seconds"):
        plan_put(NOTHING, OFTEN, NOON)
    change = plan_put(NOTHING, OFTEN, NOON, look_ahead=True)
    assert change is not None
    assert change.schedule.cron == "rate(30 seconds)"


def test_c05_what_was_taken_with_look_ahead_can_be_paused_without_but_not_resumed() -> None:
    change = plan_put(NOTHING, OFTEN, NOON, look_ahead=True)
    assert change is not None
    before = Before(change.schedule, change.row, None, change.schedule.timing)
    paused = planned(before, replace(OFTEN, enabled=False), NOON + HOUR)
    assert paused.row is None
    with pytest.raises(InvalidSchedule, match="below a minute"):
        plan_put(Before(paused.schedule, None, None, NOON + HOUR), OFTEN, NOON + DAY)


def test_m04_the_same_again_is_no_change() -> None:
    assert plan_put(stored(), WANTED, NOON + DAY) is None


def test_m04_the_stores_fields_are_kept_through_a_change() -> None:
    changed = planned(stored(), replace(WANTED, input=1), NOON + HOUR).schedule
    assert (changed.version, changed.anchor, changed.created_at) == (2, NOON, NOON)
    assert (changed.timing, changed.updated_at) == (NOON, NOON + HOUR)


def test_m04_a_change_of_input_leaves_the_time_and_accounts_for_nothing() -> None:
    change = planned(stored(), replace(WANTED, input=1), NOON + 2 * DAY)
    assert change.row is not None
    assert (change.row.next_fire_at, change.ranges, change.redefines) == (NOON + DAY, (), False)


def test_m04_a_change_of_input_brings_no_poisoned_row_back() -> None:
    poisoned = replace(stored(), row=None)
    assert planned(poisoned, replace(WANTED, input=1), NOON).row is None


def test_m07_a_change_of_timing_accounts_and_moves() -> None:
    change = planned(stored(), replace(WANTED, cron="0 6 * * *"), NOON + 2 * DAY)
    (missed,) = change.ranges
    assert (missed.state, missed.reason) == (State.CANCELLED, Reason.SUPERSEDED)
    assert (missed.nominal_at, missed.range_end, missed.count) == (NOON + DAY, NOON + 2 * DAY, 2)
    assert change.row is not None
    assert (change.row.next_fire_at, change.redefines) == (NOON + 2 * DAY + 18 * HOUR, True)


def test_m07_two_changes_in_one_millisecond_are_two_definitions() -> None:
    before = stored()
    change = planned(before, replace(WANTED, cron="0 6 * * *"), NOON)
    assert change.schedule.timing > before.defined_at


def test_a02_a_schedule_made_anew_begins_a_new_definition() -> None:
    again = planned(replace(NOTHING, defined_at=NOON + 5), WANTED, NOON)
    assert again.schedule.timing == NOON + 6


def test_a01_a_resume_closes_the_pause() -> None:
    paused = stored(replace(WANTED, enabled=False))
    (held,) = planned(paused, WANTED, NOON + 2 * DAY + HOUR).ranges
    assert (held.reason, held.nominal_at, held.count) == (Reason.PAUSED, NOON + DAY, 2)


def test_a01_a_pause_begins_after_what_was_claimed() -> None:
    paused = replace(stored(replace(WANTED, enabled=False)), fired_through=NOON + DAY)
    (held,) = planned(paused, WANTED, NOON + 2 * DAY + HOUR).ranges
    assert (held.nominal_at, held.count) == (NOON + 2 * DAY, 1)


def test_m03_a_pause_whose_zone_is_gone_can_still_be_mended() -> None:
    paused = stored(replace(WANTED, enabled=False))
    assert paused.schedule is not None
    gone = replace(paused, schedule=replace(paused.schedule, timezone="Mars/Olympus"))
    change = planned(gone, WANTED, NOON + DAY)
    assert change.ranges == ()
    assert change.row is not None


def test_m07_what_is_due_but_cannot_be_read_is_one_time() -> None:
    broken = replace(indexed(stored()), cron="nonsense", next_fire_at=NOON)
    (missed,) = due_range(broken, None, NOON + DAY, Reason.SUPERSEDED)
    assert (missed.nominal_at, missed.range_end, missed.count) == (NOON, NOON, 1)


def test_m07_what_has_fired_is_not_due() -> None:
    row = indexed(stored())
    assert due_range(row, NOON + DAY, NOON + DAY, Reason.DISABLED) == ()
    (missed,) = due_range(row, NOON + DAY, NOON + 2 * DAY, Reason.DISABLED)
    assert (missed.nominal_at, missed.count) == (NOON + 2 * DAY, 1)


def test_m07_a_row_that_is_not_due_leaves_nothing() -> None:
    assert due_range(indexed(stored()), None, NOON + DAY - 1, Reason.DISABLED) == ()
    assert due_range(None, None, NOON + DAY, Reason.DISABLED) == ()


def test_a01_nothing_is_held_back_where_no_time_has_come() -> None:
    assert held_back(WANTED, NOON, NOON + HOUR, Reason.PAUSED) == ()


def test_i16_a_repair_makes_the_row_anew_and_accounts() -> None:
    made = stored().schedule
    assert made is not None
    change = repair(made, None, None, NOON + 2 * DAY)
    assert change.row == fresh_row(made, NOON + 2 * DAY)
    (missed,) = change.ranges
    assert (missed.reason, missed.count) == (Reason.MISSED, 2)


def test_m01_policies_travel_to_the_row() -> None:
    policies = Policies(priority=7)
    assert indexed(stored(replace(WANTED, policies=policies))).policies == policies

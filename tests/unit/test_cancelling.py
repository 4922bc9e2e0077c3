"""T-06: why an occurrence that was claimed may not begin any more."""

from dataclasses import replace

from duetick.domain.cancelling import why_cancelled
from duetick.domain.schedule import Occurrence, Pause, Record
from duetick.domain.states import Reason

NOON = 1_803_902_400_000
MINUTE = 60_000
HOUR = 60 * MINUTE
REDEFINED = NOON - HOUR

OCCURRENCE = Occurrence(
    "ada", "digest", "0 12 * * *", None, NOON, 1, due_at=NOON, redefined_at=REDEFINED
)
RECORD = Record(
    "ada",
    "digest",
    "0 12 * * *",
    "reminders",
    "send",
    redefined_at=REDEFINED,
    created_at=REDEFINED,
)


def test_t06_an_occurrence_of_an_unchanged_schedule_may_begin() -> None:
    assert why_cancelled(OCCURRENCE, RECORD) is None


def test_t06_a_deleted_schedule_cancels() -> None:
    assert why_cancelled(OCCURRENCE, None) is Reason.SCHEDULE_DELETED


def test_t06_a_disabled_schedule_cancels() -> None:
    assert why_cancelled(OCCURRENCE, replace(RECORD, enabled=False)) is Reason.DISABLED


def test_t06_a_change_of_timing_cancels() -> None:
    changed = replace(RECORD, redefined_at=NOON + 1)
    assert why_cancelled(OCCURRENCE, changed) is Reason.SUPERSEDED


def test_t06_a_change_before_a_time_that_still_stands_does_not_cancel() -> None:
    changed = replace(RECORD, cron="0 12,18 * * *", redefined_at=NOON - MINUTE)
    assert why_cancelled(OCCURRENCE, changed) is None


def test_t06_a_change_before_a_time_that_no_longer_stands_cancels() -> None:
    changed = replace(RECORD, cron="0 18 * * *", redefined_at=NOON - MINUTE)
    assert why_cancelled(OCCURRENCE, changed) is Reason.SUPERSEDED


def test_t06_a_change_to_what_cannot_be_read_cancels() -> None:
    changed = replace(RECORD, timezone="Mars/Olympus", redefined_at=NOON - MINUTE)
    assert why_cancelled(OCCURRENCE, changed) is Reason.SUPERSEDED


def test_m05_an_occurrence_without_a_record_answers_to_nobody() -> None:
    assert why_cancelled(replace(OCCURRENCE, redefined_at=0), None) is None


def test_d18_a_run_by_hand_of_a_disabled_schedule_may_begin() -> None:
    by_hand = replace(OCCURRENCE, origin="run:1", redefined_at=1)
    assert why_cancelled(by_hand, replace(RECORD, enabled=False)) is None


def test_t04_what_has_begun_once_is_ended_by_a_delete_or_a_disabling_alone() -> None:
    retry = replace(OCCURRENCE, attempts=1)
    assert why_cancelled(retry, replace(RECORD, cron="0 18 * * *", redefined_at=NOON)) is None
    assert why_cancelled(retry, replace(RECORD, enabled=False, pause=Pause(NOON))) is None
    assert why_cancelled(retry, replace(RECORD, enabled=False)) is Reason.DISABLED
    assert why_cancelled(retry, None) is Reason.SCHEDULE_DELETED
    namesake = replace(RECORD, created_at=NOON)
    assert why_cancelled(retry, namesake) is Reason.SCHEDULE_DELETED

"""What an occurrence may still become: late edits, failures, lost leases."""

from dataclasses import replace

import pytest
from duetick.domain.lifecycle import (
    Next,
    after_failure,
    after_lost_lease,
    ended,
    lease_over,
    same_outcome,
    why_cancelled,
)
from duetick.domain.policies import Delivery, Policies, Retry
from duetick.domain.schedule import Occurrence, Schedule
from duetick.domain.states import TERMINAL, Reason, State

NOON = 1_803_902_400_000
MINUTE = 60_000
HOUR = 60 * MINUTE
TIMING = NOON - HOUR

RETRIED = Policies(delivery=Delivery.AT_LEAST_ONCE, retry=Retry(attempts=2))
OCCURRENCE = Occurrence("ada", "digest", "0 12 * * *", None, NOON, due_at=NOON, timing=TIMING)
SCHEDULE = Schedule("ada", "digest", "0 12 * * *", "reminders", "send", timing=TIMING)


def test_t06_an_occurrence_of_an_unchanged_schedule_may_begin() -> None:
    assert why_cancelled(OCCURRENCE, SCHEDULE) is None


def test_t06_a_deleted_schedule_cancels() -> None:
    assert why_cancelled(OCCURRENCE, None) is Reason.SCHEDULE_DELETED


def test_t06_a_disabled_schedule_cancels() -> None:
    assert why_cancelled(OCCURRENCE, replace(SCHEDULE, enabled=False)) is Reason.DISABLED


def test_t06_a_change_of_timing_cancels() -> None:
    changed = replace(SCHEDULE, timing=NOON + 1)
    assert why_cancelled(OCCURRENCE, changed) is Reason.SUPERSEDED


def test_t06_a_change_before_a_time_that_still_stands_does_not_cancel() -> None:
    changed = replace(SCHEDULE, cron="0 12,18 * * *", timing=NOON - MINUTE)
    assert why_cancelled(OCCURRENCE, changed) is None


def test_t06_a_change_before_a_time_that_no_longer_stands_cancels() -> None:
    changed = replace(SCHEDULE, cron="0 18 * * *", timing=NOON - MINUTE)
    assert why_cancelled(OCCURRENCE, changed) is Reason.SUPERSEDED


def test_t06_a_change_to_what_cannot_be_read_cancels() -> None:
    changed = replace(SCHEDULE, timezone="Mars/Olympus", timing=NOON - MINUTE)
    assert why_cancelled(OCCURRENCE, changed) is Reason.SUPERSEDED


def test_m05_an_occurrence_without_a_record_answers_to_nobody() -> None:
    assert why_cancelled(replace(OCCURRENCE, timing=0), None) is None


def test_d18_a_run_by_hand_of_a_disabled_schedule_may_begin() -> None:
    by_hand = replace(OCCURRENCE, origin="run:1", timing=1)
    assert why_cancelled(by_hand, replace(SCHEDULE, enabled=False)) is None


def test_t03_a_failure_at_most_once_is_the_end() -> None:
    assert after_failure(Policies(), 1, Reason.FAILED, NOON) == Next(State.DEAD, Reason.FAILED)


def test_t04_a_failure_at_least_once_is_tried_again() -> None:
    then = after_failure(RETRIED, 1, Reason.FAILED, NOON)
    assert then == Next(State.RETRYING, due_at=NOON + 10_000)


def test_j06_the_last_failure_is_the_end() -> None:
    assert after_failure(RETRIED, 2, Reason.FAILED, NOON) == Next(State.DEAD, Reason.FAILED)


def test_d09_what_is_rejected_is_not_tried_again() -> None:
    assert after_failure(RETRIED, 1, Reason.REJECTED, NOON) == Next(State.DEAD, Reason.REJECTED)


@pytest.mark.parametrize("policies", [Policies(), RETRIED])
def test_t03_what_never_began_may_begin_within_its_window(policies: Policies) -> None:
    held = replace(OCCURRENCE, policies=policies)
    assert after_lost_lease(held, NOON + HOUR) == Next(State.QUEUED)
    assert after_lost_lease(held, NOON + HOUR + 1) == Next(State.DEAD, Reason.LOST)


def test_t03_the_window_of_one_that_was_claimed_late_begins_with_the_claim() -> None:
    late = NOON + 5 * HOUR
    held = replace(OCCURRENCE, policies=Policies(), created_at=late)
    assert after_lost_lease(held, late + HOUR) == Next(State.QUEUED)
    assert after_lost_lease(held, late + HOUR + 1) == Next(State.DEAD, Reason.LOST)
    strict = replace(held, policies=Policies(longest_lateness=6 * 3_600))
    assert after_lost_lease(strict, NOON + 6 * HOUR) == Next(State.QUEUED)
    assert after_lost_lease(strict, NOON + 6 * HOUR + 1) == Next(State.DEAD, Reason.LOST)


def test_t03_an_attempt_lost_at_most_once_is_the_end() -> None:
    held = replace(OCCURRENCE, state=State.PROCESSING, attempts=1)
    assert after_lost_lease(held, NOON) == Next(State.DEAD, Reason.LOST)


def test_t04_an_attempt_lost_at_least_once_is_made_again_until_spent() -> None:
    held = replace(OCCURRENCE, state=State.PROCESSING, attempts=1, policies=RETRIED)
    assert after_lost_lease(held, NOON) == Next(State.QUEUED)
    assert after_lost_lease(replace(held, attempts=2), NOON) == Next(State.DEAD, Reason.LOST)


@pytest.mark.parametrize("state", State)
def test_j13_what_ended_has_ended(state: State) -> None:
    assert ended(replace(OCCURRENCE, state=state)) == (state in TERMINAL or state is State.DELETED)


def test_t07_a_lease_is_over_at_its_end() -> None:
    held = replace(OCCURRENCE, lease_until=NOON)
    assert not lease_over(held, NOON - 1)
    assert lease_over(held, NOON)
    assert lease_over(replace(held, lease_until=None), NOON)


def test_j05_a_success_said_again_is_the_same() -> None:
    held = replace(OCCURRENCE, state=State.SUCCEEDED, reason=Reason.FIRED)
    assert same_outcome(held, State.SUCCEEDED, Reason.FIRED)
    assert not same_outcome(held, State.FAILED, Reason.FAILED)


@pytest.mark.parametrize(("state", "reason"), [(State.RETRYING, None), (State.DEAD, Reason.FAILED)])
def test_j05_a_failure_said_again_is_the_same(state: State, reason: Reason | None) -> None:
    held = replace(OCCURRENCE, state=state, reason=reason)
    assert same_outcome(held, State.FAILED, Reason.FAILED)
    assert not same_outcome(held, State.SUCCEEDED, Reason.FIRED)


def test_j13_a_failure_said_of_a_lost_attempt_is_another() -> None:
    held = replace(OCCURRENCE, state=State.DEAD, reason=Reason.LOST)
    assert not same_outcome(held, State.FAILED, Reason.FAILED)

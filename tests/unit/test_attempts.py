"""J-05 and T-07: what an occurrence becomes, and the one gate that every transition passes."""

from dataclasses import replace
from itertools import product
from typing import Literal

import pytest
from duetick.domain.attempts import (
    Outcome,
    begun,
    cancelled,
    displaces,
    lost,
    moved,
    not_begun,
    refuse,
    released,
    settled,
    taken_up,
)
from duetick.domain.errors import IllegalTransition
from duetick.domain.occurrences import leased
from duetick.domain.policies import Delivery, Overlap, Policies, Retry
from duetick.domain.schedule import Occurrence, Schedule
from duetick.domain.states import REASONS, TRANSITIONS, Reason, State

NOON = 1_803_902_400_000
SECOND = 1_000
HOUR = 3_600 * SECOND
RETRIED = Policies(delivery=Delivery.AT_LEAST_ONCE, retry=Retry(attempts=2))
CLAIMED = Occurrence(
    "ada", "digest", "0 12 * * *", None, NOON, 1, due_at=NOON, lease_until=NOON + 60 * SECOND
)
RUNNING = replace(CLAIMED, state=State.PROCESSING, attempts=1, begun_at=NOON)
ONCE = Schedule("ada", "digest", "0 12 * * *", "reminders", "send", policies=Policies(max_runs=1))


def reason_of(state: State) -> Reason | None:
    return min(REASONS[state]) if state in REASONS else None


def nobody_runs() -> bool:
    return False


def another_runs() -> bool:
    return True


def never_asked() -> bool:
    raise AssertionError("it does not matter here whether another one runs")


def never_counted(schedule: Schedule) -> bool:
    raise AssertionError(f"{schedule.key} has no limit of runs that this begin would count on")


def allowed(schedule: Schedule) -> bool:
    return not schedule.used_up


@pytest.mark.parametrize(("before", "after"), list(product(State, State)))
def test_j05_a_listed_transition_is_made_and_any_other_is_an_error(
    before: State, after: State
) -> None:
    held = replace(CLAIMED, state=before, reason=reason_of(before))
    if before == after:
        assert moved(held, after, NOON + SECOND, reason_of(after)) is held
    elif after in TRANSITIONS[before]:
        assert moved(held, after, NOON + SECOND, reason_of(after)).state is after
    else:
        with pytest.raises(IllegalTransition):
            moved(held, after, NOON + SECOND, reason_of(after))


def test_j05_a_transition_with_a_reason_of_another_state_is_an_error() -> None:
    with pytest.raises(IllegalTransition):
        moved(RUNNING, State.SUCCEEDED, NOON, Reason.OVERLAP)


def test_j05_what_was_cancelled_is_cancelled_again_without_a_change() -> None:
    once = cancelled(CLAIMED, Reason.OPERATOR, NOON)
    assert cancelled(once, Reason.OVERLAP, NOON + HOUR) is once


def test_j05_what_ended_is_not_cancelled() -> None:
    done = settled(RUNNING, Outcome(State.SUCCEEDED, Reason.FIRED), NOON)
    with pytest.raises(IllegalTransition):
        cancelled(done, Reason.OPERATOR, NOON)


def test_j05_what_ended_holds_no_lease() -> None:
    assert cancelled(CLAIMED, Reason.OPERATOR, NOON).lease_until is None


@pytest.mark.parametrize(
    ("state", "reason"),
    [
        (State.SUCCEEDED, Reason.LOST),
        (State.CANCELLED, Reason.FIRED),
        (State.FAILED, Reason.OVERLAP),
        (State.FAILED, Reason.FIRED),
    ],
)
def test_j05_an_outcome_has_a_reason_of_its_state(
    state: Literal[State.SUCCEEDED, State.FAILED, State.CANCELLED], reason: Reason
) -> None:
    with pytest.raises(IllegalTransition):
        Outcome(state, reason)


def test_j05_what_runs_does_not_begin_again() -> None:
    answer = refuse(RUNNING, RUNNING, NOON)
    assert answer is not None
    assert answer.verdict == "in_progress"


def test_t07_a_begin_counts_the_attempt_and_holds_a_lease() -> None:
    after = begun(CLAIMED, None, NOON + SECOND, nobody_runs, never_counted)
    assert (after.state, after.attempts, after.begun_at) == (State.PROCESSING, 1, NOON + SECOND)
    assert after.lease_until == NOON + SECOND + CLAIMED.policies.lease_ms
    assert not_begun(after) is None


def test_a_run_is_counted_only_where_there_is_a_limit() -> None:
    endless = replace(ONCE, policies=Policies())
    assert begun(CLAIMED, endless, NOON, nobody_runs, never_counted).state is State.PROCESSING


def test_a_run_beyond_the_limit_is_cancelled() -> None:
    after = begun(CLAIMED, replace(ONCE, runs=1), NOON, nobody_runs, allowed)
    assert (after.state, after.reason, after.attempts) == (State.CANCELLED, Reason.QUOTA, 0)


def test_what_another_one_keeps_from_running_is_not_counted() -> None:
    assert begun(CLAIMED, ONCE, NOON, another_runs, never_counted).reason is Reason.OVERLAP


def test_d08_where_others_may_run_nobody_asks_for_them() -> None:
    shared = replace(CLAIMED, policies=Policies(overlap=Overlap.ALLOW))
    assert begun(shared, None, NOON, never_asked, never_counted).state is State.PROCESSING


def test_d08_skip_ends_it_and_wait_keeps_it() -> None:
    waiting = replace(CLAIMED, policies=Policies(overlap=Overlap.WAIT))
    assert begun(CLAIMED, None, NOON, another_runs, never_counted).reason is Reason.OVERLAP
    kept = begun(waiting, None, NOON, another_runs, never_counted)
    answer = not_begun(kept)
    assert (kept.state, kept.lease_until) == (State.QUEUED, NOON + 1)
    assert answer is not None
    assert answer.verdict == "in_progress"


def test_d08_only_an_older_one_that_is_queued_is_displaced() -> None:
    older = replace(CLAIMED, nominal_at=NOON - HOUR)
    assert displaces(CLAIMED, older)
    assert not displaces(older, CLAIMED)
    assert not displaces(CLAIMED, replace(RUNNING, nominal_at=NOON - HOUR))


def test_t07_a_lost_lease_leaves_a_new_fence_or_the_end() -> None:
    assert lost(CLAIMED, NOON + HOUR).fence == CLAIMED.fence + 1
    assert (lost(RUNNING, NOON).state, lost(RUNNING, NOON).reason) == (State.DEAD, Reason.LOST)
    assert lost(replace(RUNNING, policies=RETRIED), NOON).state is State.QUEUED


def test_t07_what_is_released_is_due_at_once() -> None:
    after = released(CLAIMED, NOON)
    assert (after.state, after.lease_until, after.fence) == (State.QUEUED, NOON + 1, 2)


def test_t04_what_waited_is_taken_up_under_a_lease() -> None:
    waiting = replace(CLAIMED, state=State.RETRYING, policies=RETRIED, lease_until=None)
    assert taken_up(waiting, NOON).state is State.QUEUED


@pytest.mark.parametrize("state", [State.SUCCEEDED, State.CANCELLED, State.PROCESSING])
def test_j13_what_ended_or_runs_is_never_leased_anew(state: State) -> None:
    with pytest.raises(IllegalTransition):
        leased(replace(CLAIMED, state=state), NOON)

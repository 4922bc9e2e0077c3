"""J-05 and T-07: the next state of an occurrence, and the one gate that every transition passes."""

from dataclasses import replace
from itertools import product

import pytest
from duetick.domain.attempts import SUCCEEDED, settle
from duetick.domain.errors import IllegalTransition
from duetick.domain.policies import Delivery, Policies, Retry
from duetick.domain.schedule import NewOccurrence, Occurrence
from duetick.domain.states import REASONS, TERMINAL, TRANSITIONS, Reason, State
from duetick.domain.transitions import (
    cancel,
    fail,
    has_ended,
    lease,
    lease_over,
    lose,
    move,
    record,
    release,
    renew,
)

NOON = 1_803_902_400_000
SECOND = 1_000
HOUR = 3_600 * SECOND
LATER = NOON + 60 * SECOND
RETRIED = Policies(delivery=Delivery.AT_LEAST_ONCE, retry=Retry(attempts=2))
CLAIMED = Occurrence("ada", "digest", "0 12 * * *", None, NOON, 1, due_at=NOON, lease_until=LATER)
RUNNING = replace(CLAIMED, state=State.PROCESSING, attempts=1, begun_at=NOON)
DEAD = (State.DEAD, Reason.LOST)
AGAIN = (State.QUEUED, None)


def reason_of(state: State) -> Reason | None:
    if state is State.DELETED:
        return Reason.OPERATOR
    return min(REASONS[state]) if state in REASONS else None


def lost(held: Occurrence, now: int) -> tuple[State, Reason | None]:
    """Return the state after the end of its lease."""
    after = lose(held, now)
    return after.state, after.reason


@pytest.mark.parametrize(("before", "after"), list(product(State, State)))
def test_j05_a_listed_transition_is_made_and_any_other_is_an_error(
    before: State, after: State
) -> None:
    held = replace(CLAIMED, state=before, reason=reason_of(before))
    if before == after:
        assert move(held, after, NOON + SECOND, reason_of(after)) is held
    elif after in TRANSITIONS[before]:
        assert move(held, after, NOON + SECOND, reason_of(after)).state is after
    else:
        with pytest.raises(IllegalTransition):
            move(held, after, NOON + SECOND, reason_of(after))


def test_j05_a_transition_with_a_reason_of_another_state_is_an_error() -> None:
    with pytest.raises(IllegalTransition):
        move(RUNNING, State.SUCCEEDED, NOON, Reason.OVERLAP)


def test_j05_what_was_cancelled_is_cancelled_again_without_a_change() -> None:
    once = cancel(CLAIMED, Reason.OPERATOR, NOON)
    assert cancel(once, Reason.OVERLAP, NOON + HOUR) is once


def test_j05_what_ended_is_not_cancelled() -> None:
    done = settle(RUNNING, SUCCEEDED, NOON).after
    with pytest.raises(IllegalTransition):
        cancel(done, Reason.OPERATOR, NOON)


def test_j05_what_ended_holds_no_lease() -> None:
    assert cancel(CLAIMED, Reason.OPERATOR, NOON).lease_until is None


@pytest.mark.parametrize("state", State)
def test_j13_what_ended_has_ended(state: State) -> None:
    held = replace(CLAIMED, state=state)
    assert has_ended(held) == (state in TERMINAL or state is State.DELETED)


def test_t03_a_failure_at_most_once_is_the_end() -> None:
    after = fail(RUNNING, Reason.FAILED, NOON, final=False)
    assert (after.state, after.reason, after.due_at) == (State.DEAD, Reason.FAILED, NOON)


def test_t04_a_failure_at_least_once_is_tried_again() -> None:
    after = fail(replace(RUNNING, policies=RETRIED), Reason.FAILED, NOON, final=False)
    assert (after.state, after.reason, after.due_at) == (State.RETRYING, None, NOON + 10 * SECOND)
    assert after.lease_until is None


def test_t04_a_final_failure_is_the_end_whatever_the_retry_policy_says() -> None:
    after = fail(replace(RUNNING, policies=RETRIED), Reason.FAILED, NOON, final=True)
    assert (after.state, after.reason) == (State.DEAD, Reason.FAILED)


def test_j06_the_last_failure_is_the_end() -> None:
    spent = replace(RUNNING, policies=RETRIED, attempts=2)
    after = fail(spent, Reason.FAILED, NOON, final=False)
    assert (after.state, after.reason) == (State.DEAD, Reason.FAILED)


def test_d09_what_is_rejected_is_not_tried_again() -> None:
    after = fail(replace(RUNNING, policies=RETRIED), Reason.REJECTED, NOON, final=False)
    assert (after.state, after.reason) == (State.DEAD, Reason.REJECTED)


@pytest.mark.parametrize("policies", [Policies(), RETRIED])
def test_t03_what_never_began_may_begin_within_its_window(policies: Policies) -> None:
    held = replace(CLAIMED, policies=policies)
    assert lost(held, NOON + HOUR) == AGAIN
    assert lost(held, NOON + HOUR + 1) == DEAD


def test_t03_the_window_of_one_that_was_claimed_late_begins_with_the_claim() -> None:
    late = NOON + 5 * HOUR
    held = replace(CLAIMED, created_at=late)
    assert lost(held, late + HOUR) == AGAIN
    assert lost(held, late + HOUR + 1) == DEAD
    strict = replace(held, policies=Policies(longest_lateness=6 * 3_600))
    assert lost(strict, NOON + 6 * HOUR) == AGAIN
    assert lost(strict, NOON + 6 * HOUR + 1) == DEAD


def test_t03_an_attempt_lost_at_most_once_is_the_end() -> None:
    assert lost(RUNNING, NOON) == DEAD


def test_t04_an_attempt_lost_at_least_once_is_made_again_until_spent() -> None:
    held = replace(RUNNING, policies=RETRIED)
    assert lost(held, NOON) == AGAIN
    assert lost(replace(held, attempts=2), NOON) == DEAD


def test_t04_a_leased_retry_is_leased_again_however_late() -> None:
    again = replace(CLAIMED, attempts=1, policies=RETRIED)
    assert lost(again, NOON + 100 * HOUR) == AGAIN


def test_t07_a_lost_lease_leaves_a_new_fence_or_the_end() -> None:
    assert lose(CLAIMED, NOON + HOUR).fence == CLAIMED.fence + 1
    assert lost(RUNNING, NOON) == DEAD
    assert lost(replace(RUNNING, policies=RETRIED), NOON) == AGAIN


def test_t07_a_lease_is_over_at_its_end() -> None:
    held = replace(CLAIMED, lease_until=NOON)
    assert not lease_over(held, NOON - 1)
    assert lease_over(held, NOON)
    assert lease_over(replace(held, lease_until=None), NOON)


def test_t07_a_new_lease_is_a_new_fence() -> None:
    again = lease(CLAIMED, LATER)
    assert again.fence == CLAIMED.fence + 1
    assert again.lease_until == LATER + 60 * SECOND


def test_t07_what_is_released_is_due_at_once() -> None:
    after = release(CLAIMED, NOON)
    assert (after.state, after.lease_until, after.fence) == (State.QUEUED, NOON + 1, 2)


def test_t07_what_is_released_after_its_window_is_lost() -> None:
    after = release(CLAIMED, NOON + HOUR + 1)
    assert (after.state, after.reason, after.lease_until) == (*DEAD, None)


def test_t07_a_renewed_lease_counts_from_now() -> None:
    after = renew(RUNNING, LATER)
    assert after.lease_until == LATER + RUNNING.policies.lease_ms
    assert (after.state, after.fence, after.attempts) == (State.PROCESSING, 1, 1)


def test_t04_what_waited_is_leased() -> None:
    waiting = replace(CLAIMED, state=State.RETRYING, policies=RETRIED, lease_until=None)
    assert lease(waiting, NOON).state is State.QUEUED


@pytest.mark.parametrize("state", [State.SUCCEEDED, State.CANCELLED, State.PROCESSING])
def test_j13_what_ended_or_runs_is_never_leased_anew(state: State) -> None:
    with pytest.raises(IllegalTransition):
        lease(replace(CLAIMED, state=state), NOON)


def test_t07_what_a_caller_asks_for_is_recorded_under_a_lease_of_its_own() -> None:
    policies = Policies(priority=3)
    asked = NewOccurrence(
        "ada", "digest", "0 12 * * *", None, NOON, "run:1", NOON, policies=policies
    )
    made = record(asked, "occ_1", LATER)
    assert (made.identity, made.id) == (asked.identity, "occ_1")
    assert (made.state, made.fence, made.attempts) == (State.QUEUED, 1, 0)
    assert (made.lease_until, made.priority) == (LATER + policies.lease_ms, 3)
    assert made.created_at == LATER

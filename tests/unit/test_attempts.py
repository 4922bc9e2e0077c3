"""The answers to begin, bring and settle, as far as an occurrence's own row tells."""

from dataclasses import replace
from typing import Literal

import pytest
from duetick.domain.attempts import SUCCEEDED, Outcome, refuse, refuse_again, refuse_begun, settle
from duetick.domain.errors import IllegalTransition
from duetick.domain.policies import Delivery, Policies, Retry
from duetick.domain.schedule import Lease, NewOccurrence, Occurrence
from duetick.domain.states import Reason, State

NOON = 1_803_902_400_000
SECOND = 1_000
LATER = NOON + 60 * SECOND
RETRIED = Policies(delivery=Delivery.AT_LEAST_ONCE, retry=Retry(attempts=2))
CLAIMED = Occurrence("ada", "digest", "0 12 * * *", None, NOON, 1, due_at=NOON, lease_until=LATER)
RUNNING = replace(CLAIMED, state=State.PROCESSING, attempts=1, begun_at=NOON)
FAILED = Outcome(State.FAILED, Reason.FAILED, "it rained")


def verdict(held: Occurrence, asked: Occurrence | Lease, now: int = NOON) -> str | None:
    """Return the verdict of a refused begin; None if the begin is allowed."""
    answer = refuse(held, asked, now)
    return answer.verdict if answer else None


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
    assert verdict(RUNNING, RUNNING) == "in_progress"


def test_t07_who_holds_the_fence_before_the_lease_ends_may_begin() -> None:
    assert verdict(CLAIMED, CLAIMED) is None
    assert verdict(CLAIMED, CLAIMED, LATER) == "stale"
    assert verdict(CLAIMED, replace(CLAIMED, fence=2)) == "stale"


def test_d12_an_occurrence_of_another_flow_is_unknown() -> None:
    held = replace(CLAIMED, flow="reminders")
    lease = Lease("ada", "digest", NOON, "schedule", "other", 1)
    assert verdict(held, lease) == "unknown"
    assert verdict(held, replace(lease, flow="")) is None


def test_d04_a_caller_is_told_what_became_of_what_it_brings_again() -> None:
    asked = NewOccurrence("ada", "digest", "0 12 * * *", None, NOON, "schedule", NOON)
    told = {state: refuse_again(replace(CLAIMED, state=state), asked).verdict for state in State}
    del told[State.FAILED]  # it is passed through
    under_way = {State.QUEUED, State.PROCESSING}
    assert {state for state, word in told.items() if word == "in_progress"} == under_way
    assert {word for state, word in told.items() if state not in under_way} == {"duplicate"}
    of_another = replace(CLAIMED, flow="reminders")
    assert refuse_again(of_another, replace(asked, flow="other")).verdict == "unknown"


def test_d08_what_waits_is_told_that_it_waits_and_why() -> None:
    assert refuse_begun(RUNNING) is None
    waiting = refuse_begun(replace(CLAIMED, lease_until=NOON + 1))
    assert waiting is not None
    assert (waiting.verdict, waiting.reason) == ("in_progress", Reason.OVERLAP)
    put_off = replace(CLAIMED, state=State.RETRYING, lease_until=None)
    for held, why in ((put_off, Reason.PAUSED), (replace(put_off, lease_until=1), Reason.OVERLAP)):
        answer = refuse_begun(held)
        assert answer is not None
        assert (answer.verdict, answer.reason, answer.due_at) == ("in_progress", why, NOON)


def test_j05_a_success_ends_it_without_a_trace() -> None:
    settled = settle(RUNNING, SUCCEEDED, LATER)
    after = settled.after
    assert (after.state, after.reason, after.lease_until) == (State.SUCCEEDED, Reason.FIRED, None)
    assert (settled.before, settled.event) == (RUNNING, None)


def test_j05_a_failure_that_is_tried_again_leaves_a_trace() -> None:
    settled = settle(replace(RUNNING, policies=RETRIED), FAILED, LATER)
    assert (settled.after.state, settled.after.error) == (State.RETRYING, "it rained")
    assert settled.event is not None
    assert settled.event.note == "attempt 1: it rained"


def test_j05_the_last_failure_is_in_the_row() -> None:
    settled = settle(RUNNING, FAILED, LATER)
    assert (settled.after.state, settled.after.error) == (State.DEAD, "it rained")
    assert settled.event is None


def test_j05_a_success_said_again_is_the_same() -> None:
    held = replace(CLAIMED, state=State.SUCCEEDED, reason=Reason.FIRED)
    assert SUCCEEDED.is_said_of(held)
    assert not FAILED.is_said_of(held)


@pytest.mark.parametrize(("state", "reason"), [(State.RETRYING, None), (State.DEAD, Reason.FAILED)])
def test_j05_a_failure_said_again_is_the_same(state: State, reason: Reason | None) -> None:
    held = replace(CLAIMED, state=state, reason=reason)
    assert FAILED.is_said_of(held)
    assert not SUCCEEDED.is_said_of(held)


def test_j13_a_failure_said_of_a_lost_attempt_is_another() -> None:
    held = replace(CLAIMED, state=State.DEAD, reason=Reason.LOST)
    assert not FAILED.is_said_of(held)

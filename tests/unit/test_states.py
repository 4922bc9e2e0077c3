"""J-05: the states of an occurrence, the ways between them, and the reasons of the ends."""

import pytest
from duetick.domain.errors import IllegalTransition
from duetick.domain.states import (
    LEASED,
    REASONS,
    TERMINAL,
    TRANSITIONS,
    WAITING,
    Reason,
    State,
    check_reason,
    check_transition,
    end_state,
)

ALLOWED = {
    "scheduled": "queued cancelled",
    "queued": "processing cancelled deleted",
    "processing": "succeeded failed cancelled",
    "failed": "retrying dead queued",
    "retrying": "queued cancelled",
    "dead": "queued deleted",
    "succeeded": "deleted",
    "cancelled": "deleted",
    "deleted": "",
}

PAIRS = [(before, after) for before in State for after in State]


def allowed(before: State, after: State) -> bool:
    return after.value in ALLOWED[before.value].split()


@pytest.mark.parametrize(("before", "after"), [pair for pair in PAIRS if allowed(*pair)])
def test_j05_a_listed_transition_is_a_change(before: State, after: State) -> None:
    assert check_transition(before, after) is True


@pytest.mark.parametrize(
    ("before", "after"),
    [(before, after) for before, after in PAIRS if before != after and not allowed(before, after)],
)
def test_j05_any_other_transition_is_an_error(before: State, after: State) -> None:
    with pytest.raises(IllegalTransition, match=f"{before.value} cannot become {after.value}"):
        check_transition(before, after)


@pytest.mark.parametrize("state", State)
def test_j05_the_same_state_again_is_no_change(state: State) -> None:
    assert check_transition(state, state) is False


def test_j05_an_illegal_transition_says_what_is_allowed() -> None:
    with pytest.raises(IllegalTransition, match="only deleted may follow"):
        check_transition(State.SUCCEEDED, State.QUEUED)


def test_j05_every_state_has_its_transitions() -> None:
    assert set(TRANSITIONS) == set(State)


def test_j05_every_reason_ends_exactly_one_state() -> None:
    ends = [reason for reasons in REASONS.values() for reason in reasons]
    assert sorted(ends) == sorted(Reason)


@pytest.mark.parametrize("state", TERMINAL)
def test_j05_an_end_needs_one_of_its_reasons(state: State) -> None:
    for reason in (None, *Reason):
        if reason in REASONS[state]:
            check_reason(state, reason)
        else:
            with pytest.raises(IllegalTransition):
                check_reason(state, reason)


@pytest.mark.parametrize("reason", Reason)
def test_j13_a_deleted_one_keeps_the_reason_of_its_end(reason: Reason) -> None:
    check_reason(State.DELETED, reason)
    with pytest.raises(IllegalTransition):
        check_reason(State.DELETED, None)
    assert reason in REASONS[end_state(State.DELETED, reason)]


@pytest.mark.parametrize("state", sorted(set(State) - TERMINAL - {State.DELETED}))
def test_j05_a_state_that_is_no_end_has_no_reason(state: State) -> None:
    check_reason(state, None)
    with pytest.raises(IllegalTransition):
        check_reason(state, Reason.FIRED)


def test_j05_nothing_waits_or_is_leased_at_its_end() -> None:
    assert not (WAITING | LEASED) & TERMINAL
    assert not WAITING & LEASED

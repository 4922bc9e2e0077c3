"""Policies remember their chosen fields: a default takes the place only of a field that was left
out.
"""

import copy
from collections.abc import Callable
from typing import Any

import pytest
from duetick.domain.errors import InvalidSchedule
from duetick.domain.policies import Backoff, Delivery, Overlap, Policies, Retry

USUAL = Policies(
    delivery=Delivery.AT_LEAST_ONCE,
    overlap=Overlap.WAIT,
    retry=Retry(Backoff.FIXED, attempts=7, first=60),
)


def test_what_is_left_out_has_the_default() -> None:
    assert Policies().over(USUAL) == USUAL


def test_what_is_chosen_stands_even_where_it_is_duetick_s_own_default() -> None:
    chosen = Policies(delivery=Delivery.AT_MOST_ONCE)
    assert chosen == Policies()
    assert chosen.over(USUAL).delivery is Delivery.AT_MOST_ONCE
    assert chosen.over(USUAL).overlap is Overlap.WAIT


def test_a_retry_is_chosen_field_by_field() -> None:
    assert Policies(retry=Retry(attempts=3)).over(USUAL).retry == Retry(Backoff.FIXED, 3, 60)
    assert Policies(retry=Retry(attempts=5)).over(USUAL).retry == Retry(Backoff.FIXED, 5, 60)


def test_what_was_filled_in_once_is_chosen() -> None:
    """A default that changes later changes nothing that is there."""
    first = Policies(priority=3).over(Policies())
    assert first.over(USUAL) == first


@pytest.mark.parametrize("text", [None, '{"priority":3}'])
def test_what_a_store_kept_is_chosen(text: str | None) -> None:
    kept = Policies.load(text)
    assert kept.over(USUAL) == kept


@pytest.mark.parametrize("made", [copy.copy, copy.deepcopy])
def test_a_copy_keeps_what_differs(made: Callable[[Policies], Policies]) -> None:
    found = made(Policies(priority=3, retry=Retry(attempts=3)))
    assert found == Policies(priority=3, retry=Retry(attempts=3))
    assert found.over(USUAL).priority == 3
    assert found.over(USUAL).retry.attempts == 3


def test_fields_that_are_given_by_their_places_are_chosen() -> None:
    assert set(Retry(Backoff.EXPONENTIAL, 5).chosen) == {"backoff", "attempts"}


def test_a_retry_is_taken_as_a_mapping() -> None:
    given: dict[str, Any] = {"retry": {"attempts": 3, "backoff": "fixed"}}
    assert Policies(**given).retry == Retry(Backoff.FIXED, 3)


@pytest.mark.parametrize(
    ("retry", "says"),
    [
        (
            {"attemps": 3},
            "policies.retry.attemps: is not known; known are backoff, attempts, first, longest, "
            "jitter.",
        ),
        ({"attempts": 0}, "policies.retry.attempts: expected a whole number from 1 to 185, got 0."),
        ("often", "policies.retry: expected an object, got text."),
    ],
)
def test_a_retry_that_cannot_be_read_is_told(retry: Retry, says: str) -> None:
    with pytest.raises(InvalidSchedule) as refused:
        Policies(retry=retry)
    assert str(refused.value) == says

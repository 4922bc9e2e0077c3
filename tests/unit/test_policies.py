"""Policies: their values, their defaults, and helpful refusals."""

from dataclasses import fields

import pytest
from duetick.domain.errors import InvalidSchedule
from duetick.domain.policies import Backoff, Delivery, Misfire, Overlap, Policies, Retry
from hypothesis import given
from hypothesis import strategies as st

DEFAULTS = {
    "delivery": "at_most_once",
    "overlap": "skip",
    "misfire": "latest",
    "grace": 150,
    "catch_up": 10,
    "longest_lateness": None,
    "spread": 0,
    "gap": "run",
    "repeat": "first",
    "priority": 0,
    "timeout": 25,
    "starts_at": None,
    "ends_at": None,
    "max_runs": None,
    "after_completion": "keep",
    "pause_after": None,
    "on_failure": None,
}

WRONG = [
    ("delivery", "twice"),
    ("overlap", "queue"),
    ("misfire", "ignore"),
    ("gap", "jump"),
    ("after_completion", "drop"),
    ("repeat", "last"),
    ("grace", -1),
    ("grace", True),
    ("grace", 1.5),
    ("catch_up", 1_001),
    ("longest_lateness", 0),
    ("spread", 86_401),
    ("priority", 101),
    ("timeout", 0),
    ("timeout", 901),
    ("starts_at", -1),
    ("ends_at", 10**15),
    ("max_runs", 0),
    ("pause_after", 0),
    ("pause_after", 1_001),
]

RETRIES = st.builds(
    Retry,
    backoff=st.sampled_from(Backoff),
    attempts=st.integers(1, 185),
    first=st.integers(1, 60),
    longest=st.integers(60, 86_400),
    jitter=st.integers(0, 100),
)

POLICIES = st.builds(
    Policies,
    delivery=st.sampled_from(Delivery),
    retry=RETRIES,
    overlap=st.sampled_from(Overlap),
    misfire=st.sampled_from(Misfire),
    grace=st.integers(0, 86_400),
    catch_up=st.integers(0, 1_000),
    longest_lateness=st.none() | st.integers(1, 86_400),
    spread=st.integers(0, 86_400),
    gap=st.sampled_from(["run", "skip"]),
    repeat=st.sampled_from(["first", "both"]),
    priority=st.integers(-100, 100),
    timeout=st.integers(1, 900),
    after_completion=st.sampled_from(["keep", "delete"]),
)


@pytest.mark.parametrize(("name", "value"), DEFAULTS.items())
def test_the_defaults_are_those_of_the_table(name: str, value: object) -> None:
    assert getattr(Policies(), name) == value


def test_the_table_of_defaults_is_complete() -> None:
    assert {field.name for field in fields(Policies)} == {*DEFAULTS, "retry"}


def test_j06_the_default_retry_is_exponential_with_five_attempts() -> None:
    assert Retry() == Retry(Backoff.EXPONENTIAL, attempts=5, first=10, longest=3_600)


@pytest.mark.parametrize(("name", "value"), WRONG)
def test_d08_a_wrong_value_is_refused_by_name(name: str, value: object) -> None:
    with pytest.raises(InvalidSchedule, match=f"policies.{name}: expected"):
        Policies.of({name: value})


@pytest.mark.parametrize("retry", [{"attempts": 0}, {"first": 60, "longest": 10}, {"backoff": "x"}])
def test_j06_a_wrong_retry_is_refused(retry: dict[str, object]) -> None:
    with pytest.raises(InvalidSchedule, match=r"retry\."):
        Policies.of({"retry": retry})


def test_an_unknown_policy_is_refused_with_the_known_ones() -> None:
    with pytest.raises(InvalidSchedule, match=r"jitter: is not known; known are delivery"):
        Policies.of({"jitter": 5})


def test_a_retry_that_is_no_object_is_refused() -> None:
    with pytest.raises(InvalidSchedule, match="expected an object, got a number"):
        Policies.of({"retry": 5})


def test_values_may_be_given_as_plain_text() -> None:
    assert Policies.of({"overlap": "wait"}).overlap is Overlap.WAIT


@given(POLICIES)
def test_what_is_dumped_is_loaded_as_it_was(policies: Policies) -> None:
    assert Policies.load(policies.dump()) == policies


def test_the_defaults_dump_to_nothing() -> None:
    assert Policies().dump() is None


def test_only_what_differs_is_dumped() -> None:
    assert Policies(priority=3).dump() == '{"priority":3}'


def test_j06_exponential_delays_double_up_to_the_longest() -> None:
    retry = Retry(attempts=6, first=10, longest=60)
    assert [retry.delay(attempt) for attempt in range(1, 7)] == [
        10_000,
        20_000,
        40_000,
        60_000,
        60_000,
        None,
    ]


def test_j06_fixed_delays_stay() -> None:
    retry = Retry(Backoff.FIXED, attempts=3, first=7)
    assert [retry.delay(attempt) for attempt in (1, 2, 3)] == [7_000, 7_000, None]


def test_j06_none_has_no_second_attempt() -> None:
    assert Retry(Backoff.NONE).delay(1) is None


@given(RETRIES, st.integers(1, 200), st.text(max_size=8))
def test_j06_a_delay_lies_between_the_first_and_the_longest(
    retry: Retry, attempt: int, name: str
) -> None:
    """The jitter may take its part of the delay, and always takes the same for one name."""
    delay = retry.delay(attempt, name)
    least = retry.first * 10 * (100 - retry.jitter)
    assert delay is None or least <= delay <= retry.longest * 1_000
    assert delay == retry.delay(attempt, name)


def test_j06_a_retry_without_jitter_is_kept_as_before_there_was_one() -> None:
    assert Policies(retry=Retry(attempts=2)).dump() == (
        '{"retry":{"attempts":2,"backoff":"exponential","first":10,"longest":3600}}'
    )
    jittery = Policies(retry=Retry(jitter=30))
    assert Policies.load(jittery.dump()) == jittery


def test_t03_at_most_once_never_retries() -> None:
    assert not Policies().retries
    assert Policies(delivery=Delivery.AT_LEAST_ONCE).retries
    assert Policies(delivery=Delivery.EFFECTIVELY_ONCE).retries


def test_t07_a_lease_is_the_timeout_and_a_margin() -> None:
    assert Policies(timeout=25).lease_ms == 60_000


def test_t03_what_never_began_may_begin_for_an_hour_unless_set() -> None:
    assert Policies().begin_within_ms == 3_600_000
    assert Policies(longest_lateness=60).begin_within_ms == 60_000


def test_j09_the_longest_lateness_bounds_the_grace() -> None:
    assert Policies().on_time_ms == 150_000
    assert Policies(longest_lateness=60).on_time_ms == 60_000
    assert Policies(longest_lateness=600).on_time_ms == 150_000

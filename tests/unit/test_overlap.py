"""D-08: the place of a schedule, and the occurrence that has it."""

from dataclasses import replace

import pytest
from duetick.domain.overlap import (
    PLACE_KEPT_MS,
    displaces,
    is_rival,
    make_way,
    may_be_leased,
    needs_reserving,
    pick_one_of_each,
    reserve,
    wait_behind,
)
from duetick.domain.policies import Delivery, Overlap, Policies
from duetick.domain.schedule import Occurrence
from duetick.domain.states import Reason, State

NOON = 1_803_902_400_000
SECOND = 1_000
HOUR = 3_600 * SECOND
LATER = NOON + 60 * SECOND
RETRIED = Policies(delivery=Delivery.AT_LEAST_ONCE)
CLAIMED = Occurrence("ada", "digest", "0 12 * * *", None, NOON, 1, due_at=NOON, lease_until=LATER)
EARLIER = replace(CLAIMED, nominal_at=NOON - HOUR, due_at=NOON - HOUR, policies=RETRIED)
RUNNING = replace(EARLIER, state=State.PROCESSING, attempts=1, begun_at=NOON)
RETRY = replace(EARLIER, state=State.RETRYING, attempts=1, lease_until=None)
LEASED_RETRY = replace(EARLIER, attempts=1)


def test_d08_skip_ends_it_and_wait_keeps_it() -> None:
    skipped = wait_behind(CLAIMED, Overlap.SKIP, NOON)
    assert (skipped.state, skipped.reason) == (State.CANCELLED, Reason.OVERLAP)
    kept = wait_behind(CLAIMED, Overlap.WAIT, NOON)
    assert (kept.state, kept.lease_until) == (State.QUEUED, NOON + 1)


@pytest.mark.parametrize("overlap", [Overlap.SKIP, Overlap.WAIT])
def test_d08_what_has_begun_once_waits_and_keeps_its_place(overlap: Overlap) -> None:
    after = wait_behind(LEASED_RETRY, overlap, NOON)
    assert (after.state, after.lease_until) == (State.RETRYING, NOON + PLACE_KEPT_MS)


def test_d08_only_an_older_one_that_is_queued_is_displaced() -> None:
    older = replace(CLAIMED, nominal_at=NOON - HOUR)
    assert displaces(CLAIMED, older)
    assert not displaces(older, CLAIMED)
    assert not displaces(CLAIMED, RUNNING)
    assert not displaces(CLAIMED, LEASED_RETRY)


def test_d08_one_that_runs_has_the_place_until_its_lease_ends() -> None:
    assert is_rival(RUNNING, CLAIMED, LATER - 1)
    assert not is_rival(RUNNING, CLAIMED, LATER)
    assert not is_rival(RUNNING, RUNNING, NOON)


def test_d08_one_that_was_never_begun_has_no_place() -> None:
    assert not is_rival(EARLIER, CLAIMED, NOON)


def test_d08_a_leased_retry_has_the_place_when_it_is_due() -> None:
    assert is_rival(LEASED_RETRY, CLAIMED, NOON)
    ahead = replace(LEASED_RETRY, due_at=NOON + 1)
    assert not is_rival(ahead, CLAIMED, NOON)


def test_d08_a_retry_whose_lease_is_over_has_its_place_before_what_never_began_a_while() -> None:
    assert is_rival(LEASED_RETRY, CLAIMED, LATER + PLACE_KEPT_MS - 1)
    assert not is_rival(LEASED_RETRY, CLAIMED, LATER + PLACE_KEPT_MS)
    another = replace(CLAIMED, attempts=1)
    assert not is_rival(LEASED_RETRY, another, LATER)


def test_d08_a_retry_that_waits_has_the_place_only_while_it_is_kept() -> None:
    assert not is_rival(RETRY, CLAIMED, NOON)
    kept = reserve(RETRY, NOON)
    assert is_rival(kept, CLAIMED, NOON + PLACE_KEPT_MS - 1)
    assert not is_rival(kept, CLAIMED, NOON + PLACE_KEPT_MS)
    assert not is_rival(kept, replace(CLAIMED, attempts=1), NOON)
    assert not is_rival(replace(kept, due_at=NOON + 1), CLAIMED, NOON)


def test_d08_a_runner_whose_lease_is_over_makes_way_and_has_the_place_next() -> None:
    after = make_way(RUNNING, CLAIMED, LATER)
    assert after is not None
    assert (after.state, after.lease_until) == (State.RETRYING, LATER + PLACE_KEPT_MS)
    spent = make_way(replace(RUNNING, policies=Policies()), CLAIMED, LATER)
    assert spent is not None
    assert (spent.state, spent.reason) == (State.DEAD, Reason.LOST)


def test_d08_a_retry_that_is_due_has_the_place_after_one_successor() -> None:
    after = make_way(RETRY, CLAIMED, NOON)
    assert after is not None
    kept_until = NOON + CLAIMED.policies.lease_ms + PLACE_KEPT_MS
    assert (after.state, after.lease_until) == (State.RETRYING, kept_until)
    assert make_way(replace(RETRY, due_at=NOON + 1), CLAIMED, NOON) is None
    assert make_way(CLAIMED, CLAIMED, NOON) is None


def test_d08_a_retry_is_leased_only_while_nobody_has_its_place() -> None:
    assert may_be_leased(RETRY, [])
    assert not may_be_leased(RETRY, [replace(RUNNING, nominal_at=NOON)])
    assert may_be_leased(RETRY, [replace(RETRY, nominal_at=NOON)])
    shares = replace(RETRY, policies=replace(RETRIED, overlap=Overlap.ALLOW))
    assert may_be_leased(shares, [replace(RUNNING, nominal_at=NOON)])


def test_d08_of_a_schedules_retries_a_tick_leases_one() -> None:
    other = replace(RETRY, key="other")
    second = replace(RETRY, nominal_at=NOON)
    shares = replace(RETRY, nominal_at=NOON, policies=Policies(overlap=Overlap.ALLOW))
    assert pick_one_of_each([RETRY, second, other]) == [RETRY, other]
    assert pick_one_of_each([RETRY, shares, CLAIMED]) == [RETRY, shares, CLAIMED]


def test_d08_a_place_is_kept_anew_only_when_half_of_it_is_over() -> None:
    kept = reserve(RETRY, NOON)
    assert not needs_reserving(kept, NOON + PLACE_KEPT_MS // 2)
    assert needs_reserving(kept, NOON + PLACE_KEPT_MS // 2 + 1)
    assert needs_reserving(RETRY, NOON)

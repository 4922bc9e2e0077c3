"""A process that ends between any two requests leaves every nominal time accounted for."""

from collections.abc import Callable
from contextlib import suppress

import pytest
from duetick.domain.attempts import SUCCEEDED, Begun, Outcome
from duetick.domain.policies import Delivery, Misfire, Policies
from duetick.domain.states import Reason, State

from tests.integration.dynamodb_case import (
    ENDED,
    HOUR,
    MINUTE,
    NOON,
    Case,
    Crash,
    DynamoStore,
    outcomes,
    schedule,
)
from tests.lab.dynamodb import DynamoDB
from tests.lab.dynamodb_service import watch

KEYS = ("a", "b", "c")
FAILED = Outcome(State.FAILED, Reason.FAILED, "it went wrong")
Ran = dict[tuple[str, int], int]


@pytest.fixture
def dynamodb(dynamodb_local: DynamoDB) -> DynamoDB:
    """Amazon's alone."""
    return dynamodb_local


class CrashAt:
    """Ends the process at its n-th write: before it is sent, or after it was carried out."""

    def __init__(self, store: DynamoStore, place: int, *, after: bool) -> None:
        self.place = place
        self.crashed = False
        if after:
            watch(store.shelf, after=self._count)
        else:
            watch(store.shelf, before=self._count)

    def _count(self, operation: str, _body: object) -> None:
        if operation in ("GetItem", "Query", "BatchGetItem"):
            return
        self.place -= 1
        if self.place < 0:
            self.crashed = True
            raise Crash


def tick(store: DynamoStore, now: int, ran: Ran, *, failing: bool = False) -> None:
    """Claim until nothing is due, and run the claimed occurrences."""
    while claimed := [*store.ledger.claim_waiting(now, 2), *store.index.claim_due(now, 2)]:
        for occurrence in claimed:
            begun = store.ledger.begin(occurrence, now=now)
            if isinstance(begun, Begun):
                name = (occurrence.key, occurrence.nominal_at)
                ran[name] = ran.get(name, 0) + 1
                outcome = FAILED if failing and ran[name] == 1 else SUCCEEDED
                store.ledger.settle(begun.occurrence, outcome, now=now)


def fired_hours(case: Case, policies: Policies, *, crash: Callable[[DynamoStore], CrashAt]) -> Ran:
    """Let three hours pass, in which a process crashes in the second; then tick until all has
    ended.
    """
    store, ran = case.migrated(), Ran()
    for key in KEYS:
        store.schedules.put(schedule(key, policies=policies))
    case.now = NOON + HOUR
    tick(store, case.now, ran)
    case.now = NOON + 2 * HOUR
    crashing = case.open()
    crash(crashing)
    with suppress(Crash):
        tick(crashing, case.now, ran, failing=policies.retries)
    for minute in range(1, 65):
        case.now = NOON + 2 * HOUR + minute * MINUTE
        tick(store, case.now, ran)
    return ran


def crash_points(failing: bool) -> list[tuple[int, bool]]:
    return [(place, after) for place in range(30 if failing else 22) for after in (False, True)]


@pytest.mark.parametrize(("place", "after"), crash_points(False))
def test_t05_a_crash_at_any_write_loses_no_time_and_runs_none_twice(
    case: Case, place: int, after: bool
) -> None:
    policies = Policies(misfire=Misfire.ALL)
    ran = fired_hours(case, policies, crash=lambda store: CrashAt(store, place, after=after))
    found = outcomes(case.open())
    expected = {(key, NOON + hour * HOUR) for key in KEYS for hour in (1, 2, 3)}
    assert found.keys() == expected
    assert all(len(held) == 1 and held[0].state in ENDED for held in found.values())
    assert all(times == 1 for times in ran.values())
    assert sum(held[0].state is not State.SUCCEEDED for held in found.values()) <= 1


@pytest.mark.slow
@pytest.mark.parametrize(("place", "after"), crash_points(True))
def test_t04_a_crash_at_any_write_of_what_is_retried_leaves_it_to_be_tried_again(
    case: Case, place: int, after: bool
) -> None:
    policies = Policies(delivery=Delivery.AT_LEAST_ONCE)
    ran = fired_hours(case, policies, crash=lambda store: CrashAt(store, place, after=after))
    found = outcomes(case.open())
    assert found.keys() == {(key, NOON + hour * HOUR) for key in KEYS for hour in (1, 2, 3)}
    assert all([one.state for one in held] == [State.SUCCEEDED] for held in found.values())
    assert set(ran) == set(found)

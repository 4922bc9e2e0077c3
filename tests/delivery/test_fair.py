"""T-14: a user with one does not wait for another's thousand, due or tried again, on any store."""

from collections.abc import Callable
from itertools import count

import pytest
from duetick.core.store import Store
from duetick.core.tick.claims import Claims
from duetick.core.tick.turns import Turns
from duetick.domain.attempts import Begun, Outcome
from duetick.domain.policies import Backoff, Delivery, Policies, Retry
from duetick.domain.schedule import IndexRow, Occurrence
from duetick.domain.states import Reason, State

from tests.delivery.scene import MINUTE, NINE

SLOTS = 64
MASS = 300
RETRIED = Policies(
    delivery=Delivery.AT_LEAST_ONCE, retry=Retry(backoff=Backoff.FIXED, attempts=5, first=10)
)
URGENT = Policies(delivery=RETRIED.delivery, retry=RETRIED.retry, priority=100)


def due(store: Store, user: str, count: int, policies: Policies) -> None:
    """Put a number of rows of a user, due at nine."""
    for number in range(count):
        row = IndexRow(user, f"k{number}", "0 9 * * *", None, NINE, "m", policies=policies)
        store.index.upsert(row)


def failed(store: Store) -> None:
    """Everything that is due ran once, and failed."""
    while claimed := store.index.claim_due(NINE, 1_000):
        for one in claimed:
            begun = store.ledger.begin(one, now=NINE)
            assert isinstance(begun, Begun)
            rained = Outcome(State.FAILED, Reason.FAILED, "it rained")
            store.ledger.settle(begun.occurrence, rained, now=NINE)


def first_in_line(store: Store, now: int) -> list[Occurrence]:
    """Return the occurrences that a tick gives to its slots first."""
    claims = Claims(store, now, 1_000, slots=SLOTS, look_ahead=0, budget=55.0)
    chunks = claims.look_around(4 * SLOTS)
    turns = Turns([one for chunk in chunks for one in chunk], SLOTS)
    taken = (turns.take() for _ in range(min(SLOTS, turns.in_line)))
    return [one for one in taken if one]


@pytest.mark.slow
@pytest.mark.parametrize("before", [lambda _store: None, failed], ids=["due", "retries"])
@pytest.mark.parametrize(("masses", "policies"), [(1, RETRIED), (10, RETRIED), (1, URGENT)])
def test_t14_twenty_users_with_one_each_are_served_beside_masses(
    each_store: Store, masses: int, policies: Policies, before: Callable[[Store], None]
) -> None:
    for number in range(masses):
        due(each_store, f"big{number}", MASS // masses, policies)
    for number in range(20):
        due(each_store, f"one{number}", 1, RETRIED)
    before(each_store)
    served = first_in_line(each_store, NINE + MINUTE)
    assert sum(one.user_id.startswith("one") for one in served) == 20


def test_t14_the_retries_of_one_user_do_not_hold_up_her_own_due_rows(store: Store) -> None:
    """Once her share stands in line, each claim asks again without leaving her out."""
    due(store, "mass", 20, RETRIED)
    failed(store)
    store.index.upsert(IndexRow("mass", "new", "0 9 * * *", None, NINE + MINUTE, "m"))
    claims = Claims(store, NINE + MINUTE, 1_000, slots=8, look_ahead=0, budget=55.0)
    taken = next(claims.next(1, lambda _share: set()))
    for _ in range(3):
        taken += next(claims.next(1, lambda _share: {"mass"}))
    assert "new" in [one.key for one in taken]


def test_t14_rows_that_a_pause_only_advances_do_not_hold_up_a_tick(store: Store) -> None:
    """Each look at the clock is a quarter of a second: a claim breaks off, and the tick goes on."""
    seconds = count(step=0.25)
    for number in range(40):
        store.index.upsert(IndexRow("ada", f"k{number}", "0 9 * * *", None, NINE))
    store.index.upsert(IndexRow("bob", "k", "0 9 * * *", None, NINE + 1))
    store.pauses.pause("user:ada", now=NINE)
    claims = Claims(
        *(store, NINE + MINUTE, 4),
        slots=8,
        look_ahead=0,
        budget=55.0,
        elapsed=lambda: next(seconds),
    )
    looked = [one.user_id for chunk in claims.look_around(16) for one in chunk]
    assert (looked, claims.over) == ([], False)
    found: list[str] = []
    while not claims.over:
        found += [one.user_id for chunk in claims.next(8, lambda _: ()) for one in chunk]
    assert found == ["bob"]
    assert store.index.backlog(NINE + MINUTE) == 0

"""Begin under contention: threads with connections of their own, released at once (D-08, T-07)."""

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TypeVar

import pytest
from duetick.core.store import Store
from duetick.domain.attempts import SUCCEEDED, Begun, Outcome, Refused
from duetick.domain.errors import StoreUnavailable
from duetick.domain.policies import Delivery, Overlap, Policies
from duetick.domain.schedule import NewOccurrence, Occurrence, Schedule
from duetick.domain.states import Reason, State
from duetick.stores import open_store
from duetick.testing.conformance.suite import run

from tests.integration.severing import Moment, SeveringProxy

T = TypeVar("T")

AT = 1_700_000_040_000
MINUTE = 60_000
THREADS = 8
ROUNDS = 10


@pytest.fixture
def store(postgres_url: str) -> Iterator[Store]:
    store = open_store(f"{postgres_url}&pool={THREADS}")
    store.migrate()
    yield store
    store.close()


def claimed(
    store: Store, key: str, count: int, policies: Policies | None = None
) -> list[Occurrence]:
    """Return `count` occurrences of one schedule, each with its lease."""
    given = policies or Policies()
    put = store.schedules.put(Schedule("ann", key, "* * * * *", "f", "a", policies=given), now=AT)
    first = put.next_fire_at or AT
    return [
        occurrence for n in range(count) for occurrence in store.index.claim_due(first + n * MINUTE)
    ]


def begin_at_once(
    store: Store, occurrences: Sequence[Occurrence], now: int
) -> list[Begun | Refused]:
    return at_once(lambda one: store.ledger.begin(one, now=now), occurrences)


def at_once(act: Callable[[T], Begun | Refused], each: Sequence[T]) -> list[Begun | Refused]:
    """Act in a thread for each, all of them released together."""
    start = threading.Barrier(len(each))

    def released(one: T) -> Begun | Refused:
        start.wait()
        return act(one)

    with ThreadPoolExecutor(len(each)) as threads:
        return list(threads.map(released, each))


@pytest.mark.parametrize("overlap", [Overlap.SKIP, Overlap.WAIT])
def test_d08_of_many_at_once_one_runs(store: Store, overlap: Overlap) -> None:
    for n in range(ROUNDS):
        policies = Policies(overlap=overlap, timeout=900)
        several = claimed(store, f"k{n}", THREADS, policies)
        answers = begin_at_once(store, several, several[0].due_at + MINUTE)
        assert sum(isinstance(answer, Begun) for answer in answers) == 1
        running = [o for o in store.ledger.find("ann", f"k{n}") if o.state is State.PROCESSING]
        assert len(running) == 1


def test_d08_where_overlap_is_allowed_all_run(store: Store) -> None:
    several = claimed(store, "k", THREADS, Policies(overlap=Overlap.ALLOW, timeout=900))
    answers = begin_at_once(store, several, several[0].due_at + MINUTE)
    assert all(isinstance(answer, Begun) for answer in answers)


def test_t07_one_fence_begins_once(store: Store) -> None:
    for n in range(ROUNDS):
        (one,) = claimed(store, f"k{n}", 1)
        answers = begin_at_once(store, [one] * THREADS, one.due_at)
        assert sum(isinstance(answer, Begun) for answer in answers) == 1
        held = store.ledger.get(*one.identity)
        assert held is not None
        assert (held.state, held.attempts) == (State.PROCESSING, 1)


@pytest.mark.parametrize("overlap", Overlap)
def test_d07_callers_of_one_identity_begin_it_once(store: Store, overlap: Overlap) -> None:
    for n in range(ROUNDS):
        wanted = NewOccurrence("ann", f"k{n}", "", None, AT, f"call:{overlap}{n}", AT)
        wanted = replace(wanted, policies=Policies(overlap=overlap))
        answers = at_once(lambda one: run(store, one, AT), [wanted] * THREADS)
        assert sum(isinstance(answer, Begun) for answer in answers) == 1
        held = store.ledger.get(*wanted.identity)
        assert held is not None
        assert (held.state, held.attempts) == (State.PROCESSING, 1)


def test_t07_a_begin_that_never_arrived_begins(severed: tuple[Store, SeveringProxy]) -> None:
    store, proxy = severed
    (one,) = claimed(store, "k", 1)
    proxy.cut(b"COMMIT", "before")
    assert isinstance(store.ledger.begin(one, now=one.due_at), Begun)


def test_t07_a_begin_whose_answer_is_lost_never_runs_by_guess(
    severed: tuple[Store, SeveringProxy],
) -> None:
    store, proxy = severed
    (one,) = claimed(store, "k", 1)
    proxy.cut(b"COMMIT", "after")
    try:
        began = isinstance(store.ledger.begin(one, now=one.due_at), Begun)
    except StoreUnavailable:
        began = False
    held = store.ledger.get(*one.identity)
    assert held is not None
    assert held.attempts == 1 or not began


@pytest.mark.parametrize("moment", ["before", "after"])
def test_t04_a_settle_whose_answer_is_lost_is_said_again(
    severed: tuple[Store, SeveringProxy], moment: Moment
) -> None:
    store, proxy = severed
    (one,) = claimed(store, "k", 1, Policies(delivery=Delivery.AT_LEAST_ONCE))
    begun = store.ledger.begin(one, now=one.due_at)
    assert isinstance(begun, Begun)
    proxy.cut(b"COMMIT", moment)
    failed = Outcome(State.FAILED, Reason.FAILED, "it rained")
    settled = store.ledger.settle(begun.occurrence, failed, now=one.due_at)
    assert settled is not None
    assert (settled.state, settled.attempts) == (State.RETRYING, 1)
    assert len(store.ledger.events(one)) == 1
    assert store.ledger.settle(one, SUCCEEDED, now=one.due_at) is None

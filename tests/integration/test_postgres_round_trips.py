"""The round trips of a dispatch and a tick to Postgres: counted at the socket."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlsplit

import pytest
from duetick.core.tick import run_tick
from duetick.domain.attempts import SUCCEEDED, Begun, Outcome
from duetick.domain.policies import Delivery, Overlap, Policies
from duetick.domain.schedule import IndexRow, NewOccurrence, Occurrence, Schedule
from duetick.domain.states import Reason, State
from duetick.stores import open_store
from duetick.stores.postgres import database
from duetick.testing.conformance.suite import start
from pg8000.native import Connection

if TYPE_CHECKING:
    from collections.abc import Iterator

    from _typeshed import ReadableBuffer, WriteableBuffer
    from duetick.core.store import Store
    from duetick.ports import Delivered

T = 1_700_000_040_000
MINUTE = 60_000


class CountingSocket(socket.socket):
    """A socket that counts the waits for an answer after bytes were sent."""

    round_trips = 0
    _spoke = False

    def send(self, data: ReadableBuffer, flags: int = 0, /) -> int:
        CountingSocket._spoke = True
        return super().send(data, flags)

    def recv_into(self, buffer: WriteableBuffer, nbytes: int = 0, flags: int = 0) -> int:
        CountingSocket.round_trips += CountingSocket._spoke
        CountingSocket._spoke = False
        return super().recv_into(buffer, nbytes, flags)


def connect_counting(url: str) -> Connection:
    parts = urlsplit(url)
    query = parse_qs(parts.query)
    made = CountingSocket(socket.AF_UNIX, socket.SOCK_STREAM)
    made.connect(f"{query['host'][0]}/.s.PGSQL.{query['port'][0]}")
    return Connection("postgres", database=parts.path.removeprefix("/"), sock=made)


@pytest.fixture
def store(postgres_url: str) -> Iterator[Store]:
    if not parse_qs(urlsplit(postgres_url).query).get("host"):
        pytest.skip("counts at a socket file; this server is reached by TCP")
    store = open_store(lambda: connect_counting(postgres_url))
    store.migrate()
    yield store
    store.close()


def claimed(store: Store, policies: Policies | None = None) -> Occurrence:
    made = Schedule("ann", "k", "* * * * *", "flow", "act", policies=policies or Policies())
    put = store.schedules.put(made, now=T - 1)
    (occurrence,) = store.index.claim_due(put.next_fire_at or T)
    return occurrence


class Nowhere:
    """A transport that gets nothing."""

    def deliver(self, occurrence: Occurrence, *, timeout: float) -> Delivered:
        raise AssertionError(f"{occurrence.key} within {timeout} s")

    def close(self) -> None:
        """Nothing is open."""


def trips() -> int:
    """Return the number of round trips since the last call."""
    found, CountingSocket.round_trips = CountingSocket.round_trips, 0
    return found


def test_a_tick_that_finds_nothing_is_two_round_trips(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All that it asks; the report."""
    monkeypatch.setattr(database, "CLOCK_KEPT_MS", 0)  # ticks are a minute apart
    for _ in range(2):
        trips()
        assert run_tick(store, Nowhere()).claimed == 0
        assert trips() == 2
        store.standing.forget()  # ticks are a minute apart


def test_begin_is_one_round_trip_if_the_orders_were_read_five_seconds_before(
    store: Store,
) -> None:
    occurrence = claimed(store)
    store.pauses.current(occurrence.due_at - 4_999)
    trips()
    begun = store.ledger.begin(occurrence, now=occurrence.due_at)
    assert trips() == 1
    assert isinstance(begun, Begun)
    assert begun.schedule is not None


def test_begin_by_the_clock_of_the_database_is_one_round_trip(store: Store) -> None:
    now = store.now()
    store.index.upsert(IndexRow("ann", "k", "* * * * *", None, now))
    (occurrence,) = store.index.claim_due(now)
    store.pauses.current(now)
    trips()
    assert isinstance(store.ledger.begin(occurrence), Begun)
    assert trips() == 1


def test_a_begin_long_after_another_reads_the_orders_too(store: Store) -> None:
    occurrence = claimed(store)
    store.pauses.current(occurrence.due_at - 5_000)
    trips()
    assert isinstance(store.ledger.begin(occurrence, now=occurrence.due_at), Begun)
    assert trips() == 2


def test_begin_and_settle_beside_a_limit_of_others_are_one_round_trip_each(store: Store) -> None:
    """A settle reads no orders, however long ago its begin read them."""
    for scope in ("user:bob", "flow:other", "action:other/send"):
        store.limits.set(scope, parallel=1, now=T)
    occurrence = claimed(store)
    store.limits.current(occurrence.due_at)
    trips()
    begun = store.ledger.begin(occurrence, now=occurrence.due_at)
    assert isinstance(begun, Begun)
    assert trips() == 1
    later = occurrence.due_at + 3 * MINUTE
    assert store.ledger.settle(begun.occurrence, SUCCEEDED, now=later)
    assert trips() == 1


def test_a_begin_under_a_limit_looks_takes_and_begins_and_its_settle_gives_back(
    store: Store,
) -> None:
    occurrence = claimed(store)
    store.limits.set(f"user:{occurrence.user_id}", parallel=1, now=T)
    store.limits.current(occurrence.due_at)
    trips()
    begun = store.ledger.begin(occurrence, now=occurrence.due_at)
    assert isinstance(begun, Begun)
    assert trips() == 7
    assert store.ledger.settle(begun.occurrence, SUCCEEDED, now=occurrence.due_at)
    assert trips() == 4


def test_a_refusal_for_overlap_takes_the_general_way(store: Store) -> None:
    first = claimed(store)
    store.ledger.begin(first, now=first.due_at)
    (second,) = store.index.claim_due(first.due_at + MINUTE)
    store.ledger.settle(first, SUCCEEDED, now=first.due_at)
    later = second.nominal_at + 1
    third = NewOccurrence(second.user_id, second.key, second.cron, None, later, "run:1", later)
    start(store, third, second.due_at)
    trips()
    refused = store.ledger.begin(second, now=second.due_at)
    assert trips() == 3
    assert getattr(refused, "reason", None) is Reason.OVERLAP


@pytest.mark.parametrize("outcome", [SUCCEEDED, Outcome(State.FAILED, Reason.FAILED, "it rained")])
@pytest.mark.parametrize("delivery", [Delivery.AT_MOST_ONCE, Delivery.AT_LEAST_ONCE])
def test_settle_is_one_round_trip(store: Store, outcome: Outcome, delivery: Delivery) -> None:
    occurrence = claimed(store, Policies(delivery=delivery, overlap=Overlap.ALLOW))
    begun = store.ledger.begin(occurrence, now=occurrence.due_at)
    assert isinstance(begun, Begun)
    trips()
    settled = store.ledger.settle(begun.occurrence, outcome, now=occurrence.due_at)
    assert trips() == 1
    assert settled is not None


def test_a_chunk_is_claimed_in_two_round_trips(store: Store) -> None:
    for n in range(20):
        store.index.upsert(IndexRow("ann", f"k{n}", "* * * * *", None, T))
    trips()
    assert len(store.index.claim_due(T, 20)) == 20
    assert trips() == 2

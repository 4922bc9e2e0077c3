"""A tick goes on for longer than a lease: the occurrences that it claims late still begin in it."""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from threading import Lock

import pytest
from duetick.core.store import Store
from duetick.core.tick import TickReport, run_tick
from duetick.core.tick.loop import CHUNK, SLOTS
from duetick.domain.attempts import SUCCEEDED, Begun
from duetick.domain.schedule import IndexRow, Occurrence, Schedule
from duetick.ports import Delivered
from duetick.stores import open_store
from duetick.testing import FakeClock

from tests.delivery.scene import NINE

SLOW_MS = 25_000


@dataclass(slots=True)
class Slow:
    """A dispatch whose actions take long by the clock of the test."""

    store: Store
    clock: FakeClock
    began: list[str] = field(default_factory=list)

    def deliver(self, occurrence: Occurrence, *, timeout: float) -> Delivered:
        """Begin, take the time, settle."""
        del timeout
        begun = self.store.ledger.begin(occurrence)
        if not isinstance(begun, Begun):
            return Delivered(409)
        self.began.append(occurrence.key)
        self.clock.now += SLOW_MS
        self.store.ledger.settle(begun.occurrence, SUCCEEDED)
        return Delivered(202, '{"status": "accepted"}')

    def close(self) -> None:
        """Nothing is open."""


def tick(slow: Slow, *, slots: int = SLOTS, chunk: int = CHUNK) -> TickReport:
    """Run a tick of ten minutes by the clock of its dispatch."""
    clock = slow.clock
    return run_tick(
        slow.store,
        slow,
        now=NINE,
        slots=slots,
        chunk=chunk,
        budget=600,
        elapsed=lambda: (clock.now - NINE) / 1_000,
    )


@pytest.fixture
def clock() -> FakeClock:
    """The clock of the store and of the tick."""
    return FakeClock(NINE)


@pytest.fixture
def store(address: str, clock: FakeClock) -> Iterator[Store]:
    """A store of each backend, with eight rows of one user that are due."""
    made = open_store(address, clock=clock)
    made.migrate()
    for number in range(8):
        made.index.upsert(IndexRow("ann", f"k{number}", "0 9 * * *", None, NINE, "mail"))
    yield made
    made.close()


def test_what_a_tick_claims_after_minutes_begins_in_that_tick(
    store: Store, clock: FakeClock
) -> None:
    slow = Slow(store, clock)
    report = tick(slow, slots=1, chunk=1)
    assert (report.claimed, report.delivered, report.failed) == (8, 8, 0)
    assert sorted(slow.began) == [f"k{number}" for number in range(8)]


def test_o03_a_long_tick_goes_on_with_what_a_limit_lets_begin_one_by_one(
    store: Store, clock: FakeClock
) -> None:
    store.limits.set("flow:mail", parallel=1, now=NINE)
    slow = Slow(store, clock)
    report = tick(slow, slots=4)
    assert (report.delivered, report.failed, len(slow.began)) == (8, 0, 8)


def test_q05_a_long_tick_goes_on_with_the_jobs_that_wait(store: Store, clock: FakeClock) -> None:
    for number in range(8):
        store.index.remove("ann", f"k{number}")
        store.jobs.enqueue(
            Schedule("ann", "job", "* * * * *", "mail", "send"), due_at=NINE, now=NINE
        )
    slow = Slow(store, clock)
    report = tick(slow, slots=1, chunk=1)
    assert (report.delivered, report.failed, len(slow.began)) == (8, 0, 8)


@dataclass(slots=True)
class Beside(Slow):
    """A dispatch that begins at once, and whose actions take long beside one another."""

    slow_ms: int = SLOW_MS
    lock: Lock = field(default_factory=Lock)

    def deliver(self, occurrence: Occurrence, *, timeout: float) -> Delivered:
        """Begin, let time pass as it does if all slots are taken, settle."""
        del timeout
        begun = self.store.ledger.begin(occurrence)
        if not isinstance(begun, Begun):
            return Delivered(409)
        with self.lock:
            self.began.append(occurrence.user_id)
            self.clock.now += self.slow_ms // SLOTS
        self.store.ledger.settle(begun.occurrence, SUCCEEDED)
        return Delivered(202, '{"status": "accepted"}')


def test_i15_a_long_tick_leases_no_more_than_it_delivers_before_the_leases_end(
    clock: FakeClock,
) -> None:
    with closing(open_store("sqlite://", clock=clock)) as store:
        store.migrate()
        for number in range(500):
            store.index.upsert(IndexRow("ann", f"k{number}", "0 9 * * *", None, NINE, "mail"))
        report = tick(Beside(store, clock))
    assert (report.claimed, report.delivered) == (500, 500)


def test_i15_the_first_chunk_of_many_users_begins_before_its_leases_end(clock: FakeClock) -> None:
    with closing(open_store("sqlite://", clock=clock)) as store:
        store.migrate()
        for number in range(300):
            store.index.upsert(IndexRow(f"u{number}", "k", "0 9 * * *", None, NINE, "mail"))
        slow = Beside(store, clock, slow_ms=20_000)
        report = tick(slow)
    assert (report.claimed, len(slow.began)) == (300, 300)

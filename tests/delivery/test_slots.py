"""Q-05: a tick has as many slots as answers need, and fewer as soon as the endpoint is busy."""

import threading
import time
from dataclasses import dataclass, field

import pytest
from duetick.core.store import Store
from duetick.core.tick import loop, run_tick
from duetick.core.tick.delivery import LEAST_ANSWERS, Slots
from duetick.core.tick.turns import Turns
from duetick.domain.schedule import IndexRow, Occurrence
from duetick.ports import Delivered

from tests.delivery.scene import NINE
from tests.delivery.test_turns import held, many

LINE = 10_000
"""More than ever had slots."""


def hear(slots: Slots, seconds: float, answers: int = 0, *, is_busy: bool = False) -> int:
    """Note a number of answers, each after some seconds: one for each slot by default. Return the
    slots.
    """
    for _ in range(answers or max(slots.now, LEAST_ANSWERS)):
        slots.note(seconds, is_busy=is_busy)
    slots.adapt(LINE)
    return slots.now


def test_q05_slots_grow_twofold_at_a_time_to_what_the_length_of_an_answer_needs() -> None:
    slots = Slots(64, 500)
    assert [hear(slots, 0.06) for _ in range(4)] == [128, 256, 300, 300]


def test_quick_answers_need_no_more_slots() -> None:
    assert hear(Slots(64, 500), 0.005) == 64


def test_q05_slots_never_pass_what_memory_has_room_for() -> None:
    slots = Slots(64, 200)
    assert [hear(slots, 3.0) for _ in range(3)] == [128, 200, 200]


def test_a_tick_may_be_given_fewer_slots_than_the_usual_ones() -> None:
    assert hear(Slots(64, 8), 3.0) == 64


def test_too_few_answers_say_nothing() -> None:
    assert hear(Slots(64, 500), 3.0, LEAST_ANSWERS - 1) == 64


def test_slots_do_not_grow_without_a_line_for_them() -> None:
    slots = Slots(64, 500)
    for _ in range(64):
        slots.note(3.0, is_busy=False)
    assert not slots.adapt(63)


def test_answers_that_become_slower_by_more_slots_bring_no_more_of_them() -> None:
    slots = Slots(64, 500)
    hear(slots, 0.02)
    assert [slots.now, hear(slots, 0.04), hear(slots, 0.4)] == [100, 100, 100]


def test_q05_a_busy_endpoint_halves_the_slots_and_that_number_is_never_reached_again() -> None:
    slots = Slots(64, 500)
    hear(slots, 1.0)
    hear(slots, 1.0)
    assert hear(slots, 1.0, 1, is_busy=True) == 128
    assert [hear(slots, 1.0) for _ in range(3)] == [192, 192, 192]


def test_a_busy_endpoint_leaves_the_least_slots() -> None:
    assert hear(Slots(64, 500), 1.0, 1, is_busy=True) == 64


def test_fewer_slots_let_no_more_begin_until_what_is_in_flight_has_ended() -> None:
    turns = Turns(many("big", 100), 8)
    held(turns, 7)
    last = turns.take()
    turns.resize(7)
    assert last
    turns.free(last)
    taken: list[Occurrence | None] = []
    waiter = threading.Thread(target=lambda: taken.append(turns.take()))
    waiter.start()
    waiter.join(0.1)
    assert not taken
    turns.resize(8)
    waiter.join(10)
    assert len(taken) == 1


@dataclass
class Endpoint:
    """A transport that notes the most calls at once. From `limit` on it answers 429."""

    seconds: float = 0.0
    limit: int = 1_000_000
    peak: int = 0
    now: int = 0
    refused_at: list[int] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def deliver(self, occurrence: Occurrence, *, timeout: float) -> Delivered:
        """Answer after a while."""
        with self._lock:
            self.now += 1
            self.peak = max(self.peak, self.now)
            is_busy = self.now > self.limit
            if is_busy:
                self.refused_at.append(self.now)
        try:
            time.sleep(0.001 if is_busy else self.seconds)
        finally:
            with self._lock:
                self.now -= 1
        return Delivered(429, "{}") if is_busy else Delivered(202, '{"status": "accepted"}')

    def close(self) -> None:
        """Nothing is open."""


@pytest.mark.slow
@pytest.mark.parametrize(("most", "peak"), [(0, 4), (40, 40)])
def test_q05_a_tick_over_the_api_uses_the_slots_that_long_answers_need(
    store: Store, monkeypatch: pytest.MonkeyPatch, most: int, peak: int
) -> None:
    monkeypatch.setattr(loop, "GLANCE", 0.05)
    put_many(store, 600)
    endpoint = Endpoint(seconds=0.02)
    report = run_tick(store, endpoint, now=NINE, slots=4, most_slots=most, budget=100)
    assert (report.delivered, endpoint.peak) == (600, peak)


@pytest.mark.slow
def test_q05_a_throttled_tick_delivers_what_it_may_and_what_was_refused_comes_back(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loop, "GLANCE", 0.05)
    put_many(store, 600)
    endpoint = Endpoint(seconds=0.02, limit=20)
    report = run_tick(store, endpoint, now=NINE, slots=4, most_slots=40, budget=100)
    assert endpoint.refused_at
    assert report.delivered + report.failed == 600
    assert report.delivered > 500
    later = run_tick(store, Endpoint(), now=NINE + 10_000, budget=100)
    assert report.delivered + later.delivered == 600


def put_many(store: Store, count: int) -> None:
    """Rows of many users, due at nine, once a year."""
    for number in range(count):
        store.index.upsert(IndexRow(f"u{number:04}", "k", "0 9 1 1 *", None, NINE, "mail"))

"""T-14, J-04: users take turns, priority orders one's own, and a thousand cost no more each."""

import threading
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

import pytest
from duetick.core.threads import RealThreads
from duetick.core.tick.turns import Turns
from duetick.domain.schedule import Identity, Occurrence

from tests.delivery.scene import NINE


def of(user: str, key: str, *, at: int = NINE, priority: int = 0, fence: int = 1) -> Occurrence:
    """Return an occurrence that is due."""
    made = Occurrence(user, key, "* * * * *", None, at, fence, due_at=at)
    return replace(made, priority=priority)


def many(user: str, count: int) -> list[Occurrence]:
    """Return occurrences of a user, each of another schedule."""
    return [of(user, f"k{number:05}") for number in range(count)]


def drained(turns: Turns) -> list[Occurrence]:
    """Take all of them, one at a time."""
    turns.close()
    taken = []
    while (occurrence := turns.take()) is not None:
        taken.append(occurrence)
        turns.free(occurrence)
    return taken


def held(turns: Turns, count: int) -> list[str]:
    """Take a number of occurrences, none of which is done. Return their users."""
    found = (turns.take() for _ in range(count))
    return [occurrence.user_id for occurrence in found if occurrence]


def test_t14_one_users_one_does_not_wait_behind_anothers_thousands() -> None:
    turns = Turns([*many("big", 5_000), of("small", "only")], 64)
    assert "small" in held(turns, 2)


def test_t14_a_user_gets_at_most_half_of_the_slots_while_others_wait() -> None:
    turns = Turns([*many("big", 100), *many("other", 100)], 8)
    assert Counter(held(turns, 8)) == {"big": 4, "other": 4}


def test_t14_who_is_alone_gets_all_slots() -> None:
    assert len(held(Turns(many("big", 100), 8), 8)) == 8


def test_t14_nobody_starves() -> None:
    users = [many(f"u{number}", 1 + number * 7) for number in range(40)]
    everything = [occurrence for user in users for occurrence in user]
    taken = drained(Turns(everything, 64))
    assert len(taken) == len(everything)
    first = [o.user_id for o in taken[:40]]
    assert len(set(first)) == 40


def test_j04_ended_leases_come_first_then_priority_then_due_time() -> None:
    retry = of("ada", "retry", at=NINE + 5, fence=2)
    lost = of("ada", "lost", at=NINE + 6, fence=3)
    one = [
        of("ada", "late", at=NINE + 10),
        of("ada", "early"),
        of("ada", "urgent", at=NINE + 9, priority=5),
        of("ada", "never began", at=NINE + 8, fence=2),
        replace(retry, attempts=1, begun_at=NINE),
        replace(lost, attempts=2, begun_at=NINE + 6),
    ]
    order = ["lost", "never began", "urgent", "early", "retry", "late"]
    assert [o.key for o in drained(Turns(one, 4))] == order


def test_one_schedules_go_one_after_another_in_order() -> None:
    turns = Turns([of("ada", "k", at=NINE + n) for n in range(3)], 4)
    first = turns.take()
    assert first is not None
    taken: list[int] = []
    waiter = threading.Thread(target=lambda: taken.append(_nominal(turns.take())))
    waiter.start()
    assert (first.nominal_at, taken) == (NINE, [])
    turns.free(first)
    waiter.join(60)
    assert taken == [NINE + 1]


def _nominal(occurrence: Occurrence | None) -> int:
    return occurrence.nominal_at if occurrence else 0


@pytest.mark.slow
def test_t14_a_pick_costs_the_same_among_thousands() -> None:
    few, lots = cost(many("one", 1_000)), cost(many("one", 20_000))
    assert lots < few * 6
    few, lots = cost(spread_over_users(1_000)), cost(spread_over_users(20_000))
    assert lots < few * 6


def spread_over_users(count: int) -> list[Occurrence]:
    """Return one occurrence of each user."""
    return [of(f"u{number}", "k") for number in range(count)]


def cost(occurrences: list[Occurrence]) -> float:
    """Return the CPU seconds for each occurrence: the least of three runs, as the machine has other
    work.
    """
    return min(cost_once(occurrences) for _ in range(3)) / len(occurrences)


def cost_once(occurrences: list[Occurrence]) -> float:
    """CPU seconds for all of them."""
    turns = Turns(occurrences, 64)
    begin = time.thread_time()
    drained(turns)
    return time.thread_time() - begin


def test_threads_take_each_once() -> None:
    workers = 16
    everything = [*many("big", 500), *spread_over_users(500), *rates("rate", 50)]
    turns, taken = Turns(everything, workers), Counter[Identity]()
    lock = threading.Lock()

    def work() -> None:
        while (occurrence := turns.take()) is not None:
            with lock:
                taken[occurrence.identity] += 1
            turns.free(occurrence)

    threads = [threading.Thread(target=work) for _ in range(workers)]
    for thread in threads:
        thread.start()
    turns.close()
    for thread in threads:
        thread.join(60)
    assert taken == Counter(occurrence.identity for occurrence in everything)


def rates(user: str, count: int) -> Iterable[Occurrence]:
    """Return many occurrences of one schedule."""
    return [of(user, "often", at=NINE + number) for number in range(count)]


def test_what_still_waits_can_be_taken_back() -> None:
    turns = Turns(many("big", 10), 4)
    taken = turns.take()
    assert len(turns.rest()) == 9
    assert taken is not None
    turns.free(taken)
    assert drained(turns) == []


def test_t14_the_users_whose_share_stands_in_line_are_told() -> None:
    turns = Turns([*many("big", 5_000), *many("small", 3)], 64)
    assert turns.full(8, {}) == {"big"}
    assert turns.full(8, {"small": 5, "other": 7}) == {"big", "small"}
    assert held(turns, 64).count("small") == 3
    assert turns.in_line == 4_939
    turns.rest()
    assert (turns.in_line, turns.full(1, {})) == (0, set())


class CountingCondition(threading.Condition):
    """A condition that counts its notes, and says when a thread comes to wait."""

    def __init__(self, lock: threading.RLock) -> None:
        super().__init__(lock)
        self.notes = 0
        self.awaited = threading.Event()

    def wait(self, timeout: float | None = None) -> bool:
        self.awaited.set()
        return super().wait(timeout)

    def notify(self, n: int = 1) -> None:
        self.notes += 1
        super().notify(n)


class CountingThreads(RealThreads):
    """Real threads. The one that waits for the line waits on the second condition."""

    def __init__(self) -> None:
        lock = threading.RLock()
        self.both = threading.Condition(lock), CountingCondition(lock)

    def conditions(self) -> tuple[threading.Condition, CountingCondition]:
        return self.both


def test_who_waits_is_woken_once_and_by_no_delivery_before() -> None:
    threads = CountingThreads()
    turns, counted = Turns(many("ada", 10), 64, threads), threads.both[1]
    waiter = threading.Thread(target=turns.wait_until_fewer, args=(3, 60))
    waiter.start()
    assert counted.awaited.wait(60)
    notes = []
    for _ in range(8):
        taken = turns.take()
        assert taken
        turns.free(taken)
        notes.append(counted.notes)
    waiter.join(60)
    assert notes[:7] == [0] * 7
    assert not waiter.is_alive()
    assert 1 <= notes[7] <= 2


def test_who_waits_until_few_wait_is_woken_then() -> None:
    turns = Turns(many("ada", 10), 64)
    woken = threading.Event()

    def wait() -> None:
        turns.wait_until_fewer(5, 60)
        woken.set()

    thread = threading.Thread(target=wait)
    thread.start()
    held(turns, 5)
    assert not woken.wait(0.05)
    held(turns, 1)
    assert woken.wait(60)
    thread.join()

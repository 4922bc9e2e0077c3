"""The pace that ticks have shown, and the number that they delivered in each minute."""

from duetick.domain.pace import best_pace, count_delivered
from duetick.domain.workers import Worker
from duetick.testing.conformance.samples import MINUTE, NOON, SECOND


def tick(start: int, took: int, kind: str = "tick", **counts: int) -> Worker:
    """The report of a tick that has ended."""
    ended = start + took if took else None
    return Worker("t", kind, start, start + MINUTE, ended, counts=counts)  # type: ignore[arg-type]


def test_a_tick_that_left_work_behind_shows_what_the_stack_can_do() -> None:
    quick = tick(NOON, 2 * SECOND, delivered=300)
    full = tick(NOON + MINUTE, 50 * SECOND, delivered=900, failed=80, behind=20, left=5)
    slower = tick(NOON + 2 * MINUTE, 50 * SECOND, delivered=500, backlog=9)
    found = best_pace([quick, full, slower])
    assert found is not None
    assert (found.a_minute, found.full, found.at) == (1_200, True, NOON + MINUTE)


def test_otherwise_the_quickest_shows_the_least_that_it_can_do() -> None:
    found = best_pace([tick(NOON, 2 * SECOND, delivered=300), tick(NOON, SECOND, delivered=100)])
    assert found is not None
    assert (found.a_minute, found.full) == (9_000, False)


def test_a_tick_with_little_to_do_or_without_an_end_shows_nothing() -> None:
    few = tick(NOON, 10, delivered=63)
    running = tick(NOON, 0, delivered=500)
    background = tick(NOON, SECOND, kind="background", delivered=500)
    assert best_pace([few, running, background]) is None


def test_what_was_delivered_counts_in_the_minute_in_which_its_tick_began() -> None:
    reports = [
        tick(NOON + 2 * SECOND, SECOND, delivered=3),
        tick(NOON + MINUTE + 1, SECOND, delivered=4),
        tick(NOON + MINUTE + 30_000, SECOND, delivered=5),
        tick(NOON + 5 * MINUTE, SECOND, delivered=6),
        tick(NOON, SECOND, kind="background", delivered=7),
    ]
    assert count_delivered(reports, NOON, 3) == [3, 9, 0]

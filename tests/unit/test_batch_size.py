"""The batches of a purge are as large as fits into a few milliseconds, and ticks have the rest."""

from collections.abc import Sequence
from contextlib import closing
from itertools import chain, repeat

import pytest
from duetick.core import purge
from duetick.core.done import Purged
from duetick.core.purge import FIRST, HELD, LEAST, LONGEST_REST, RESTS, BatchSize, purge_within
from duetick.stores import open_store

MOST = 500


def sizes(seconds: Sequence[float], most: int = MOST) -> list[int]:
    """Return the size of the first batch, and of the batch after each one's time."""
    size = BatchSize(most)
    found = [size.limit]
    for took in seconds:
        size.note(took)
        found.append(size.limit)
    return found


def test_j10_a_quick_batch_is_followed_by_one_of_twice_its_size_at_most() -> None:
    assert sizes([HELD / 100, HELD / 100, HELD / 100]) == [FIRST, 2 * FIRST, 4 * FIRST, MOST]


def test_j10_a_batch_that_took_too_long_is_followed_by_half_of_it_at_least() -> None:
    grown = [FIRST, 2 * FIRST, 4 * FIRST]
    slow = [2 * FIRST, FIRST, FIRST // 2, LEAST]
    assert sizes([HELD / 100] * 2 + [HELD * 100] * 4) == [*grown, *slow]


def test_j10_a_batch_of_the_right_size_is_followed_by_its_like() -> None:
    assert sizes([HELD, HELD]) == [FIRST, FIRST, FIRST]


def test_j10_no_batch_is_larger_than_it_may_be() -> None:
    assert sizes([HELD / 100], most=7) == [7, 7]


@pytest.mark.parametrize(("took", "rested"), [(0.02, RESTS * 0.02), (0.9, LONGEST_REST)])
def test_j10_after_each_batch_ticks_have_the_database_for_longer_than_it_took(
    monkeypatch: pytest.MonkeyPatch, took: float, rested: float
) -> None:
    clock, rests = _Clock(), list[float]()
    answers = chain([Purged(retired=5, more=True)] * 2, repeat(Purged()))

    def batch(*_: object, **__: object) -> Purged:
        clock.now += took
        return next(answers)

    monkeypatch.setattr(purge, "purge", batch)
    with closing(open_store("sqlite://")) as store:
        store.migrate()
        purge_within(60.0, store, elapsed=lambda: clock.now, rest=rests.append)
    assert rests == pytest.approx([rested, rested])


class _Clock:
    now = 0.0

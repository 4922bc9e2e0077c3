"""A pause changes only the fields that it must, and is taken back without a trace."""

from dataclasses import replace

import pytest
from duetick.domain.errors import InvalidSchedule
from duetick.domain.pausing import is_paused, keep_pause, pause, resume
from duetick.domain.policies import Policies
from duetick.domain.schedule import Schedule
from hypothesis import given
from hypothesis import strategies as st

NOON = 1_803_902_400_000
PLAIN = Schedule("ada", "digest", "0 12 * * *", "reminders", "send")
instants = st.integers(0, NOON)
ends = st.none() | st.integers(NOON + 1, 2 * NOON)


@given(starts_at=st.none() | instants, until=ends, again=ends)
def test_a_pause_is_taken_back_without_a_trace(
    starts_at: int | None, until: int | None, again: int | None
) -> None:
    before = replace(PLAIN, policies=Policies(starts_at=starts_at))
    once = pause(before, "away", until, NOON)
    assert resume(once) == before
    assert resume(pause(once, "longer", again, NOON)) == before


@given(until=ends)
def test_a_pause_holds_until_its_end(until: int | None) -> None:
    held = pause(PLAIN, "", until, NOON)
    assert is_paused(held, NOON)
    assert is_paused(held, 2 * NOON) is (until is None)


def test_a_start_beyond_the_pause_stays_the_start() -> None:
    late = replace(PLAIN, policies=Policies(starts_at=NOON + 1_000))
    assert pause(late, "", NOON + 10, NOON).policies.starts_at == NOON + 1_000


def test_a_replaced_schedule_is_under_the_pause_of_the_one_before() -> None:
    held = pause(PLAIN, "away", NOON + 10, NOON - 5)
    other = replace(PLAIN, cron="0 6 * * *", policies=Policies(starts_at=7))
    kept = keep_pause(held, other, NOON)
    assert kept.pause
    assert (kept.pause.since, kept.pause.note, kept.pause.starts_at) == (NOON - 5, "away", 7)
    assert resume(kept) == other


def test_a_pause_that_is_over_keeps_nothing_from_firing() -> None:
    held = pause(PLAIN, "", NOON + 10, NOON)
    assert keep_pause(held, PLAIN, NOON + 10) == PLAIN


def test_a_pause_into_the_past_and_a_note_without_end_are_refused() -> None:
    with pytest.raises(InvalidSchedule, match="past"):
        pause(PLAIN, "", NOON, NOON)
    with pytest.raises(InvalidSchedule, match="500"):
        pause(PLAIN, "x" * 501, None, NOON)

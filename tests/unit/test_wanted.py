"""The filters of a history are read, or refused with the right ones."""

import pytest
from duetick.core.histories import Wanted
from duetick.domain.errors import InvalidSchedule
from duetick.domain.states import State


def test_j07_a_filter_is_read_as_the_api_and_as_python_write_it() -> None:
    written = Wanted.read("dead", "2026-12-01T09:00:00Z", 1_796_116_000_000)
    assert written == Wanted(State.DEAD, 1_796_115_600_000, 1_796_116_000_000)
    assert Wanted.read(None, None, None) == Wanted()


def test_j07_a_state_that_no_history_shows_is_refused_with_those_that_it_shows() -> None:
    with pytest.raises(InvalidSchedule) as refused:
        Wanted.read("failed", None, None)
    assert str(refused.value) == (
        "state: expected one of scheduled, queued, processing, succeeded, retrying, dead, "
        "cancelled, deleted, got 'failed'."
    )


@pytest.mark.parametrize("place", [0, 1])
def test_j07_a_time_that_cannot_be_read_is_refused(place: int) -> None:
    since, until = (None, "soon") if place else ("soon", None)
    with pytest.raises(InvalidSchedule, match=r"expected a time like 2026-12-01T09:00:00Z"):
        Wanted.read(None, since, until)

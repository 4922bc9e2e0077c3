"""The occurrences that a decision brings into being."""

from dataclasses import replace

from duetick.domain.firing import Decision, Missed
from duetick.domain.occurrences import fired, leased, poisoned, ranged, spread_ms
from duetick.domain.policies import Misfire, Policies
from duetick.domain.schedule import IndexRow, Occurrence
from duetick.domain.states import Reason, State
from hypothesis import given
from hypothesis import strategies as st

NOON = 1_803_902_400_000
MINUTE = 60_000
DAY = 24 * 60 * MINUTE
ROW = IndexRow("ada", "digest", "0 12 * * *", None, NOON, flow="reminders", timing=5)


def on(
    decided: tuple[int, ...], now: int, policies: Policies | None = None, ahead: int = 0
) -> list[Occurrence]:
    """What a decision to fire these times makes."""
    row = replace(ROW, policies=policies or Policies())
    return list(fired(row, Decision(decided, (), None), now, ahead))


@given(st.text(max_size=20), st.text(max_size=20), st.integers(1, 86_400))
def test_t08_a_spread_lies_in_its_window_and_is_stable(user: str, key: str, window: int) -> None:
    place = spread_ms(user, key, window)
    assert 0 <= place < window * 1_000
    assert spread_ms(user, key, window) == place


def test_t08_without_a_window_there_is_no_spread() -> None:
    assert spread_ms("ada", "digest", 0) == 0


def test_t08_schedules_spread_over_the_whole_window() -> None:
    places = [spread_ms("ada", f"k{number}", 100) // 10_000 for number in range(200)]
    assert set(places) == set(range(10))


def test_t07_a_new_lease_is_a_new_fence() -> None:
    first = on((NOON,), NOON)[0]
    again = leased(first, NOON + MINUTE)
    assert again.fence == first.fence + 1
    assert again.lease_until == NOON + 2 * MINUTE


def test_t06_a_lease_ahead_counts_from_its_due_time() -> None:
    (ahead,) = on((NOON,), NOON - MINUTE, ahead=MINUTE)
    assert (ahead.state, ahead.lease_until) == (State.QUEUED, NOON + MINUTE)


def test_t08_what_is_due_later_waits_without_a_lease() -> None:
    (spread,) = on((NOON,), NOON, Policies(spread=3_600))
    assert (spread.state, spread.fence, spread.lease_until) == (State.SCHEDULED, 0, None)


def test_j09_what_is_caught_up_is_paced() -> None:
    policies = Policies(misfire=Misfire.ALL)
    made = on((NOON, NOON + DAY, NOON + 2 * DAY), NOON + 3 * DAY, policies)
    assert [o.due_at - (NOON + 3 * DAY) for o in made[1:]] == [MINUTE, 2 * MINUTE]
    assert made[0].due_at == NOON


def test_j09_what_is_on_time_is_not_paced() -> None:
    made = on((NOON, NOON + MINUTE), NOON + MINUTE)
    assert [o.due_at for o in made] == [NOON, NOON + MINUTE]


def test_j09_a_range_stands_for_its_times() -> None:
    one = ranged(ROW, Missed(NOON, NOON + 2 * DAY, 3), Reason.MISSED, NOON + 3 * DAY)
    assert (one.nominal_at, one.range_end, one.count) == (NOON, NOON + 2 * DAY, 3)
    assert (one.state, one.reason) == (State.CANCELLED, Reason.MISSED)


def test_g06_poison_is_recorded_with_its_error() -> None:
    one = poisoned(ROW, ValueError("no such zone"), NOON)
    assert (one.state, one.reason, one.error) == (State.DEAD, Reason.POISONED, "no such zone")

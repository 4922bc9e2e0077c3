"""J-09: the decision of what fires, against a naive walk over every nominal time."""

from dataclasses import dataclass, replace

import pytest
from duetick.domain.expression import fires
from duetick.domain.firing import Decision, Times, decide, move_past_mark
from duetick.domain.occurrence import Missed
from duetick.domain.policies import Misfire, Policies
from duetick.domain.schedule import IndexRow
from hypothesis import given
from hypothesis import strategies as st

MINUTE = 60_000
HOUR = 60 * MINUTE
NOON = 1_803_902_400_000

CRONS = ["* * * * *", "*/7 * * * *", "0 * * * *", "rate(90 seconds)", "30 12 * * *"]

ROWS = st.builds(
    lambda cron, policies, back: IndexRow("u", "k", cron, None, NOON - back, policies=policies),
    cron=st.sampled_from(CRONS),
    policies=st.builds(
        Policies,
        misfire=st.sampled_from(Misfire),
        grace=st.sampled_from([0, 1, 60, 150, 3_600]),
        catch_up=st.sampled_from([0, 1, 3, 10]),
        longest_lateness=st.sampled_from([None, 30, 150, 1_800, 7_200]),
    ),
    back=st.integers(0, 3 * HOUR),
)
AHEAD = st.sampled_from([0, 1, 90_000, 120_000, 600_000])


@dataclass(frozen=True)
class Naive:
    """One nominal time after the other is looked at, and nothing is computed."""

    row: IndexRow
    now: int
    ahead: int

    def times(self) -> list[int]:
        row = self.row
        later = fires(row.cron, None, row.next_fire_at, self.now + self.ahead, anchor=row.anchor)
        return [row.next_fire_at, *later]

    def on_time(self, time: int) -> bool:
        return self.now - time <= self.row.policies.grace * 1_000

    def too_old(self, time: int) -> bool:
        longest = self.row.policies.longest_lateness
        return longest is not None and self.now - time > longest * 1_000

    def fired(self) -> list[int]:
        policies = self.row.policies
        young = [t for t in self.times() if self.on_time(t) and not self.too_old(t)]
        late = [t for t in self.times() if t not in young and not self.too_old(t)]
        if policies.misfire is Misfire.SKIP:
            return young
        if policies.misfire is Misfire.ALL:
            return late[len(late) - min(policies.catch_up, len(late)) :] + young
        return young if any(t <= self.now for t in young) else late[-1:] + young

    def missed(self) -> list[int]:
        fired = self.fired()
        return [t for t in self.times() if t not in fired]


def spelled_out(row: IndexRow, missed: Missed) -> list[int]:
    """Return every time of a range."""
    later = fires(row.cron, None, missed.first, missed.last, anchor=row.anchor)
    return [missed.first, *later]


@given(ROWS, AHEAD)
def test_j09_what_fires_is_what_a_naive_walk_fires(row: IndexRow, ahead: int) -> None:
    assert list(decide(row, NOON, ahead).fires) == Naive(row, NOON, ahead).fired()


@given(ROWS, AHEAD)
def test_j09_what_is_missed_is_what_a_naive_walk_misses(row: IndexRow, ahead: int) -> None:
    missed = [t for part in decide(row, NOON, ahead).missed for t in spelled_out(row, part)]
    assert missed == Naive(row, NOON, ahead).missed()


@given(ROWS, AHEAD)
def test_j09_a_range_counts_its_times(row: IndexRow, ahead: int) -> None:
    for part in decide(row, NOON, ahead).missed:
        assert part.count == len(spelled_out(row, part))


@given(ROWS, AHEAD)
def test_j09_what_is_collapsed_is_one_range_at_most(row: IndexRow, ahead: int) -> None:
    assert len(decide(row, NOON, ahead).missed) <= 1


@given(ROWS, AHEAD)
def test_i06_the_next_time_is_the_first_after_the_window(row: IndexRow, ahead: int) -> None:
    after = fires(row.cron, None, NOON + ahead, NOON + ahead + 30 * HOUR)
    assert decide(row, NOON, ahead).next_at == after[0]


@given(ROWS)
def test_j09_a_later_tick_never_fires_what_an_earlier_one_left(row: IndexRow) -> None:
    """Deciding in two steps accounts for the same times as deciding once."""
    half = row.next_fire_at + (NOON - row.next_fire_at) // 2
    first = decide(row, half)
    assert first.next_at is not None
    then = decide(replace(row, next_fire_at=first.next_at), max(NOON, first.next_at))
    assert not set(first.fires) & set(then.fires)


def row_at(cron: str, at: int = NOON, **policies: object) -> IndexRow:
    return IndexRow("u", "k", cron, None, at, policies=Policies.of(policies))


def test_i03_on_time_the_row_fires_for_the_time_it_was_due() -> None:
    assert decide(row_at("0 12 * * *"), NOON + 30_000) == Decision((NOON,), (), NOON + 24 * HOUR)


def test_c04_a_single_time_fires_and_is_done() -> None:
    assert decide(row_at("at(2027-03-01T12:00:00)"), NOON) == Decision((NOON,), (), None)


def test_j09_a_single_time_that_is_late_still_fires_by_default() -> None:
    assert decide(row_at("at(2027-03-01T12:00:00)"), NOON + HOUR).fires == (NOON,)


def test_j09_a_single_time_that_is_late_may_be_skipped() -> None:
    decision = decide(row_at("at(2027-03-01T12:00:00)", misfire="skip"), NOON + HOUR)
    assert decision == Decision((), (Missed(NOON, NOON, 1),), None)


def test_i16_a_row_fires_for_a_time_that_its_expression_does_not_name() -> None:
    """Rows may be set by hand: their time is the nominal time."""
    assert decide(row_at("0 6 * * *"), NOON).fires == (NOON,)


@pytest.mark.parametrize(("cron", "zone"), [("nonsense", None), ("0 12 * * *", "Mars/Olympus")])
def test_i13_a_row_that_cannot_be_read_raises_a_value_error(cron: str, zone: str | None) -> None:
    with pytest.raises(ValueError, match=r"."):
        decide(replace(row_at(cron), timezone=zone), NOON)


def test_t10_a_year_of_minutes_is_one_decision() -> None:
    year = 365 * 24 * HOUR
    decision = decide(row_at("* * * * *", NOON - year), NOON)
    assert len(decision.fires) == 3
    assert decision.missed[0].count == 365 * 24 * 60 - 2


def test_t09_times_of_an_interval_count_from_their_anchor() -> None:
    times = Times("rate(7 minutes)", None, NOON, Policies())
    assert times.after(NOON) == NOON + 7 * MINUTE
    assert times.between(NOON, NOON + 20 * MINUTE) == [NOON + 7 * MINUTE, NOON + 14 * MINUTE]
    assert times.newest(NOON, NOON + 20 * MINUTE) == NOON + 14 * MINUTE
    assert times.count(NOON, NOON + 21 * MINUTE) == 3


def test_j13_a_row_that_was_never_claimed_is_as_it_is() -> None:
    row = row_at("* * * * *")
    assert move_past_mark(row, None) is row
    assert move_past_mark(row, NOON - 1) is row


def test_j13_a_row_that_was_set_back_goes_on_after_the_mark() -> None:
    moved = move_past_mark(row_at("* * * * *", NOON - HOUR), NOON)
    assert moved == row_at("* * * * *", NOON + MINUTE)


def test_j13_a_single_time_that_was_set_back_never_fires_again() -> None:
    assert move_past_mark(row_at("at(2027-03-01T12:00:00)"), NOON) is None

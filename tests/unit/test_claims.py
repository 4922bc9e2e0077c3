"""The occurrences that a claim makes, decided once for rows that are alike."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import pytest
from duetick.domain import claims
from duetick.domain.claims import (
    DueRow,
    Template,
    Templates,
    due_row,
    fires_of,
    name_for,
    spread_ms,
)
from duetick.domain.firing import Decision, Times, decide
from duetick.domain.group_pauses import Hole
from duetick.domain.occurrence import poison
from duetick.domain.policies import Misfire, Policies
from duetick.domain.schedule import IndexRow, Occurrence
from duetick.domain.states import Reason, State
from hypothesis import given
from hypothesis import strategies as st

NOON = 1_803_902_400_000
MINUTE = 60_000
HOUR = 60 * MINUTE
DAY = 24 * HOUR
ROW = IndexRow("ada", "digest", "0 12 * * *", None, NOON, flow="reminders", redefined_at=5)


def on(
    decided: tuple[int, ...], now: int, policies: Policies | None = None, ahead: int = 0
) -> list[Occurrence]:
    """Return the occurrences of a decision to fire these times."""
    row = replace(ROW, policies=policies or Policies())
    return list(fires_of(row, Decision(decided, (), None), now, ahead))


def claim(row: IndexRow, now: int, mark: int | None = None, ahead: int = 0) -> Template:
    return Templates(now, ahead).of(due_row(row, mark))


def times(made: Sequence[Occurrence]) -> list[int]:
    return [one.nominal_at for one in made]


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


def test_t07_what_fires_is_leased_under_the_first_fence() -> None:
    (first,) = on((NOON,), NOON)
    assert (first.fence, first.lease_until) == (1, NOON + MINUTE)


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


def test_g06_poison_is_recorded_with_its_error() -> None:
    one = poison(ROW, ValueError("no such zone"), NOON)
    assert (one.state, one.reason, one.error) == (State.DEAD, Reason.POISONED, "no such zone")


def test_g06_an_error_that_no_database_keeps_is_kept_without_what_is_in_its_way() -> None:
    assert (
        poison(ROW, ValueError("nul\0 and \ud800"), NOON).error
        == "nul\N{REPLACEMENT CHARACTER} and ?"
    )


def test_i06_a_claim_takes_the_row_to_its_next_time_and_the_mark_with_it() -> None:
    template = claim(ROW, NOON + 1)
    assert (times(template.made), template.next_at, template.mark) == ([NOON], NOON + DAY, NOON)


def test_t10_after_downtime_the_mark_is_the_newest_time_that_is_decided_about() -> None:
    template = claim(ROW, NOON + 3 * DAY + HOUR)
    assert template.mark == NOON + 3 * DAY
    missed = [one for one in template.made if one.range_end is not None]
    assert [(one.nominal_at, one.count) for one in missed] == [(NOON, 3)]
    assert template.next_at == NOON + 4 * DAY


def test_j13_a_row_that_was_set_back_behind_its_mark_fires_nothing() -> None:
    template = claim(ROW, NOON + HOUR, mark=NOON)
    assert (template.made, template.next_at, template.mark) == ((), NOON + DAY, NOON)


def test_i13_a_row_that_cannot_be_read_is_poisoned() -> None:
    template = claim(replace(ROW, cron="never"), NOON)
    assert (template.next_at, template.mark) == (None, NOON)
    assert "has 1 field," in (template.error or "")
    assert [one.reason for one in template.made] == [Reason.POISONED]


def test_i11_rows_that_are_alike_are_decided_once_whatever_their_anchors(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    decided: list[IndexRow] = []

    def counted(row: IndexRow, now: int, ahead: int, holes: tuple[Hole, ...]) -> Decision:
        decided.append(row)
        return decide(row, now, ahead, holes)

    monkeypatch.setattr(claims, "decide", counted)
    templates = Templates(NOON + 1, 0)
    rows = [IndexRow("ada", str(n), "0 12 * * *", None, NOON, anchor=n) for n in range(50)]
    assert len({templates.of(due_row(row, None)) for row in rows}) == 1
    assert len(decided) == 1


def test_t09_rates_are_decided_each_by_its_own_anchor() -> None:
    templates = Templates(NOON + 1, 0)
    rows = [IndexRow("ada", "k", "RATE(7 minutes)", None, NOON, anchor=n) for n in (0, 5)]
    found = [templates.of(due_row(row, None)) for row in rows]
    assert [one.next_at for one in found] == [Times.of(row).after(NOON + 1) for row in rows]
    assert found[0] is not found[1]


def test_t08_rows_that_spread_are_decided_each_by_its_own_name() -> None:
    templates = Templates(NOON + 1, 0)
    spread = Policies(spread=3_600)
    rows = [replace(ROW, key=f"k{n}", policies=spread) for n in range(5)]
    due = [templates.of(due_row(row, None)).made[0].due_at for row in rows]
    assert due == [NOON + spread_ms("ada", f"k{n}", 3_600) for n in range(5)]


def test_i13_what_cannot_be_read_is_told_each_time() -> None:
    templates = Templates(NOON, 0)
    for _ in range(2):
        template = templates.of(due_row(IndexRow("ada", "k", "never", None, NOON), None))
        assert "has 1 field," in (template.error or "")


def test_i03_an_occurrence_of_a_template_has_its_own_rows_name_and_definition() -> None:
    row = replace(ROW, key="other", timezone="Europe/Berlin", flow="mail", redefined_at=9)
    made = replace(poison(ROW, ValueError("?"), NOON), labels={"a": "b"})
    named = name_for(due_row(row, None), made, "occ_7")
    own = replace(
        made, key="other", timezone="Europe/Berlin", flow="mail", redefined_at=9, id="occ_7"
    )
    assert named == own


@given(st.integers(0, 5))
def test_j13_a_template_within_a_room_fires_the_oldest_and_leaves_the_rest_due(room: int) -> None:
    """Three times are caught up, behind a range of the collapsed ones."""
    policies = Policies(misfire=Misfire.ALL, catch_up=3)
    whole = claim(replace(ROW, policies=policies), NOON + 5 * DAY + HOUR)
    within = whole.within(room)
    fires = [one for one in whole.made if one.range_end is None]
    ranges = [one for one in whole.made if one.range_end is not None]
    assert ranges
    assert [*within.made] == [*ranges, *fires[:room]]
    if room < len(fires):
        assert within.next_at == fires[room].nominal_at
        assert within.mark == fires[room].nominal_at - 1
    else:
        assert within is whole


USUALLY = st.builds(
    Policies,
    misfire=st.sampled_from(Misfire),
    grace=st.sampled_from([0, 150, 3_600]),
    longest_lateness=st.sampled_from([None, None, 600, 7_200]),
    spread=st.sampled_from([0, 0, 0, 60]),
    ends_at=st.sampled_from([None, None, NOON, NOON + MINUTE, NOON + 90 * DAY]),
)
SELDOM = (
    "not a cron",
    "0 0 31 2 1",
    "at(2027-03-01T12:00:00)",
    "rate(7 minutes)",
    "days(mon 09:00)",
)
OFTEN = ("* * * * *", "*/5 * * * *", "0 * * * *", "30 9 * * *", "0 0 1 * *", "15 2 * * SUN")
DUE = st.builds(
    lambda cron, zone, late, policies, mark: (
        *("ann", "k", cron, zone, NOON - late, "f", NOON - DAY, 0),
        *(policies.dump(), None if mark is None else NOON - late - mark),
    ),
    st.sampled_from(OFTEN + SELDOM),
    st.sampled_from([None, "Europe/Berlin", "Australia/Lord_Howe", "Asia/Kathmandu"]),
    st.integers(-10, 100).map(lambda minutes: minutes * MINUTE)
    | st.integers(-5 * MINUTE, 90 * DAY),
    st.just(Policies()) | USUALLY,
    st.none() | st.integers(-DAY, DAY),
)


@given(st.lists(DUE, max_size=30), st.sampled_from([0, 2 * MINUTE, 10 * MINUTE]))
def test_j09_the_usual_decision_is_that_of_the_template(rows: list[DueRow], ahead: int) -> None:
    """That holds after any other rows: the known facts of an expression grow with them."""
    templates = Templates(NOON, ahead)
    for row in rows:
        if row[4] > NOON + ahead:
            continue  # it is not due
        usual, template = templates.usual(row), Templates(NOON, ahead).of(row)
        if usual is not None:
            made, next_at, mark = usual
            assert (next_at, mark) == (template.next_at, template.mark)
            named = [[name_for(row, one, "") for one in each] for each in (made, template.made)]
            assert named[0] == named[1]


def test_j09_a_backlog_of_many_times_is_decided_by_few_looks() -> None:
    templates, looked = Templates(NOON, 0), 0
    for late in (7, 59, 3, 42, *range(60)):
        row = due_row(IndexRow("ann", "k", "0 3 * * *", None, NOON - late * MINUTE), None)
        before = [*vars_of(templates)]
        assert templates.usual(row) is not None
        looked += before != [*vars_of(templates)]
    assert looked == 2


def vars_of(templates: Templates) -> Iterator[tuple[int, int]]:
    """Return the known facts of each expression."""
    return ((one.since, one.busy) for one in templates._quiet.values())

"""C-02: the module against the walk of the clock, and against a third reader.

`python -m tests.benchmarks.oracle` is the long run: every change of every zone.
"""

import datetime
import inspect
import re
from bisect import bisect_right
from random import Random

import pytest
from cronsim import CronSim
from duetick.domain.expression import count, fires, newest, upcoming
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.expression import cases, oracle
from tests.unit.expression.cases import Gap, Repeat
from tests.unit.expression.times import ms

FLOOR = 15_000
ODD = (
    ("Pacific/Apia", "2011-12-30T10:00"),  # a day is skipped
    ("Pacific/Kwajalein", "1993-08-21T12:00"),  # likewise
    ("Pacific/Kwajalein", "1969-09-30T13:00"),  # 23 hours are repeated
    ("Antarctica/Troll", "2026-03-29T01:00"),  # two hours
    ("Antarctica/Troll", "2026-10-25T01:00"),
    ("Australia/Lord_Howe", "2026-04-04T15:00"),  # half an hour is repeated
    ("Australia/Lord_Howe", "2026-10-03T15:30"),  # half an hour is skipped
    ("Pacific/Niue", "1964-07-01T11:20"),  # 20 minutes are skipped
    ("Asia/Brunei", "1941-12-13T15:40"),  # 20 minutes are repeated
    ("Asia/Kathmandu", "1985-12-31T18:30"),  # a quarter of an hour
    ("Asia/Pyongyang", "2018-05-04T15:00"),
)


@pytest.mark.slow
def test_c02_a_short_walk_at_every_clocks_changes_of_one_year_finds_nothing_wrong() -> None:
    random, tally = Random(2027), cases.Tally()
    for names in cases.clocks():
        for change in oracle.changes(names[0], cases.second(2027), cases.second(2028)):
            cases.check_change(random, names, change, tally, wanted=2, shaped=4)
    assert tally.wrong == []
    assert tally.cases >= FLOOR


@pytest.mark.slow
@pytest.mark.parametrize(("name", "text"), ODD)
def test_c02_changes_of_odd_sizes_agree_with_the_walk(name: str, text: str) -> None:
    random, tally, change = Random(7), cases.Tally(), ms(text) // 1000
    assert list(oracle.changes(name, change - 86_400, change + 86_400)) == [change]
    cases.check_change(random, [name], change, tally, wanted=25)
    assert tally.wrong == []


@pytest.mark.slow
@pytest.mark.parametrize("name", ["Europe/Berlin", "Australia/Lord_Howe", "America/Nuuk"])
@pytest.mark.parametrize("year", [2049, 2050, 2100, 2198])
def test_c02_changes_of_far_years_agree_with_the_walk(name: str, year: int) -> None:
    random, tally = Random(year), cases.Tally()
    for change in oracle.changes(name, cases.second(year), cases.second(year + 1)):
        cases.check_change(random, [name], change, tally, wanted=6)
    assert tally.wrong == []
    assert tally.changes == 2


@pytest.mark.parametrize("name", ["Europe/Berlin", "Australia/Lord_Howe", "Pacific/Apia"])
def test_c02_from_the_near_years_into_the_far_ones_no_fire_is_lost(name: str) -> None:
    begin, end = cases.second(2049, 12, 25), cases.second(2050, 1, 5)
    for text in ("0 */6 * * *", "30 2 * * *", "0 0 1 * *", "0 12 * * 1-5"):
        walked = oracle.walk(oracle.Expression(text), oracle.clock(name, begin, end))
        assert fires(text, name, begin * 1000, end * 1000) == walked
        assert count(text, name, begin * 1000, end * 1000) == len(walked)
        assert newest(text, name, begin * 1000, end * 1000) == walked[-1]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("Africa/Monrovia", "1972-01-07T00:44:30"),
        ("Europe/Amsterdam", "1937-06-30T22:00"),
        ("America/Denver", "1883-11-18T19:00"),  # four seconds are repeated
    ],
)
def test_c02_clocks_with_seconds_agree_with_a_walk_second_by_second(name: str, text: str) -> None:
    random, tally = Random(8), cases.Tally()
    for change in oracle.changes(name, ms(text) // 1000 - 86_400, ms(text) // 1000 + 86_400):
        cases.check_change(random, [name], change, tally, wanted=8, step=1)
    assert tally.wrong == []


def test_c03_rare_dates_agree_with_the_calendar_day_by_day() -> None:
    random, tally = Random(9), cases.Tally()
    for _ in range(60):
        cases.check_dates(random, tally)
    assert tally.wrong == []


def _field(low: int, high: int) -> st.SearchStrategy[str]:
    number = st.integers(low, high)
    item = st.one_of(
        st.just("*"),
        number.map(str),
        st.tuples(number, number).map(lambda pair: f"{min(pair)}-{max(pair)}"),
        st.tuples(number, st.integers(1, high)).map(lambda pair: f"{pair[0]}/{pair[1]}"),
        st.integers(1, high).map(lambda step: f"*/{step}"),
    )
    return st.lists(item, min_size=1, max_size=3).map(",".join)


@pytest.mark.slow
@settings(max_examples=60)
@given(
    st.tuples(_field(0, 59), _field(0, 23), _field(1, 28), _field(1, 12), _field(0, 6)),
    st.sampled_from(
        ["UTC", "Europe/Berlin", "Australia/Lord_Howe", "Africa/Casablanca", "Asia/Gaza"]
    ),
    st.integers(cases.second(2024), cases.second(2030)),
    st.sampled_from(cases.OPTIONS),
)
def test_c01_any_expression_from_any_instant_agrees_with_the_walk(
    fields: tuple[str, ...], zone: str, start: int, options: tuple[Gap, Repeat]
) -> None:
    gap, repeat = options
    text, start = " ".join(fields), start // 60 * 60
    end = start + 3 * 86_400
    # The walk begins a day early, so that it has seen what the clock may repeat.
    steps = oracle.clock(zone, start - 86_400, end)
    walked = oracle.walk(oracle.Expression(text), steps, gap, repeat)
    walked = walked[bisect_right(walked, start * 1000) :]
    ours = upcoming(text, zone, start * 1000, 10, gap=gap, repeat=repeat)
    assert [time for time in ours if time <= end * 1000] == walked[:10]


THIRD = (
    *("*/5 * * * *", "0 * * * *", "*/20 2 * * *", "30 * * * *", "15 */2 * * *", "30 2 * * *"),
    *("0 3 * * *", "0,30 0-4 * * *", "5 0 * * *", "30 1 * * 0", "45 23 * * *", "0 2 L * *"),
)


def _explained(text: str, zone: str, change: int, after: int, theirs: list[int]) -> str | None:
    """Return the known mistake of cronsim's that explains a difference."""
    before, behind = (oracle.local_second(zone, change + at) for at in (-1, 0))
    repeated = behind < before
    if oracle.Expression(text).fixed and repeated and theirs[0] <= after:
        return "asked within a repeat, it answers with the first pass, which is over"
    if not oracle.Expression(text).fixed and (behind % 3600 or (behind - before - 1) % 3600):
        return "it loses fires in real time where a change is not from full hour to full hour"
    return None


@pytest.mark.slow
def test_c02_a_third_reader_differs_only_where_it_is_known_to_be_wrong() -> None:
    explanations: dict[str | None, int] = {}
    compared = 0
    for names in cases.clocks():
        zone = names[0]
        for change in oracle.changes(zone, cases.second(2026), cases.second(2027)):
            for text in THIRD:
                for ahead in (1_807, -1_800):
                    ours, theirs, after = _both(text, zone, change - ahead)
                    compared += 1
                    if ours != theirs:
                        why = _explained(text, zone, change, after, theirs)
                        explanations[why] = explanations.get(why, 0) + 1
    assert None not in explanations
    assert len(explanations) == 2
    assert sum(explanations.values()) < compared / 50


def _both(text: str, zone: str, start: int) -> tuple[list[int], list[int], int]:
    sim = CronSim(text, datetime.datetime.fromtimestamp(start, oracle.zone(zone)))
    theirs = [int(next(sim).timestamp() * 1000) for _ in range(3)]
    return upcoming(text, zone, start * 1000, 3), theirs, start * 1000


@pytest.mark.slow
@pytest.mark.parametrize("question", ["next_fire", "fires", "count", "newest", "targets"])
def test_c02_the_oracle_itself_sees_a_wrong_answer(
    question: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    tally, right = cases.Tally(), getattr(cases, question)
    for change in ("2026-03-29T01:00", "2026-10-25T01:00"):
        cases.check_change(Random(3), ["Europe/Berlin"], ms(change) // 1000, tally, wanted=4)
    assert tally.wrong == []
    monkeypatch.setattr(cases, question, lambda *a, **k: _wrong(right(*a, **k)))
    for change in ("2026-03-29T01:00", "2026-10-25T01:00"):
        cases.check_change(Random(3), ["Europe/Berlin"], ms(change) // 1000, tally, wanted=4)
    kind = {"next_fire": "next"}.get(question, question)
    assert tally.wrong
    assert all(wrong.startswith(f"{kind} of ") for wrong in tally.wrong)


def _wrong(answer: object) -> object:
    if isinstance(answer, list | tuple):
        return answer[1:] or [1]
    return answer + 60_000 if isinstance(answer, int) else 0


def test_c02_the_oracle_imports_nothing_from_the_module_under_test() -> None:
    source = inspect.getsource(oracle)
    assert re.findall(r"^(?:from|import) (\w+)", source, re.MULTILINE)
    assert "duetick" not in source

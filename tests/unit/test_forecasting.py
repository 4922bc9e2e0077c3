"""The occurrences due in each minute ahead: rows that fire alike count as each of them alone."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from duetick.domain import forecasting
from duetick.domain.alike import Alike, Waits, make_alike
from duetick.domain.claims import spread_ms
from duetick.domain.firing import Times
from duetick.domain.forecasting import Outlook
from duetick.domain.group_pauses import GroupPause, Pauses
from duetick.domain.limits import Limit, Limits
from duetick.domain.minutes import MinuteSpan
from duetick.domain.occurrence import IndexRow
from duetick.domain.policies import Misfire, Policies
from duetick.testing.conformance.samples import DAY, HOUR, MINUTE, NOON, SECOND

DAY_AHEAD = MinuteSpan(NOON, NOON + DAY)
NEXT_DAY = MinuteSpan(NOON + DAY, NOON + 2 * DAY)


def at(hour: int, minute: int = 0, day: int = 0) -> int:
    """Return the number of a minute, counted from noon."""
    return (day * 24 + hour - 12) * 60 + minute


def row(
    cron: str, zone: str | None = None, key: str = "k", policies: Policies | None = None
) -> IndexRow:
    """Return a row as a put makes it just before noon."""
    chosen = policies or Policies()
    first = Times(cron, zone, NOON, chosen).after(NOON)
    assert first is not None
    return IndexRow("ada", key, cron, zone, first, "flow", NOON, NOON, chosen)


def outlook(
    rows: Sequence[Alike | IndexRow],
    span: MinuteSpan = DAY_AHEAD,
    pauses: Sequence[GroupPause] = (),
    waiting: Sequence[Waits] = (),
    limits: Sequence[Limit] = (),
) -> Outlook:
    """Return the outlook of a span, as of noon."""
    made = Outlook(span, NOON, Pauses(tuple(pauses)), Limits(tuple(limits)))
    made.add(one if isinstance(one, Alike) else make_alike(one, None) for one in rows)
    made.add_waiting(waiting)
    made.finish()
    return made


def minutes(made: Outlook, place: int = 0) -> dict[int, int]:
    """Return the minutes in which anything is due."""
    return {n: due for n, due in enumerate(made.sums[place].due) if due}


def test_each_fire_of_a_cron_counts_in_its_minute() -> None:
    rows = [row("30 9 * * *"), row("0 14 * * *"), row("0 9 * * *", "Europe/Berlin")]
    assert minutes(outlook(rows)) == {at(14): 1, at(8, day=1): 1, at(9, 30, day=1): 1}


@pytest.mark.parametrize(
    ("cron", "policies"),
    [
        ("0 9 * * *", Policies()),
        ("*/20 * * * *", Policies(ends_at=NOON + 5 * HOUR)),
        ("rate(7 minutes)", Policies()),
        ("rate(90 seconds)", Policies()),
        ("rate(1 hour)", Policies(ends_at=NOON + 5 * HOUR)),
        ("0 9 * * *", Policies(max_runs=2)),
        ("rate(1 hour)", Policies(max_runs=3)),
        ("at(2027-03-01T15:00:30)", Policies()),
    ],
)
def test_a_thousand_rows_that_fire_alike_count_as_each_alone(cron: str, policies: Policies) -> None:
    one = make_alike(row(cron, policies=policies), None)
    together = outlook([one._replace(number=1_000)])
    alone = outlook([one] * 1_000)
    assert minutes(together) == minutes(alone) != {}
    assert together.totals == alone.totals
    assert together.sums[0].movable == together.sums[0].due


def test_rates_of_one_phase_fire_in_the_same_minutes_whatever_their_anchors() -> None:
    first = row("rate(5 minutes)")
    rows = [replace(first, next_fire_at=first.next_fire_at + n * SECOND) for n in range(0, 60, 7)]
    assert minutes(outlook(rows)) == dict.fromkeys(range(5, 1_440, 5), 9)


def test_names_say_where_in_the_spread_rows_are_due() -> None:
    spread = Policies(spread=3_600)
    rows = [row("0 14 * * *", key=f"k{n}", policies=spread) for n in range(50)]
    first = make_alike(rows[0], None)
    named = first._replace(number=50, names=tuple((one.user_id, one.key) for one in rows))
    places = [at(14) + spread_ms("ada", one.key, 3_600) // MINUTE for one in rows]
    wanted = {place: places.count(place) for place in places}
    assert minutes(outlook([named])) == minutes(outlook(rows)) == wanted
    assert sum(outlook([named]).sums[0].movable) == 0


def test_rows_without_names_are_spread_evenly() -> None:
    spread = Policies(spread=600)
    copies = make_alike(row("0 14 * * *", policies=spread), None)._replace(number=25, names=())
    assert list(minutes(outlook([copies])).values()) == [2, 3] * 5


@pytest.mark.parametrize(
    ("cron", "spread", "wanted"),
    [
        ("at(2027-03-01T14:00:30)", 90, {at(14): 333, at(14, 1): 667}),
        ("at(2027-03-01T14:00:30)", 20, {at(14): 1_000}),
        ("at(2027-03-01T14:00:59)", 120, {at(14): 8, at(14, 1): 500, at(14, 2): 492}),
        ("at(2027-03-02T11:59:00)", 120, {at(11, 59, day=1): 500}),
    ],
)
def test_each_minute_has_its_share_of_a_spread(
    cron: str, spread: int, wanted: dict[int, int]
) -> None:
    one = make_alike(row(cron, policies=Policies(spread=spread)), None)
    copies = one._replace(number=1_000, names=())
    assert minutes(outlook([copies])) == wanted


@pytest.mark.parametrize("cron", ["*/7 * * * *", "rate(11 minutes)", "rate(90 seconds)"])
def test_copies_are_due_as_often_as_as_many_names(cron: str) -> None:
    """The spreads of several fires overlap, or reach over an end of the span."""
    chosen = Policies(spread=1_800)
    rows = [row(cron, key=f"k{n}", policies=chosen) for n in range(2_000)]
    copies = make_alike(rows[0], None)._replace(number=2_000, names=())
    even, named = outlook([copies], NEXT_DAY), outlook(rows, NEXT_DAY)
    assert even.totals["fires"] == sum(even.sums[0].due)
    assert abs(even.totals["fires"] - named.totals["fires"]) < named.totals["fires"] / 100
    pairs = zip(even.sums[0].due, named.sums[0].due, strict=True)
    assert all(abs(one - other) < 130 for one, other in pairs), "six times the deviation"


@pytest.mark.parametrize("runs", [3, 23, 24, 25, 40, 1_000_000])
@pytest.mark.parametrize("cron", ["30 * * * *", "rate(1 hour)"])
def test_runs_before_the_span_are_spent_in_it(cron: str, runs: int) -> None:
    """However far ahead the span is, the runs until then are counted, not walked."""
    one = row(cron, policies=Policies(max_runs=runs))
    every = Times(cron, None, NOON, Policies()).between(NOON, NEXT_DAY.last)
    wanted = [place for place in every[:runs] if NEXT_DAY.has(place)]
    found = outlook([one], NEXT_DAY)
    assert [NEXT_DAY.since + n * MINUTE for n in minutes(found)] == wanted
    assert found.totals["fires"] == len(wanted)
    years = MinuteSpan(NOON + 3_000 * DAY, NOON + 3_001 * DAY)
    assert outlook([one], years).totals["fires"] == (24 if runs == 1_000_000 else 0)


def test_a_spread_moves_fires_into_a_span_that_begins_later() -> None:
    late = Policies(spread=86_400)
    rows = [row("0 13 * * *", key=f"k{n}", policies=late) for n in range(40)]
    both = [sum(outlook(rows, span).sums[0].due) for span in (DAY_AHEAD, NEXT_DAY)]
    assert both[0] < 40
    assert both[1] == 40


def test_a_fire_of_before_the_span_is_not_in_it() -> None:
    assert minutes(outlook([row("0 13 * * *")], NEXT_DAY)) == {at(13): 1}
    assert minutes(outlook([row("at(2027-03-01T15:00:00)")], NEXT_DAY)) == {}


def test_a_row_fires_for_its_next_time_whatever_named_that() -> None:
    odd = IndexRow("ada", "k", "0 9 * * *", None, NOON + 3 * HOUR)
    assert minutes(outlook([odd])) == {at(15): 1, at(9, day=1): 1}
    rate = IndexRow("ada", "k", "rate(12 hours)", None, NOON + 3 * HOUR + MINUTE)
    assert minutes(outlook([rate])) == {at(15, 1): 1, at(0, day=1): 1}


def test_what_is_due_by_now_is_due_now_as_its_misfire_policy_says() -> None:
    for policies, wanted in (
        (Policies(), {0: 1}),
        (Policies(misfire=Misfire.SKIP), {}),
        (Policies(misfire=Misfire.ALL, catch_up=3), {0: 1, 1: 1, 2: 1}),
    ):
        late = replace(
            row("30 * * * *", policies=policies), next_fire_at=NOON - 5 * HOUR - HOUR // 2
        )
        made = minutes(outlook([late]))
        later = {n for n in made if n >= 30}
        assert {n: due for n, due in made.items() if n < 30} == wanted
        assert later == set(range(30, 1_440, 60))


def test_runs_that_are_spent_or_wait_leave_fewer() -> None:
    one = make_alike(row("0 * * * *", policies=Policies(max_runs=5)), None, spent=3)
    assert minutes(outlook([one])) == {60: 1, 120: 1}
    assert minutes(outlook([one._replace(spent=5)])) == {}


def test_a_pause_leaves_times_out_and_they_are_counted() -> None:
    pause = GroupPause("flow:flow", NOON - HOUR, NOON + 6 * HOUR)
    made = outlook([row("0 * * * *"), row("rate(1 hour)")], pauses=[pause])
    assert sorted(minutes(made)) == list(range(360, 1_440, 60))
    assert made.totals["paused"] == 10
    forever = GroupPause("all", NOON)
    made = outlook([row("0 * * * *"), row("rate(1 hour)")], pauses=[forever])
    assert (minutes(made), made.totals["paused"]) == ({}, 46)


def test_a_pause_holds_what_has_begun_and_leaves_out_what_has_not() -> None:
    pause = GroupPause("flow:flow", NOON, NOON + HOUR)
    waiting = [
        Waits(1, NOON + 10 * MINUTE, "flow", kept=True),
        Waits(2, NOON + 10 * MINUTE, "flow"),
        Waits(4, NOON + 10 * MINUTE, "other", job=True),
    ]
    made = outlook([], pauses=[pause], waiting=waiting)
    assert minutes(made) == {10: 4, 60: 1}
    assert made.totals == {"waiting": 1, "jobs": 4, "paused": 2}
    forever = outlook([], pauses=[GroupPause("flow:flow", NOON)], waiting=waiting[:1])
    assert (minutes(forever), forever.totals["paused"]) == ({}, 1)


def test_what_is_overdue_waits_now() -> None:
    made = outlook([], waiting=[Waits(3, NOON - DAY, "flow")])
    assert minutes(made) == {0: 3}


def test_rows_that_cannot_be_read_are_counted_and_keep_nothing_from_being_counted() -> None:
    bad = IndexRow("ada", "bad", "no cron", None, NOON + HOUR)
    lost = IndexRow("ada", "lost", "0 9 * * *", "Mars/Base", NOON + HOUR)
    made = outlook([bad, row("0 14 * * *"), lost])
    assert minutes(made) == {at(14): 1}
    assert made.totals == {"fires": 1, "schedules": 1, "unreadable": 2}


def test_each_limit_has_the_sums_of_its_scope() -> None:
    limits = [Limit("user:ada"), Limit("flow:other"), Limit("action:flow/mail")]
    mail = make_alike(row("0 14 * * *"), None, action="mail")
    rows = [mail, mail._replace(action="call"), mail._replace(flow="other", user_id="bob")]
    made = outlook(rows, limits=limits)
    assert [minutes(made, place) for place in range(4)] == [
        {at(14): 3},
        {at(14): 2},
        {at(14): 1},
        {at(14): 1},
    ]


def test_however_little_is_remembered_the_sums_are_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    spread = Policies(spread=900)
    crons = ("0 9 * * *", "*/7 * * * *", "rate(11 minutes)", "15 14 * * MON")
    rows = [
        row(cron, key=f"k{n}", policies=policies)
        for n, cron in enumerate(crons * 3)
        for policies in (Policies(), spread)
    ]
    whole = outlook(rows)
    monkeypatch.setattr(forecasting, "MOST_GROUPS", 1)
    monkeypatch.setattr(forecasting, "MOST_FIRES", 1)
    piecemeal = outlook(rows)
    assert piecemeal.sums == whole.sums
    assert piecemeal.totals == whole.totals


def test_a_changed_clock_counts_as_it_fires() -> None:
    eve = int(datetime(2026, 10, 24, 12, tzinfo=UTC).timestamp()) * 1_000
    span = MinuteSpan(eve, eve + DAY)

    def due(cron: str, **policies: str) -> list[int]:
        chosen = Policies(**policies)  # type: ignore[arg-type]
        first = Times(cron, "Europe/Berlin", 0, chosen).after(eve)
        made = Outlook(span, eve)
        made.add(
            [
                make_alike(
                    IndexRow("a", "k", cron, "Europe/Berlin", first or 0, policies=chosen), None
                )
            ]
        )
        made.finish()
        return [n for n, due in enumerate(made.sums[0].due) if due]

    assert due("30 2 * * *") == [750]
    assert due("30 2 * * *", repeat="both") == [750, 810]

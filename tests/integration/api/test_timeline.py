"""The timeline of a schedule over the API: each nominal time of a span, and why."""

from typing import Final

import pytest
from duetick.api.views import TimelineView
from duetick.client import Client, Fields
from duetick.core.timeline import MOST_SHOWN
from duetick.domain.schedule import IndexRow
from duetick.operators import Operators

from tests.integration.api.asking import DAY, HELLO, HOUR, MINUTE, refused
from tests.integration.local_product import NINE, Product

SPAN: Final = {"since": "2026-12-01T00:00:00Z", "until": "2026-12-04T00:00:00Z"}
HOURLY: Final[Fields] = HELLO | {"cron": "@hourly"}


def outcomes(found: TimelineView) -> list[tuple[str, str, object, int]]:
    """Time, state, reason and count of each entry, the oldest first."""
    entries = found["entries"][::-1]
    return [(one["at"], one["state"], one["reason"], one["count"]) for one in entries]


def test_it_has_what_became_of_each_time_and_what_is_ahead(anywhere: Product) -> None:
    client = anywhere.client()
    client.put("hello", HELLO)
    for day in range(2):
        anywhere.clock.now = NINE + day * DAY
        anywhere.tick()
    found = client.timeline("hello", **SPAN)
    assert outcomes(found) == [
        ("2026-12-01T09:00:00Z", "succeeded", "fired", 1),
        ("2026-12-02T09:00:00Z", "succeeded", "fired", 1),
    ]
    assert found["ahead"] == ["2026-12-03T09:00:00Z"]
    assert (found["from"], found["to"], found["timezone"]) == (SPAN["since"], SPAN["until"], None)
    (definition,) = found["definitions"]
    assert (definition["cron"], definition["standing"]) == ("0 9 * * *", "active")
    assert (found["leftOut"], found["pauses"], found["unaccounted"]) == ([], [], [])
    assert anywhere.operator("you").timeline("hello", **SPAN) == found


def test_no_time_is_ahead_that_the_limit_of_runs_does_not_allow(running: Product) -> None:
    client = running.client()
    client.put("hello", {**HOURLY, "policies": {"maxRuns": 3}})
    running.clock.now = NINE
    running.tick()
    left = ["2026-12-01T10:00:00Z", "2026-12-01T11:00:00Z"]
    assert [one["utc"] for one in client.upcoming("hello")["upcoming"]] == left
    assert client.timeline("hello", **SPAN)["ahead"] == left
    later = {**SPAN, "since": "2026-12-01T10:30:00Z"}
    assert client.timeline("hello", **later)["ahead"] == left[1:]
    assert client.explain("hello", at="2026-12-01T11:00:00Z")["verdict"] == "will_fire"
    assert client.explain("hello", at="2026-12-01T12:00:00Z")["verdict"] == "quota"


def test_a_run_that_waits_in_its_spread_is_no_longer_ahead(anywhere: Product) -> None:
    client = anywhere.client()
    client.put("hello", {**HOURLY, "policies": {"maxRuns": 2, "spread": 3_000}})
    anywhere.clock.now = NINE
    anywhere.tick()
    assert [one["state"] for one in client.history("hello")] == ["scheduled"]
    left = ["2026-12-01T10:00:00Z"]
    assert [one["utc"] for one in client.upcoming("hello")["upcoming"]] == left
    assert [one["utc"] for one in client.explain("hello")["upcoming"]] == left
    assert client.timeline("hello", **SPAN)["ahead"] == left


def test_a_pause_leaves_times_out_while_it_holds_and_has_a_range_after_it(
    anywhere: Product,
) -> None:
    client = anywhere.client()
    client.put("hello", HELLO)
    client.pause("hello", note="holidays")
    anywhere.clock.now = NINE + DAY + HOUR
    anywhere.tick()
    held = client.timeline("hello", **SPAN)
    assert held["leftOut"] == [f"2026-12-0{day}T09:00:00Z" for day in (1, 2, 3)]
    assert (held["ahead"], held["entries"]) == ([], [])
    assert [one["standing"] for one in held["definitions"]] == ["active", "paused"]
    client.resume("hello")
    over = client.timeline("hello", **SPAN)
    assert outcomes(over) == [("2026-12-01T09:00:00Z", "cancelled", "paused", 2)]
    assert (over["leftOut"], over["ahead"]) == ([], ["2026-12-03T09:00:00Z"])


def test_a_pause_with_an_end_leaves_out_what_is_before_it(anywhere: Product) -> None:
    client = anywhere.client()
    client.put("hello", HELLO)
    client.pause("hello", until="2026-12-03T00:00:00Z")
    found = client.timeline("hello", **SPAN)
    assert found["leftOut"] == ["2026-12-01T09:00:00Z", "2026-12-02T09:00:00Z"]
    assert found["ahead"] == ["2026-12-03T09:00:00Z"]


def test_a_pause_of_a_group_is_a_span_and_its_times_are_a_range(anywhere: Product) -> None:
    anywhere.client().put("hello", HOURLY)
    office = Operators(anywhere.stack.server.url, token=anywhere.stack.operator)
    office.pause("flow:reminders", until="2026-12-01T10:30:00Z")
    for hour in (9, 10, 11):
        anywhere.clock.now = NINE + (hour - 9) * HOUR
        anywhere.tick()
    found = anywhere.client().timeline("hello", since=SPAN["since"], until="2026-12-01T12:30:00Z")
    (pause,) = found["pauses"]
    assert (pause["scope"], pause["until"]) == ("flow:reminders", "2026-12-01T10:30:00Z")
    assert outcomes(found) == [
        ("2026-12-01T09:00:00Z", "cancelled", "paused", 2),
        ("2026-12-01T11:00:00Z", "succeeded", "fired", 1),
    ]


def test_an_edit_is_a_definition_and_a_deleted_schedule_keeps_its_timeline(
    anywhere: Product,
) -> None:
    client = anywhere.client()
    client.put("hello", HELLO)
    anywhere.clock.now = NINE
    anywhere.tick()
    anywhere.clock.now = NINE + HOUR
    client.change("hello", {"cron": "0 11 * * *"})
    anywhere.clock.now = NINE + DAY
    client.delete("hello")
    found = client.timeline("hello", **SPAN)
    assert [(one["cron"], one["standing"]) for one in found["definitions"]] == [
        ("0 9 * * *", "active"),
        ("0 11 * * *", "active"),
        ("0 11 * * *", "deleted"),
    ]
    assert found["ahead"] == []
    assert len(found["entries"]) == 2


def test_a_change_of_the_clocks_is_told(running: Product, client: Client) -> None:
    client.put("hello", HELLO | {"timezone": "Europe/Berlin"})
    span = {"since": "2027-03-27T00:00:00Z", "until": "2027-03-29T00:00:00Z"}
    (change,) = client.timeline("hello", **span)["clockChanges"]
    assert change == {"at": "2027-03-28T01:00:00Z", "before": "+01:00", "after": "+02:00"}


def test_a_time_without_an_outcome_is_told_as_verify_does(anywhere: Product) -> None:
    client = anywhere.client()
    client.put("hello", HOURLY)
    row = anywhere.store.index.get("you", "hello")
    assert row
    moved = IndexRow(
        row.user_id, row.key, row.cron, row.timezone, NINE + 2 * HOUR, row.flow,
        anchor=row.anchor, redefined_at=row.redefined_at, policies=row.policies,
    )  # fmt: skip
    anywhere.store.index.upsert(moved)
    anywhere.clock.now = NINE + 2 * HOUR
    anywhere.tick()
    (fault,) = client.timeline("hello", since=SPAN["since"], until=SPAN["until"])["unaccounted"]
    assert (fault["problem"], fault["count"]) == ("missing", 2)
    assert (fault["first"], fault["last"]) == ("2026-12-01T09:00:00Z", "2026-12-01T10:00:00Z")


def test_what_one_answer_cannot_hold_is_asked_for_by_its_from(
    running: Product, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("duetick.core.timeline.MOST_SHOWN", 3)
    client.put("hello", HELLO | {"cron": "* * * * *"})
    for minute in range(8):
        running.clock.now = NINE + minute * MINUTE
        running.tick()
    times, until = [], SPAN["until"]
    while found := client.timeline("hello", since=SPAN["since"], until=until)["entries"]:
        assert len(found) <= 3
        times += [one["at"] for one in found]
        until = found[-1]["at"]
    assert times == [one["nominalFireTime"] for one in client.history("hello")]


@pytest.mark.parametrize(
    "span",
    [
        {"since": "soon"},
        {"since": "2026-12-02T00:00:00Z", "until": "2026-12-02T00:00:00Z"},
        {"since": "2026-12-02T00:00:00Z", "until": "2026-12-01T00:00:00Z"},
        {"since": "2020-01-01T00:00:00Z", "until": "2026-12-01T00:00:00Z"},
    ],
)
def test_a_span_that_cannot_be_is_refused(
    running: Product, client: Client, span: dict[str, str]
) -> None:
    client.put("hello", HELLO)
    assert refused(client.timeline, "hello", **span) == (400, "invalid_schedule")


def test_d12_another_users_timeline_is_none(running: Product, client: Client) -> None:
    client.put("hello", HELLO)
    assert refused(running.client("bob").timeline, "hello") == (404, "schedule_not_found")


def test_it_shows_a_day_behind_and_a_day_ahead_if_nobody_says_more(
    running: Product, client: Client
) -> None:
    client.put("hello", HELLO)
    found = client.timeline("hello")
    assert (found["from"], found["to"]) == ("2026-11-30T08:30:00Z", "2026-12-02T08:30:00Z")
    assert MOST_SHOWN == 1_500, "a day of a schedule that fires each minute has room"

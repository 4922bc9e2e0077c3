"""Pauses as a user's client meets them: until they are resumed, or until they end."""

from collections.abc import Mapping
from dataclasses import replace

import pytest
from duetick.client import ApiError, Client, Fields
from duetick.domain.expression import zones
from duetick.domain.schedule import Json

from tests.integration.api.asking import DAY, HELLO, HOUR, refused, states
from tests.integration.local_product import NINE, Product, set_again

END = "2026-12-03T12:00:00Z"
"""Three fire times after the pause begins."""


def test_a_paused_schedule_does_not_fire_and_says_why(running: Product, client: Client) -> None:
    client.put("hello", HELLO)
    body = client.pause("hello", note="on holiday").body
    assert (body["enabled"], body["nextFireAt"]) == (False, None)
    assert body["paused"] == {
        "since": "2026-12-01T08:30:00Z",
        "note": "on holiday",
        "until": None,
    }
    running.clock.now = NINE
    assert running.tick()["claimed"] == 0
    running.clock.now = NINE + HOUR
    resumed = client.resume("hello").body
    assert (resumed["enabled"], resumed["paused"]) == (True, None)
    assert states(client) == [("cancelled", "paused")]


def test_a_pause_with_an_end_ends_by_itself(running: Product, client: Client) -> None:
    client.put("hello", HELLO)
    body = client.pause("hello", until="2026-12-02T12:00:00Z").body
    assert (body["enabled"], body["nextFireAt"]) == (False, "2026-12-03T09:00:00Z")
    running.clock.now = NINE + DAY
    assert running.tick()["claimed"] == 0
    running.clock.now = NINE + 2 * DAY
    assert running.tick()["delivered"] == 1
    after = client.get("hello").body
    assert (after["enabled"], after["paused"]) == (True, None)


def test_a_pause_with_an_end_can_be_ended_early_and_is_accounted_for(
    running: Product, client: Client
) -> None:
    made = client.put("hello", HELLO | {"policies": {"startsAt": "2026-11-01T00:00:00Z"}}).body
    client.pause("hello", until="2026-12-08T00:00:00Z")
    running.clock.now = NINE + DAY + HOUR
    resumed = client.resume("hello").body
    assert resumed["nextFireAt"] == "2026-12-03T09:00:00Z"
    assert resumed["policies"] == made["policies"]
    (line,) = client.history("hello")
    assert (line["reason"], line["count"]) == ("paused", 2)
    assert (line["nominalFireTime"], line["until"]) == (
        "2026-12-01T09:00:00Z",
        "2026-12-02T09:00:00Z",
    )


def test_a_pause_outlives_a_replace_and_a_change(client: Client) -> None:
    client.put("hello", HELLO)
    client.pause("hello", note="not now", until="2026-12-02T12:00:00Z")
    client.change("hello", {"cron": "30 9 * * *"})
    replaced = client.put("hello", HELLO | {"cron": "45 9 * * *"}).body
    assert replaced["enabled"] is False
    assert replaced["nextFireAt"] == "2026-12-03T09:45:00Z"
    paused = replaced["paused"]
    assert paused
    assert paused["note"] == "not now"
    assert client.put("hello", HELLO | {"enabled": True}).body["paused"] is None


@pytest.mark.parametrize(
    "last",
    [{"cron": "at(2026-12-02T09:00:00)"}, {"policies": {"endsAt": "2026-12-02T12:00:00Z"}}],
)
def test_a_pause_beyond_the_last_time_is_refused_with_what_to_do(
    client: Client, last: Fields
) -> None:
    made = client.put("hello", HELLO | last)
    with pytest.raises(ApiError, match=r"until: .* without an end"):
        client.pause("hello", until=END)
    assert client.get("hello").body == made.body
    assert client.pause("hello").body["enabled"] is False


def test_a_pause_that_ended_before_it_began_is_refused(client: Client) -> None:
    client.put("hello", HELLO)
    assert refused(client.pause, "hello", until="2026-11-30T00:00:00Z")[0] == 400


def test_a_pause_works_for_what_would_no_longer_be_taken(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    client.put("hello", HELLO)
    set_again(monkeypatch, "QUOTA_INPUT_BYTES", "2")
    assert client.pause("hello").status == 200


def lines(client: Client, limit: int = 50) -> list[tuple[Json, Json, Json]]:
    """Reason, count and nominal time of each line of the history."""
    found = client.history("hello", limit=limit)
    return [(line["reason"], line["count"], line["nominalFireTime"]) for line in found]


def pause_and_fire_after(running: Product, client: Client) -> None:
    """Fire once, pause with an end, and fire twice after the pause."""
    client.put("hello", HELLO)
    running.clock.now = NINE
    expect_one_delivered(running.tick())
    client.pause("hello", until="2026-12-04T12:00:00Z")
    for day in (4, 5):
        running.clock.now = NINE + day * DAY
        expect_one_delivered(running.tick())


def expect_one_delivered(report: Mapping[str, int]) -> None:
    """Expect one delivery. The failure shows the tick's whole report."""
    expected = {"claimed": 1, "delivered": 1, "failed": 0, "left": 0}
    assert report == {**report, **expected}


PAUSED_THEN_FIRED = [
    ("fired", 1, "2026-12-06T09:00:00Z"),
    ("fired", 1, "2026-12-05T09:00:00Z"),
    ("paused", 3, "2026-12-02T09:00:00Z"),
    ("fired", 1, "2026-12-01T09:00:00Z"),
]


def test_a01_a_pause_that_ended_by_itself_is_one_range_of_the_history(
    running: Product, client: Client
) -> None:
    pause_and_fire_after(running, client)
    assert lines(client) == PAUSED_THEN_FIRED
    exported = running.operator("you").export()["history"]
    assert sum(line["count"] == 3 for line in exported) == 1


@pytest.mark.parametrize("limit", [1, 2, 3, 4])
def test_a01_the_range_of_an_ended_pause_is_on_one_page(
    running: Product, client: Client, limit: int
) -> None:
    pause_and_fire_after(running, client)
    assert lines(client, limit) == PAUSED_THEN_FIRED


def test_a01_the_range_of_an_ended_pause_leaves_out_what_was_claimed_ahead_of_it(
    running: Product, client: Client
) -> None:
    client.put("hello", HELLO)
    running.store.index.claim_due(running.clock.now, ahead=DAY + HOUR)
    client.pause("hello", until="2026-12-04T12:00:00Z")
    running.clock.now = NINE + 3 * DAY + 4 * HOUR
    assert lines(client) == [
        ("paused", 2, "2026-12-03T09:00:00Z"),
        (None, 1, "2026-12-02T09:00:00Z"),
        (None, 1, "2026-12-01T09:00:00Z"),
    ]


@pytest.mark.parametrize(
    "change", [{"cron": "30 9 * * *"}, {"timezone": "Europe/Berlin"}, {"labels": {"a": "b"}}]
)
def test_a01_a_change_after_a_pause_that_ended_by_itself_loses_nothing_of_it(
    running: Product, client: Client, change: Fields
) -> None:
    pause_and_fire_after(running, client)
    client.change("hello", change)
    assert lines(client) == PAUSED_THEN_FIRED
    client.pause("hello")
    assert lines(client) == PAUSED_THEN_FIRED


def test_a01_a_change_of_timing_in_a_pause_counts_no_time_twice(
    running: Product, client: Client
) -> None:
    client.put("hello", HELLO)
    client.pause("hello", until="2026-12-05T12:00:00Z")
    running.clock.now = NINE + DAY + HOUR
    client.change("hello", {"cron": "0 10 * * *"})
    running.clock.now = NINE + 3 * DAY
    client.resume("hello")
    assert lines(client) == [
        ("paused", 1, "2026-12-03T10:00:00Z"),
        ("paused", 2, "2026-12-01T09:00:00Z"),
    ]


def test_a_run_in_a_pause_with_an_end_is_refused(running: Product, client: Client) -> None:
    client.put("hello", HELLO)
    client.pause("hello", until=END)
    assert refused(client.run, "hello") == (409, "schedule_paused")
    running.clock.now = NINE + 3 * DAY
    assert client.run("hello")["state"] == "succeeded"


def unreadable(running: Product, client: Client) -> None:
    """A schedule whose row a tick could not read."""
    client.put("hello", HELLO | {"cron": "* * * * *", "timezone": "Europe/Berlin"})
    held = running.store.index.get("you", "hello")
    assert held
    running.store.index.upsert(replace(held, timezone="Gone/Zone"))
    running.clock.now = NINE
    running.tick()
    found = client.get("hello").body
    assert (found["nextFireAt"], "Gone/Zone" in str(found["defect"])) == (None, True)


def test_i13_a_resume_brings_back_what_could_not_be_read(running: Product, client: Client) -> None:
    unreadable(running, client)
    mended = client.resume("hello").body
    assert (mended["nextFireAt"], mended["defect"]) == ("2026-12-01T08:32:00Z", None)
    running.tick()
    *fired, missed, poisoned = client.history("hello")
    assert {one["reason"] for one in fired} == {"fired"}, "what is within its grace"
    assert (missed["reason"], missed["nominalFireTime"]) == ("missed", "2026-12-01T08:32:00Z")
    assert len(fired) + missed["count"] == 29, "each minute until nine"
    assert poisoned["reason"] == "poisoned"


def test_i13_a_resume_of_what_still_cannot_be_read_is_refused_with_what_to_do(
    running: Product, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    unreadable(running, client)
    monkeypatch.setattr(zones, "ZONE_NAMES", zones.ZONE_NAMES - {"Europe/Berlin"})
    with pytest.raises(ApiError, match=r"'Europe/Berlin' is no IANA zone") as problem:
        client.resume("hello")
    assert problem.value.status == 400
    assert client.get("hello").body["defect"]


def test_i13_a_resume_brings_back_what_no_tick_has_met_yet(
    running: Product, client: Client
) -> None:
    client.put("hello", HELLO | {"cron": "*/10 * * * *"})
    held = running.store.index.get("you", "hello")
    assert held
    running.store.index.upsert(replace(held, cron="99 * * * *"))
    running.clock.now = NINE
    resumed = client.resume("hello").body
    assert (resumed["nextFireAt"], resumed["defect"]) == ("2026-12-01T08:40:00Z", None)
    assert running.store.check(now=NINE) == []
    assert running.tick()["delivered"] == 1
    assert lines(client) == [
        ("fired", 1, "2026-12-01T09:00:00Z"),
        ("missed", 2, "2026-12-01T08:40:00Z"),
    ]


def test_i13_a_resume_of_what_is_as_it_should_be_changes_nothing(
    running: Product, client: Client
) -> None:
    made = client.put("hello", HELLO)
    row = running.store.index.get("you", "hello")
    assert client.resume("hello").etag == made.etag
    assert running.store.index.get("you", "hello") == row


def test_m03_what_can_no_longer_be_read_can_be_paused(
    running: Product, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    client.put("hello", HELLO | {"cron": "* * * * *", "timezone": "Europe/Berlin"})
    monkeypatch.setattr(zones, "ZONE_NAMES", zones.ZONE_NAMES - {"Europe/Berlin"})
    assert client.pause("hello").body["enabled"] is False
    assert running.store.index.get("you", "hello") is None
    running.clock.now = NINE
    assert running.tick()["poisoned"] == 0
    assert refused(client.resume, "hello")[0] == 400
    assert refused(client.pause, "hello", until=END)[0] == 400


def test_t04_a_patch_that_disables_keeps_the_pause_and_what_it_holds(
    running: Product, client: Client
) -> None:
    client.put("hello", HELLO)
    client.pause("hello", note="why")
    patched = client.change("hello", {"enabled": False}).body["paused"]
    assert patched is not None
    assert client.resume("hello").body["enabled"] is True


def test_what_no_flow_has_any_more_can_be_paused_by_every_route(
    running: Product, client: Client
) -> None:
    client.put("hello", HELLO)
    kept = running.store.schedules.get("you", "hello")
    assert kept
    running.store.schedules.put(replace(kept, flow="absent"))
    assert client.change("hello", {"enabled": False}).body["enabled"] is False

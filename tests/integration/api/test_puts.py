"""Many schedules in one call: each is answered by itself, and a repeat changes nothing."""

from typing import Any

import pytest
from duetick.api import batches
from duetick.api.views import PutViews
from duetick.client import ApiError, Client, Fields
from duetick.operators import Operators

from tests.integration.api.asking import HELLO, MINUTE
from tests.integration.local_product import Product, set_again, tick_seldom


def item(key: str, **more: object) -> dict[str, Any]:
    """Return a schedule of a batch."""
    return {"key": key, **HELLO, **more}


def statuses(answer: PutViews) -> list[int]:
    return [one["status"] for one in answer["schedules"]]


@pytest.fixture
def operators(running: Product) -> Operators:
    return Operators(running.stack.server.url, token=running.stack.operator)


def test_each_item_is_a_put_and_a_repeat_changes_nothing(client: Client) -> None:
    client.put("b", HELLO)
    given = [item("a"), item("b", cron="0 10 * * *")]
    first = client.put_many(given)
    assert statuses(first) == [201, 200]
    assert [one["error"] for one in first["schedules"]] == [None, None]
    again = client.put_many(given)
    assert statuses(again) == [200, 200]
    shown = [one["schedule"] for one in again["schedules"]]
    assert [one and one["version"] for one in shown] == [1, 2]
    assert shown[1] == client.get("b").body


def test_an_item_that_is_wrong_stops_no_other_and_is_told_as_a_put_would(client: Client) -> None:
    wrong: list[Any] = [
        item("w", cron="75 * * * *", colour="red"),
        {"key": "w"},
        {**HELLO},
        item("w/../x"),
        item("w", input={"text": 5}),
        item("w", ifVersion="1"),
    ]
    answer = client.put_many([item("a"), *wrong, item("z")])
    assert statuses(answer) == [201, 400, 400, 400, 400, 400, 400, 201]
    errors = [one["error"] for one in answer["schedules"]]
    fields = [{p["field"] for p in error.get("problems", ())} for error in errors if error]
    assert fields[0] == {"/cron", "/colour"}
    assert {"/cron", "/flow", "/action"} <= fields[1]
    assert [fields[place] for place in (2, 4, 5)] == [{"/key"}, {"/input/text"}, {"/ifVersion"}]
    assert sorted(one["key"] for one in client.list()) == ["a", "z"]
    with pytest.raises(ApiError) as alone:
        client.put("w", {name: wrong[4][name] for name in wrong[4] if name != "key"})
    assert errors[5] == {
        "error": alone.value.code,
        "message": str(alone.value).rpartition(" (")[0],
        "problems": list(alone.value.problems),
    }


def test_a_version_lets_an_item_replace_what_the_caller_knows_and_nothing_else(
    client: Client,
) -> None:
    client.put("there", HELLO)
    later = HELLO | {"cron": "0 10 * * *"}
    answer = client.put_many(
        [
            item("new", ifVersion=0),
            item("there", ifVersion=0),
            item("there", ifVersion=2),
            item("there", **later, ifVersion=1),
            item("there", **later, ifVersion=1),
        ]
    )
    assert statuses(answer) == [201, 412, 412, 200, 412]
    assert client.get("there").body["version"] == 2


def test_a_dry_run_stores_nothing_and_finds_what_is_wrong(client: Client) -> None:
    answer = client.put_many([item("a"), item("b", cron="x")], dry_run=True)
    assert statuses(answer) == [200, 400]
    shown = answer["schedules"][0]["schedule"]
    assert shown is not None
    assert shown["dryRun"] is True
    assert list(client.list()) == []


def test_each_put_counts_as_a_write_of_its_user(
    running: Product, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_again(monkeypatch, "QUOTA_WRITES", "3")
    answer = client.put_many([item(f"k{n}") for n in range(5)])
    assert statuses(answer) == [201, 201, 201, 429, 429]
    assert [one["retryAfter"] for one in answer["schedules"]] == [None, None, None, 60, 60]
    with pytest.raises(ApiError) as refused:
        client.put_many([item("k9")])
    assert (refused.value.status, refused.value.retry_after) == (429, 60)
    assert statuses(client.put_many([item("k9")], dry_run=True)) == [200]
    running.clock.now += MINUTE
    assert statuses(client.put_many([item("k3"), item("k4")])) == [201, 201]
    many = running.operator("ann").put_many([item(f"k{n}") for n in range(5)])
    assert statuses(many) == [201] * 5


def test_the_quota_of_schedules_counts_each(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_again(monkeypatch, "QUOTA_SCHEDULES", "2")
    answer = client.put_many([item(f"k{n}") for n in range(4)])
    assert statuses(answer) == [201, 201, 409, 409]


def test_what_has_no_time_is_not_tried_and_may_be_sent_again(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batches, "SECONDS", 0.0)
    (answer,) = client.put_many([item("a")])["schedules"]
    assert answer["error"] is not None
    assert (answer["status"], answer["error"]["error"]) == (503, "not_tried")
    assert list(client.list()) == []


def test_operators_put_schedules_of_any_users_in_one_call(
    running: Product, operators: Operators
) -> None:
    given = [item("a", user="ann"), item("a", user="bob"), item("a"), item("a", user="x/y")]
    answer = operators.put_many(given)
    assert statuses(answer) == [201, 201, 400, 400]
    assert [one["user"] for one in operators.schedules(state="all")] == ["ann", "bob"]
    assert running.client("ann").get("a").body["cron"] == HELLO["cron"]
    shown = [*operators.schedules(state="all")]
    assert [(one["version"], one["labels"]) for one in shown] == [(1, {}), (1, {})]


def test_a_user_names_no_user_and_reaches_no_other(running: Product, client: Client) -> None:
    (answer,) = client.put_many([item("a", user="bob")])["schedules"]
    assert answer["status"] == 400
    assert list(running.client("bob").list()) == []
    status, _ = running.call("POST", "/api/all-schedules/batch", {"schedules": [item("a")]})
    assert status == 401


@pytest.mark.parametrize(
    "body", [{}, {"schedules": []}, {"schedules": [5]}, {"schedules": [item("a")] * 501}]
)
def test_a_batch_has_one_to_five_hundred_objects(running: Product, body: Fields) -> None:
    assert running.call("POST", "/api/schedules/batch", body)[0] == 400


def test_what_fires_too_often_for_the_tick_is_warned_of(
    running: Product, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    tick_seldom(running, monkeypatch)
    tight, plain = client.put_many([item("t", cron="*/5 * * * *"), item("p")])["schedules"]
    assert "each 1800 s" in (tight["warning"] or "")
    assert plain["warning"] is None


def test_a_pause_goes_on_unless_the_item_is_enabled(client: Client) -> None:
    client.put("a", HELLO)
    client.pause("a")
    client.put_many([item("a", cron="0 10 * * *")])
    assert client.get("a").body["state"] == "paused"
    client.put_many([item("a", cron="0 10 * * *", enabled=True)])
    assert client.get("a").body["state"] == "active"


def test_the_record_of_operators_has_how_many(running: Product, operators: Operators) -> None:
    operators.put_many([item("a", user="ann"), item("b", user="ann")])
    running.clock.now += 1_000
    running.operator("ann").put_many([item("c")])
    told = [(one["verb"], one["user"], one["target"]) for one in operators.operations()]
    assert told == [
        ("put_schedules", "ann", "schedules=1"),
        ("put_all_schedules", None, "schedules=2"),
    ]

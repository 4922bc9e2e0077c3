"""The schedules API as a user's client meets it."""

import json
import logging
from dataclasses import replace

import pytest
from duetick.client import ApiError, Client, Fields
from duetick.domain.schedule import Principal
from duetick.runtime import wiring

from tests.integration.api.asking import HELLO, MINUTE, refused
from tests.integration.local_product import Product, set_again


def test_a_created_schedule_says_where_it_is_and_which_version(client: Client) -> None:
    made = client.create(HELLO, key="hello")
    assert (made.status, made.headers["location"]) == (201, "/api/schedules/hello")
    assert made.etag == client.get("hello").etag
    assert made.body["nextFireAt"] == "2026-12-01T09:00:00Z"


def test_a_schedule_without_a_key_gets_one(client: Client) -> None:
    keys = {str(client.create(HELLO).body["key"]) for _ in range(2)}
    assert {schedule["key"] for schedule in client.list()} == keys
    assert len(keys) == 2


def test_a_taken_key_is_refused_and_nothing_changes(client: Client) -> None:
    made = client.create(HELLO, key="hello")
    assert refused(client.create, HELLO | {"cron": "0 8 * * *"}, key="hello") == (
        409,
        "schedule_exists",
    )
    assert client.get("hello").body == made.body


def test_a_replaced_schedule_is_told_from_a_created_one(client: Client) -> None:
    assert client.put("hello", HELLO).status == 201
    assert client.put("hello", HELLO | {"cron": "0 8 * * *"}).status == 200


def test_a_patch_changes_what_it_names_and_nothing_else(client: Client) -> None:
    client.put("hello", HELLO | {"labels": {"team": "ops", "old": "x"}, "policies": {"grace": 60}})
    changed = client.change(
        "hello",
        {
            "timezone": "Europe/Berlin",
            "labels": {"old": None, "new": "y"},
            "policies": {"priority": 5},
        },
    ).body
    assert (changed["cron"], changed["timezone"]) == ("0 9 * * *", "Europe/Berlin")
    assert changed["labels"] == {"team": "ops", "new": "y"}
    policies = changed["policies"]
    assert (policies["grace"], policies["priority"]) == (60, 5)


def test_a_patch_takes_a_field_back_to_its_default(client: Client) -> None:
    client.put("hello", HELLO | {"timezone": "Europe/Berlin"})
    assert client.change("hello", {"timezone": None}).body["timezone"] is None


def test_a_preview_is_local_and_points_out_clock_changes(client: Client) -> None:
    client.put("hello", HELLO | {"cron": "30 2 27-30 3 *", "timezone": "Europe/Berlin"})
    found = client.upcoming("hello", limit=3)["upcoming"]
    shown = [(time["local"], time["clock"]) for time in found]
    assert shown == [
        ("2027-03-27T02:30:00+01:00", None),
        (
            "2027-03-28T03:00:00+02:00",
            "clocks go forward at this very moment; a time that they skip fires now",
        ),
        ("2027-03-29T02:30:00+02:00", None),
    ]


def test_history_comes_in_pages_and_outlives_its_schedule(running: Product, client: Client) -> None:
    client.put("hello", HELLO | {"cron": "* * * * *"})
    for _ in range(5):
        running.clock.now += MINUTE
        running.tick()
    client.delete("hello")
    lines = list(client.history("hello", limit=2))
    times = [str(line["nominalFireTime"]) for line in lines]
    assert len(times) == 5
    assert times == sorted(times, reverse=True)


def test_g08_a_schedule_is_found_by_its_outside_id(running: Product) -> None:
    machine = running.operator("you")
    machine.put("hello", HELLO | {"externalId": "project/7"})
    assert running.client().by_external("project/7").body["key"] == "hello"


def test_a_word_of_the_paths_is_no_key(client: Client) -> None:
    assert refused(client.put, "by-external", HELLO) == (400, "invalid_schedule_id")
    assert refused(client.create, HELLO, key="by-external") == (400, "invalid_schedule_id")


def test_an_outside_id_is_the_applications_to_give(running: Product, client: Client) -> None:
    assert refused(client.put, "hello", HELLO | {"externalId": "project-7"})[0] == 400
    running.operator("you").put("hello", HELLO | {"externalId": "project-7"})
    kept = client.put("hello", HELLO | {"cron": "0 8 * * *"}).body
    assert kept["externalId"] == "project-7"


def test_d10_what_runs_as_another_is_the_applications_to_change(
    running: Product, client: Client
) -> None:
    store = wiring.store()
    client.put("hello", HELLO)
    made = store.schedules.get("you", "hello")
    assert made is not None
    store.schedules.put(replace(made, principal=Principal("you", org_id="garden-club")))
    other: Fields = {"input": {"text": "everybody out"}}
    assert refused(client.put, "hello", HELLO | other)[0] == 400
    assert refused(client.change, "hello", other)[0] == 400
    assert client.change("hello", {"cron": "0 8 * * *"}).body["cron"] == "0 8 * * *"
    client.pause("hello")
    running.operator("you").put("hello", HELLO | other | {"enabled": True})
    now = store.schedules.get("you", "hello")
    assert now is not None
    assert now.input == other["input"]
    assert now.principal == Principal("you", org_id="garden-club")


def test_c05_a_rate_below_a_minute_is_refused_with_the_reason(client: Client) -> None:
    with pytest.raises(ApiError, match="look-ahead"):
        client.put("hello", HELLO | {"cron": "rate(30 seconds)"})


@pytest.mark.parametrize(
    ("limit", "fields"),
    [
        ("SCHEDULES=1", {}),
        ("GAP_SECONDS=3600", {"cron": "0,45 * * * *"}),
        ("INPUT_BYTES=20", {"input": {"text": "x" * 20}}),
    ],
)
def test_a_quota_names_itself_its_value_and_the_way_out(
    client: Client,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    limit: str,
    fields: Fields,
) -> None:
    setting, _, value = limit.partition("=")
    client.put("first", HELLO)
    set_again(monkeypatch, f"QUOTA_{setting}", value)
    with (
        caplog.at_level(logging.INFO, "duetick"),
        pytest.raises(ApiError, match=r"Delete|less often|elsewhere") as problem,
    ):
        client.put("second", HELLO | fields)
    assert f"DUETICK_QUOTA_{setting} sets the limit." in caplog.text
    assert (problem.value.status, problem.value.code) == (409, "quota_exceeded")
    assert value in str(problem.value)


def test_an_input_of_more_than_64_kb_is_refused(client: Client) -> None:
    with pytest.raises(ApiError, match="64 KB"):
        client.put("hello", HELLO | {"input": {"text": "x" * 66_000}})


def test_a_body_beyond_all_measure_is_not_read(client: Client) -> None:
    assert refused(client.put, "hello", HELLO | {"input": "x" * 300_000}) == (413, "too_large")


def test_a_body_is_measured_in_bytes(running: Product) -> None:
    body = json.dumps(HELLO | {"input": "日" * 100_000}, ensure_ascii=False).encode()
    assert running.call("PUT", "/api/schedules/hello", body)[0] == 413


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ('{"input": ' + "[" * 100_000 + "]" * 100_000 + "}", "nested"),
        (
            '{"cron": "\\ud800", "flow": "f", "action": "a"}',
            "cron: '\\ud800', character 1, is not ASCII text",
        ),
        ('{"input": ' + "9" * 5_000 + "}", "JSON"),
        ("[]", "object"),
        ('{"cron": 5, "flow": "f", "action": "a"}', "cron"),
        ('{"cron": "", "flow": "f", "action": "a"}', "cron: must not be empty"),
    ],
)
def test_a_body_that_is_odd_is_refused_with_what_is_wrong(
    running: Product, body: str, says: str
) -> None:
    status, answer = running.call("PUT", "/api/schedules/hello", body)
    assert (status, answer["error"]) == (400, "invalid_schedule")
    assert says in answer["message"]


@pytest.mark.parametrize(
    ("policies", "field"),
    [
        ({"maxRuns": 0}, "policies.maxRuns"),
        ({"retry": {"attempts": 0}}, "policies.retry.attempts"),
        (
            {"startsAt": "2027-01-02T00:00:00Z", "endsAt": "2027-01-01T00:00:00Z"},
            "policies.endsAt",
        ),
    ],
)
def test_a_policy_that_is_refused_is_named_as_it_was_given(
    client: Client, policies: Fields, field: str
) -> None:
    with pytest.raises(ApiError, match=f"^{field}: "):
        client.put("hello", HELLO | {"policies": policies})


@pytest.mark.parametrize(
    ("policies", "known"), [({"catch_up": 1}, "catchUp"), ({"retry": {"Attempts": 1}}, "attempts")]
)
def test_a_policy_has_the_name_that_the_document_gives_it_and_no_other(
    client: Client, policies: Fields, known: str
) -> None:
    client.put("hello", HELLO)
    for act, body in ((client.put, HELLO), (client.change, {})):
        with pytest.raises(ApiError, match=known) as problem:
            act("hello", {**body, "policies": policies})
        assert problem.value.status == 400


@pytest.mark.parametrize("user", ["~00", "%2E%2E", "a~2Fb", "~ED~A0~80", "x" * 129])
def test_d05_a_user_that_cannot_be_is_refused_on_every_route(running: Product, user: str) -> None:
    for method, path in [("GET", "/schedules"), ("GET", "/export"), ("DELETE", "")]:
        status, answer = running.call(
            method, f"/api/users/{user}{path}", token=running.stack.operator
        )
        assert (status, answer["error"]) == (400, "invalid_schedule_id")


@pytest.mark.parametrize(
    ("query", "says"),
    [("limit=0", "limit"), ("limit=101", "limit"), ("limit=x", "limit"), ("page=2", "cursor")],
)
def test_a_query_that_is_not_known_is_refused(client: Client, query: str, says: str) -> None:
    with pytest.raises(ApiError, match=says) as problem:
        client.call("GET", f"/api/schedules?{query}")
    assert problem.value.status == 400


def test_j11_operators_see_no_secret_of_an_input(running: Product, client: Client) -> None:
    client.put("hello", HELLO)
    found = running.store.schedules.get("you", "hello")
    assert found
    running.store.schedules.put(replace(found, input={"apiKey": "canary", "to": [{"token": "c"}]}))
    seen = running.operator("you").get("hello").body["input"]
    assert seen == {"apiKey": "[withheld]", "to": [{"token": "[withheld]"}]}


def test_a_user_is_exported_whole_and_erased_for_good(running: Product, client: Client) -> None:
    other = running.client("bob")
    for one in (client, other):
        one.put("hello", HELLO | {"cron": "* * * * *"})
        one.put("gone", HELLO | {"cron": "* * * * *"})
    running.clock.now += MINUTE
    running.tick()
    client.delete("gone")
    exported = running.operator("you").export()
    assert len(exported["schedules"]) == 1
    assert sorted(line["key"] for line in exported["history"]) == ["gone", "hello"]
    assert running.operator("you").erase() == {"schedules": 1}
    left = running.operator("you").export()
    assert left == {"user": "you", "schedules": [], "jobs": [], "history": [], "cursor": None}
    assert len(list(other.list())) == 2
    assert len(list(other.history("hello"))) == 1

"""All that is wrong with a call is told at once: no problem hides another's field."""

import logging
from collections.abc import Callable

import pytest
from duetick.client import ApiError, Client, Fields

from tests.integration.api.asking import HELLO
from tests.integration.api.problems import PAST, PATH, Told, put, told
from tests.integration.local_product import Product, set_again

EVERYTHING: Fields = {
    "cron": "75 * * * *",
    "timezone": "PST",
    "action": "remnd",
    "policies": {"grace": -1, "timeout": "long", "retry": {"attempts": 0, "x": 1}, "endsAt": PAST},
    "labels": {"a": 1, "b": []},
    "inptu": 1,
}
ALL: Told = [
    ("/action", "unknown_action"),
    ("/cron", "invalid_cron"),
    ("/inptu", "unknown_field"),
    ("/labels/a", "wrong_type"),
    ("/labels/b", "wrong_type"),
    ("/policies/endsAt", "past"),
    ("/policies/grace", "out_of_range"),
    ("/policies/retry/attempts", "out_of_range"),
    ("/policies/retry/x", "unknown_field"),
    ("/policies/timeout", "wrong_type"),
    ("/timezone", "unknown_timezone"),
]


def problems_of(refusal: ApiError) -> Told:
    """Their fields and codes."""
    return sorted((each["field"], each["code"]) for each in refusal.problems)


def test_all_problems_are_told_at_once(running: Product) -> None:
    status, answer = running.call("PUT", PATH, HELLO | EVERYTHING)
    assert (status, answer["error"], told(answer)) == (400, "invalid_schedule", ALL)
    assert answer["message"].endswith("There are 3 more.")


def test_all_problems_are_told_at_once_to_every_kind_of_caller(running: Product) -> None:
    creation = {**HELLO, **EVERYTHING, "key": " "}
    status, answer = running.call("POST", "/api/schedules", creation)
    assert (status, told(answer)) == (400, sorted([*ALL, ("/key", "blank")]))
    running.client("ann").put("hello", HELLO)
    operator = running.operator("ann")
    for call in (operator.put, operator.change):
        with pytest.raises(ApiError) as refused:
            call("hello", EVERYTHING if call == operator.change else HELLO | EVERYTHING)
        assert problems_of(refused.value) == ALL


IN_PAST: Told = [("/policies/endsAt", "past")]
OVER: Fields = {"policies": {"endsAt": PAST}}
BESIDE_A_PAST_END: list[tuple[Fields, Told]] = [
    ({"cron": "75 * * * *"}, [("/cron", "invalid_cron")]),
    ({"cron": None}, [("/cron", "wrong_type")]),
    ({"timezone": "PST"}, [("/timezone", "unknown_timezone")]),
    ({"timezone": 5}, [("/timezone", "wrong_type")]),
    ({"cron": "at(2020-01-01T09:00:00)"}, [("/cron", "past")]),
    ({"cron": "rate(5 seconds)"}, [("/cron", "below_a_minute")]),
    ({"flow": "remnders"}, [("/flow", "unknown_flow")]),
    ({"externalId": "mine"}, [("/externalId", "not_yours")]),
    ({"labels": {"a": "\ud800"}}, [("/labels", "character")]),
    ({"cron": "\ud800"}, [("/cron", "invalid_cron")]),
]


@pytest.mark.parametrize(("change", "problems"), BESIDE_A_PAST_END)
def test_an_end_that_is_over_is_told_beside_the_rest(
    running: Product, change: Fields, problems: Told
) -> None:
    assert told(put(running, OVER | change)) == sorted([*problems, *IN_PAST])


def test_a_wrong_policy_hides_no_other(running: Product) -> None:
    wrong: Fields = {"grace": -1, "endsAt": PAST, "delivery": "effectively_once"}
    retry: Fields = {"attempts": 0, "first": 7_200}
    assert told(put(running, {"policies": {**wrong, "retry": retry}})) == [
        ("/policies/delivery", "not_transactional"),
        ("/policies/endsAt", "past"),
        ("/policies/grace", "out_of_range"),
        ("/policies/retry/attempts", "out_of_range"),
        ("/policies/retry/longest", "out_of_range"),
    ]


def test_a_window_that_ends_before_it_begins_is_told_beside_a_wrong_policy(
    running: Product,
) -> None:
    window: Fields = {"startsAt": "2027-02-01T09:00:00Z", "endsAt": "2027-01-01T09:00:00Z"}
    assert told(put(running, {"policies": {**window, "grace": -1}})) == [
        ("/policies/endsAt", "out_of_range"),
        ("/policies/grace", "out_of_range"),
    ]


def test_nothing_is_said_of_times_that_nobody_can_know(running: Product) -> None:
    soon: Fields = {"policies": {"endsAt": "2026-12-01T08:59:00Z"}}
    assert told(put(running, soon | {"cron": 5})) == [("/cron", "wrong_type")]
    there: Fields = {"cron": "at(2026-12-01T08:35:00)", "timezone": 5}
    assert told(put(running, there)) == [("/timezone", "wrong_type")]


def test_what_is_wrong_with_the_input_is_told_at_once_and_beside_the_rest(running: Product) -> None:
    answer = put(running, {"cron": "x", "input": {"txet": 1, "text": 5}})
    assert told(answer) == [
        ("/cron", "invalid_cron"),
        ("/input/text", "wrong_type"),
        ("/input/txet", "unknown_field"),
    ]


def test_an_input_is_told_beside_a_promise_that_its_action_does_not_keep(running: Product) -> None:
    change: Fields = {"policies": {"delivery": "effectively_once"}, "input": {"text": 5}}
    assert told(put(running, change)) == [
        ("/input/text", "wrong_type"),
        ("/policies/delivery", "not_transactional"),
    ]


def test_a_patch_takes_the_texts_that_a_put_takes(running: Product) -> None:
    running.client().put("hello", HELLO)
    status, answer = running.call("PATCH", PATH, {"policies": {"endsAt": 4_000_000_000_000}})
    assert (status, told(answer)) == (400, [("/policies/endsAt", "wrong_type")])


@pytest.mark.parametrize(
    ("operator", "problems"),
    [
        (True, [("/cron", "wrong_type")]),
        (False, [("/action", "not_yours"), ("/cron", "wrong_type")]),
    ],
)
def test_who_may_name_an_action_is_told_beside_the_rest(
    running: Product, operator: bool, problems: Told
) -> None:
    asks = running.operator("ann") if operator else running.client("ann")
    with pytest.raises(ApiError) as refused:
        asks.put("hello", {"cron": 5, "flow": "digests", "action": "clean_up"})
    assert problems_of(refused.value) == problems


BAD_CRON: Fields = HELLO | {"cron": "x"}


@pytest.mark.parametrize(
    ("method", "path", "header", "text"),
    [
        ("PUT", PATH, "If-Match", "3"),
        ("PATCH", PATH, "If-Match", "3"),
        ("POST", "/api/schedules", "Idempotency-Key", "x" * 300),
    ],
)
def test_a_header_that_cannot_be_read_is_told_beside_the_body(
    client: Client, method: str, path: str, header: str, text: str
) -> None:
    client.put("hello", HELLO)
    with pytest.raises(ApiError) as refused:
        client.call(method, path, BAD_CRON, {header: text})
    assert problems_of(refused.value) == sorted(
        [(f"/{header}", "invalid_header"), ("/cron", "invalid_cron")]
    )


def test_all_that_is_wrong_with_a_pause_is_told_at_once(client: Client) -> None:
    body: Fields = {"note": "x" * 600, "until": "soon"}
    with pytest.raises(ApiError) as refused:
        client.call("POST", f"{PATH}/pause", body, {"If-Match": "3"})
    assert problems_of(refused.value) == [
        ("/If-Match", "invalid_header"),
        ("/note", "too_long"),
        ("/until", "invalid_time"),
    ]


def test_a_key_that_is_taken_is_told_at_its_field(client: Client) -> None:
    client.create(HELLO, key="hello")
    with pytest.raises(ApiError) as refused:
        client.create(HELLO | {"cron": "0 8 * * *"}, key="hello")
    assert (refused.value.status, refused.value.code) == (409, "schedule_exists")
    assert problems_of(refused.value) == [("/key", "taken")]


def of_action(caplog: pytest.LogCaptureFixture, action: str) -> list[tuple[object, str]]:
    """Return the users and the messages of the log's lines of an action."""
    lines = [one for one in caplog.records if vars(one).get("action") == action]
    return [(vars(one)["user"], one.getMessage()) for one in lines]


def test_a_quota_beside_other_problems_is_told_with_them_and_its_setting_is_logged(
    running: Product, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    set_again(monkeypatch, "QUOTA_GAP_SECONDS", "600")
    with caplog.at_level(logging.INFO, "duetick"):
        answer = put(running, {"cron": "* * * * *", "action": "remnd"})
    assert (answer["error"], told(answer)) == (
        "invalid_schedule",
        [("/action", "unknown_action"), ("/cron", "quota_exceeded")],
    )
    said = "refused: DUETICK_QUOTA_GAP_SECONDS sets the limit."
    assert of_action(caplog, "quota_reached") == [("you", said)]


def test_a_promise_that_an_action_does_not_keep_is_told_to_its_author_in_the_log(
    running: Product, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, "duetick"):
        put(running, {"policies": {"delivery": "effectively_once"}})
    ((user, said),) = of_action(caplog, "refused")
    assert (user, "transactional=True" in said) == ("you", True)


CALLS: dict[str, Callable[[Client], object]] = {
    "write": lambda client: client.put("hello", HELLO),
    "run": lambda client: client.run("hello"),
}


@pytest.mark.parametrize(("limit", "call"), [("WRITES", "write"), ("RUNS", "run")])
def test_a_rate_that_is_reached_is_logged_with_its_user_and_its_setting(
    running: Product,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    limit: str,
    call: str,
) -> None:
    running.client().put("hello", HELLO)
    set_again(monkeypatch, f"QUOTA_{limit}", "0")
    with caplog.at_level(logging.INFO, "duetick"), pytest.raises(ApiError):
        CALLS[call](running.client())
    said = f"refused: DUETICK_QUOTA_{limit} sets the limit."
    assert of_action(caplog, "quota_reached") == [("you", said)]

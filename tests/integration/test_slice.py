"""The whole path of a schedule, on SQLite: API, store, tick, HTTP, dispatch, action, history."""

import json
import logging
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from duetick.cli.tokens import mint
from duetick.domain.errors import ConfigurationError
from duetick.runtime.loading import load_flows

from tests.integration.local_product import NINE, Clock, Product, product

HELLO = {
    "cron": "0 9 * * *",
    "flow": "reminders",
    "action": "remind",
    "input": {"text": "good morning"},
}
HOSTILE = ["100%", "a%2Fb", "日本", "c\\d", "auth0|Abc", "k?#&= +", "a/b/c", "~41", "x..y"]


def test_a_schedule_put_through_the_api_fires_and_its_history_shows_it(
    running: Product, caplog: pytest.LogCaptureFixture
) -> None:
    status, put = running.call("PUT", "/api/schedules/hello", HELLO)
    assert (status, put["nextFireAt"]) == (201, "2026-12-01T09:00:00Z")
    assert running.tick()["claimed"] == 0

    running.clock.now = NINE + 2_000
    with caplog.at_level(logging.INFO, "duetick"):
        report = running.tick()
    assert (report["claimed"], report["delivered"]) == (1, 1)
    assert 2_000 <= report["lateness_ms"] < 12_000
    assert "you: good morning" in caplog.messages

    status, answer = running.call("GET", "/api/schedules/hello/history")
    (line,) = answer["history"]
    assert (line["state"], line["reason"], line["attempts"]) == ("succeeded", "fired", 1)
    assert line["nominalFireTime"] == "2026-12-01T09:00:00Z"
    assert running.call("GET", "/api/schedules/hello")[1]["nextFireAt"] == "2026-12-02T09:00:00Z"


def test_i04_a_second_tick_at_the_same_time_fires_nothing_again(running: Product) -> None:
    running.call("PUT", "/api/schedules/hello", HELLO)
    running.clock.now = NINE
    assert [running.tick()["claimed"], running.tick()["claimed"]] == [1, 0]


@pytest.mark.parametrize("key", HOSTILE)
def test_d05_hostile_keys_survive_the_round_trip(running: Product, key: str) -> None:
    from duetick.domain.identity import to_path

    assert running.call("PUT", f"/api/schedules/{to_path(key)}", HELLO)[0] == 201
    running.clock.now = NINE
    assert running.tick()["delivered"] == 1
    _, answer = running.call("GET", f"/api/schedules/{to_path(key)}/history")
    assert [line["state"] for line in answer["history"]] == ["succeeded"]


def test_an_action_that_raises_is_recorded_as_dead_and_not_tried_again(
    running: Product, monkeypatch: pytest.MonkeyPatch
) -> None:
    from flows import reminders

    def raises(*_: object, **__: object) -> None:
        raise RuntimeError("no mail server")

    monkeypatch.setattr(reminders.logger, "info", raises)
    running.call("PUT", "/api/schedules/hello", HELLO)
    running.clock.now = NINE
    assert running.tick()["failed"] == 1
    running.clock.now = NINE + 60_000
    assert running.tick()["claimed"] == 0
    (line,) = running.call("GET", "/api/schedules/hello/history")[1]["history"]
    assert (line["state"], line["reason"], line["attempts"]) == ("dead", "failed", 1)
    assert line["error"] == "The action failed."
    (kept,) = running.store.ledger.find("you", "hello")
    assert kept.error == "RuntimeError: no mail server"


def test_d18_a_schedule_deleted_after_the_claim_does_not_run(running: Product) -> None:
    running.call("PUT", "/api/schedules/hello", HELLO)
    running.clock.now = NINE
    (claimed,) = running.store.index.claim_due(NINE)
    assert running.call("DELETE", "/api/schedules/hello")[0] == 204
    from duetick.core.wire import delivery_json

    status, answer = running.call(
        "POST",
        "/api/flows/reminders/schedules/you/hello/dispatch",
        delivery_json(claimed),
        token=running.stack.secret,
    )
    assert (status, answer) == (200, {"status": "skipped", "reason": "schedule_deleted"})


def test_d17_dispatch_without_the_secret_is_refused_whatever_the_path(running: Product) -> None:
    for path in ("reminders/schedules/you/hello", "nowhere/schedules/x"):
        status, answer = running.call("POST", f"/api/flows/{path}/dispatch", {}, token="guess")
        assert (status, answer["error"]) == (401, "unauthorized")


def test_a_token_ends_after_twelve_hours_and_the_refusal_says_how_to_get_another(
    running: Product,
) -> None:
    old = running.stack.token
    running.clock.now += 12 * 3_600_000 - 1_000
    assert running.call("GET", "/api/schedules", token=old)[0] == 200
    running.clock.now += 1_000
    status, answer = running.call("GET", "/api/schedules", token=old)
    assert (status, answer["error"]) == (401, "unauthorized")
    assert "expired" in answer["message"]
    assert "12 hours" in answer["message"]
    assert "start it again" in answer["message"]
    assert running.call("GET", "/api/schedules", token=running.stack.token)[0] == 200


def test_a_call_without_a_users_token_is_refused(running: Product) -> None:
    for token in ("", "x.y.z", mint(b"another key", "you", 2**40), running.stack.secret):
        assert running.call("GET", "/api/schedules", token=token)[0] == 401


def test_an_operator_of_the_local_stack_is_neither_a_user_nor_a_machine(running: Product) -> None:
    """Each start makes another token, which no deployed stack knows."""
    assert running.call("GET", "/api/operations", token=running.stack.operator)[0] == 200
    for token in (running.stack.token, running.stack.secret, ""):
        assert running.call("GET", "/api/operations", token=token)[0] == 401
    path = "/api/flows/reminders/schedules/you/hello/dispatch"
    assert running.call("POST", path, {}, token=running.stack.operator)[0] == 401


@pytest.mark.parametrize("path", ["/api/users/you/schedules", "/api/users/ann/export"])
def test_an_operators_route_tells_a_users_token_from_a_wrong_one(
    running: Product, path: str
) -> None:
    old = running.stack.token
    for later in (0, 24 * 3_600_000):
        running.clock.now += later
        status, answer = running.call("GET", path, token=old)
        assert (status, answer["error"]) == (401, "unauthorized")
        assert "a user's token, and the token's own routes begin with /api/schedules" in str(
            answer["message"]
        )
        assert "DUETICK_OPERATOR" in answer["message"]
    status, answer = running.call("GET", path, token="guess")
    assert (status, answer["error"]) == (401, "unauthorized")
    assert "a user's token" not in answer["message"]
    status, answer = running.call("GET", "/api/schedules", token=running.stack.operator)
    assert (status, answer["message"]) == (
        401,
        "This is the operator's token; a user's route takes a user's.",
    )


@pytest.mark.parametrize("given", ["x" * 32, f'{{"secret":"{"x" * 32}"}}'])
def test_the_machines_secret_of_the_local_stack_can_be_chosen(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, given: str
) -> None:
    monkeypatch.setenv("DUETICK_DISPATCH_SECRET", given)
    with product(f"sqlite:///{tmp_path}/api.db", Clock(NINE), monkeypatch) as running:
        assert running.call("GET", "/api/flows/reminders/schedules", token="x" * 32)[0] == 200


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"cron": "75 * * * *"}, "75"),
        ({"cron": "0 0 9 * * *"}, "five"),
        ({"timezone": "Europe/Berln"}, "Europe/Berlin"),
        ({"action": "remnd"}, "remind"),
        ({"flow": "remnders"}, "reminders"),
        ({"input": {"text": 5}}, "input.text"),
        ({"inptu": 1}, "inptu"),
        ({"policies": {"grase": 1}}, "grace"),
    ],
)
def test_i17_a_bad_field_is_refused_with_what_is_right(
    running: Product, change: dict[str, object], says: str
) -> None:
    status, answer = running.call("PUT", "/api/schedules/hello", HELLO | change)
    assert (status, answer["error"]) == (400, "invalid_schedule")
    assert says in answer["message"]


def test_a_body_that_is_no_json_is_refused_and_says_so(running: Product) -> None:
    status, answer = running.call("PUT", "/api/schedules/hello", "cron=5")
    assert status == 400
    assert "JSON" in answer["message"]


def test_what_never_was_is_not_found(running: Product) -> None:
    for method, path in [
        ("GET", "/api/schedules/none"),
        ("DELETE", "/api/schedules/none"),
        ("GET", "/api/schedules/none/history"),
        ("GET", "/api/schedules/none/upcoming"),
    ]:
        status, answer = running.call(method, path)
        assert (status, answer["error"]) == (404, "schedule_not_found")


def test_pages_of_schedules_follow_one_another(running: Product) -> None:
    for number in range(5):
        running.call("PUT", f"/api/schedules/k{number}", HELLO)
    first = running.call("GET", "/api/schedules?limit=3")[1]
    rest = running.call("GET", f"/api/schedules?limit=3&cursor={first['cursor']}")[1]
    keys = [schedule["key"] for schedule in first["schedules"] + rest["schedules"]]
    assert (keys, rest["cursor"]) == ([f"k{n}" for n in range(5)], None)


def test_an_outside_caller_without_a_time_gets_the_newest_fire_time_once(running: Product) -> None:
    running.call("PUT", "/api/schedules/hello", HELLO)
    running.clock.now = NINE + 600_000
    path, secret = "/api/flows/reminders/schedules/you/hello/dispatch", running.stack.secret
    first = running.call("POST", path, token=secret)
    again = running.call("POST", path, token=secret)
    assert (first[0], first[1]["outcome"]) == (202, "succeeded")
    assert again == (200, {"status": "duplicate", "state": "succeeded"})
    assert running.tick()["claimed"] == 0


def test_i17_a_schedule_that_croniter_reads_otherwise_is_refused(
    running: Product, monkeypatch: pytest.MonkeyPatch
) -> None:
    from duetick.core import second_opinion

    odd = HELLO | {"cron": "0 0 30 2,3 1"}
    assert running.call("PUT", "/api/schedules/known", odd)[0] == 201
    monkeypatch.setattr(second_opinion, "_ask", lambda *_: [0])
    monkeypatch.setattr(second_opinion, "KNOWN_MISTAKES", ())
    status, answer = running.call("PUT", "/api/schedules/unknown", odd)
    assert (status, answer["error"]) == (400, "invalid_schedule")
    assert "two readers of cron disagree" in answer["message"]


def test_two_flows_of_one_name_are_refused_with_where_the_second_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from duetick import Flow
    from duetick.runtime import wiring
    from flows import reminders

    monkeypatch.setenv("DUETICK_STORE", "sqlite://")
    monkeypatch.setattr(reminders, "again", Flow("reminders"), raising=False)
    wiring.settings.cache_clear()
    wiring.flows.cache_clear()
    with pytest.raises(ConfigurationError, match=r"'reminders'; the second is in flows\.reminders"):
        wiring.flows()
    wiring.settings.cache_clear()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            "from duetick import Flow\nnightly = Flow('nightly'\n",
            r"mine\.py:2: SyntaxError: '\(' was ",
        ),
        ("def a():\nreturn 1\n", r"mine\.py:2: IndentationError: expected"),
        ("\nimport nowhere_at_all\n", r"mine\.py:2: ModuleNotFoundError: No module named"),
        ("\n\nFlow('nightly')\n", r"mine\.py:3: NameError: name 'Flow' is not defined"),
        ("import json\njson.loads('{')\n", r"mine\.py:2: JSONDecodeError: "),
        ("def deep():\n    raise RuntimeError\ndeep()\n", r"mine\.py:2: RuntimeError$"),
    ],
)
def test_a_flow_that_is_no_python_is_told_with_file_and_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, says: str
) -> None:
    package = tmp_path / f"flows_{tmp_path.name.replace('-', '_')}"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "mine.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ConfigurationError, match=f"^The flows cannot be loaded. .*{says}"):
        load_flows(package.name)


def test_a_package_of_flows_that_is_not_there_is_told() -> None:
    with pytest.raises(ConfigurationError, match=r"^The flows cannot be loaded\. ModuleNotFound"):
        load_flows("nowhere_at_all")


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Authorization": "é".encode().decode("latin-1")}, 401),
        ({"Content-Length": "abc"}, 411),
        ({"Content-Length": "-1"}, 411),
        ({"Content-Length": str(11 * 2**20)}, 413),
    ],
)
def test_odd_headers_get_an_answer(running: Product, headers: dict[str, str], status: int) -> None:
    connection = HTTPConnection(urlsplit(running.stack.server.url).netloc, timeout=60)
    connection.request("GET", "/api/users/ann/schedules", headers=headers)
    answer = connection.getresponse()
    assert (answer.status, set(json.loads(answer.read()))) == (status, {"error", "message"})
    connection.close()


def test_a_body_that_is_nested_too_deeply_is_refused(running: Product) -> None:
    status, answer = running.call("PUT", "/api/schedules/hello", "[" * 100_000)
    assert (status, answer["error"]) == (400, "invalid_schedule")

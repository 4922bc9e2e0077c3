"""O-01: the operations of operators are recorded, and can be read back."""

from urllib.parse import quote

import pytest
from duetick.core.operations import pseudonym
from duetick.domain.errors import StoreUnavailable
from duetick.domain.identity import to_path
from duetick.runtime import wiring

from tests.integration.api.asking import HELLO
from tests.integration.local_product import Product

PATH = "/api/users/ann/schedules/k"


def do(running: Product, method: str, path: str, body: object = None, why: str = "") -> int:
    """Make an operator's call a second after the one before. Return its status."""
    running.clock.now += 1_000
    headers = {"Duetick-Why": why} if why else {}
    return running.call(method, path, body, running.stack.operator, headers)[0]


def recorded(running: Product, query: str = "") -> list[dict[str, object]]:
    """The record, as an operator reads it."""
    path = f"/api/operations{query}"
    status, answer = running.call("GET", path, token=running.stack.operator)
    assert status == 200, answer
    return list(answer["operations"])


def short(one: dict[str, object]) -> tuple[object, ...]:
    """Return each operation in short: verb, target and outcome."""
    return one["verb"], one["user"], one["target"], one["why"], one["outcome"]


def test_o01_each_write_is_recorded_and_a_reading_is_not(running: Product) -> None:
    do(running, "PUT", PATH, HELLO)
    do(running, "GET", PATH)
    do(running, "POST", f"{PATH}/pause", {}, why="rain")
    do(running, "GET", "/api/users/ann/export")
    do(running, "DELETE", PATH, why=quote("für Ann: 100 %"))
    assert [short(one) for one in recorded(running)] == [
        ("delete_schedule", "ann", "k", "für Ann: 100 %", "done"),
        ("export_user", "ann", "", "", "done"),
        ("pause_schedule", "ann", "k", "rain", "done"),
        ("put_schedule", "ann", "k", "", "done"),
    ]
    assert {one["who"] for one in recorded(running)} == {"arn:aws:iam::000000000000:user/local"}


def test_o01_what_is_refused_is_recorded_with_the_refusal(running: Product) -> None:
    do(running, "DELETE", PATH)
    do(running, "PUT", PATH, {**HELLO, "cron": "75 * * * *"})
    outcomes = [one["outcome"] for one in recorded(running)]
    assert outcomes == ["invalid_schedule", "schedule_not_found"]


@pytest.mark.parametrize(
    ("why", "said"),
    [
        ("x" * 501, "has 501 characters; the most is 500."),
        ("a%0Ab", "holds the character U+000A; write one line of characters that can be seen."),
        ("%1B[31m", "holds the character U+001B; write one line of characters that can be seen."),
        ("%E2%80%AE", "holds the character U+202E; write one line of characters that can be seen."),
        ("%FF", "is not UTF-8 in percent-encoding."),
        ("%ED%A0%80", "is not UTF-8 in percent-encoding."),
    ],
)
def test_o01_a_reason_is_refused_with_its_own_rule(running: Product, why: str, said: str) -> None:
    headers = {"Duetick-Why": why}
    status, told = running.call("PUT", PATH, HELLO, running.stack.operator, headers)
    wrong = {"field": "/Duetick-Why", "code": "invalid_header", "message": said}
    assert (status, told["problems"]) == (400, [wrong])


def test_o01_a_text_that_names_no_user_is_refused_on_each_store(running: Product) -> None:
    path = "/api/operations?user=%00"
    status, told = running.call("GET", path, token=running.stack.operator)
    assert (status, told["error"]) == (400, "invalid_schedule_id")


def test_o01_a_reason_of_blanks_is_none(running: Product) -> None:
    assert do(running, "PUT", PATH, HELLO, why="%20%09") == 201
    assert [one["why"] for one in recorded(running)] == [""]


def test_o01_who_is_no_operator_is_recorded_nowhere(running: Product) -> None:
    running.call("PUT", "/api/schedules/k", HELLO, headers={"Duetick-Why": "rain"})
    running.call("DELETE", PATH, token="guess")
    assert recorded(running) == []


def test_o01_the_record_is_read_by_user_and_by_who(running: Product) -> None:
    for user in ("ann", "bob", "ann"):
        do(running, "PUT", f"/api/users/{user}/schedules/k", HELLO)
    assert [one["user"] for one in recorded(running, "?user=ann")] == ["ann", "ann"]
    assert len(recorded(running, "?who=user/local")) == 3
    assert recorded(running, "?who=somebody") == []
    path = "/api/operations?limit=2"
    _, first = running.call("GET", path, token=running.stack.operator)
    assert len(recorded(running, f"?limit=2&cursor={first['cursor']}")) == 1


@pytest.mark.parametrize("why", ["x" * 501, "a%0Ab"])
def test_o01_a_reason_that_cannot_be_recorded_is_refused(running: Product, why: str) -> None:
    assert do(running, "DELETE", PATH, why=why) == 400
    assert recorded(running) == []


def test_o01_an_erasure_is_kept_and_names_nobody(running: Product) -> None:
    do(running, "PUT", PATH, HELLO)
    do(running, "DELETE", "/api/users/ann", why="rain")
    (left,) = recorded(running)
    assert short(left) == ("erase_user", None, pseudonym("ann"), "rain", "done")


def test_o01_a_pause_of_a_user_is_about_the_user(running: Product) -> None:
    for scope in ("user:ann", "flow:ann", "all"):
        assert do(running, "PUT", f"/api/pauses/{to_path(scope)}", {"note": "night"}) == 200
        assert do(running, "DELETE", f"/api/pauses/{to_path(scope)}") == 200
    assert [one["user"] for one in recorded(running)] == [None] * 4 + ["ann"] * 2
    do(running, "DELETE", "/api/users/ann")
    assert "user:ann" not in str(recorded(running))


def test_o01_the_record_says_which_occurrences_and_how_much(running: Product) -> None:
    """Without that, nobody could tell afterwards which occurrences a delete of many has deleted."""
    calls: list[tuple[str, str, dict[str, object]]] = [
        ("POST", "all-occurrences/delete", {"user": "ann", "state": "dead", "label": "password=x"}),
        ("POST", "all-occurrences/cancel", {"flow": "mail", "from": "2026-12-01T09:00:00Z"}),
        ("POST", "occurrences/occ_1/retry?user=ann&key=k", {}),
        ("PUT", "limits/flow%3Amail", {"parallel": 5, "rate": 60, "note": "night"}),
        ("PUT", "pauses/all", {"until": "2027-01-01T00:00:00Z"}),
        ("POST", "users/ann/jobs/batch", {"jobs": [{}, {}]}),
        (
            "POST",
            "users/ann/jobs",
            {"flow": "reminders", "action": "remind", "input": {"text": "a"}},
        ),
        ("POST", "all-occurrences/delete", {"user": "\ud800", "key": {"a": "\n" * 999}}),
    ]
    for method, path, body in calls:
        do(running, method, f"/api/{path}", body)
    told = [(one["user"], one["target"]) for one in reversed(recorded(running))]
    assert told[:-1] == [
        ("ann", "state=dead label='password=[withheld]' user=ann"),
        (None, "flow=mail from=2026-12-01T09:00:00Z"),
        ("ann", "occ_1 user=ann"),
        (None, "flow:mail parallel=5 rate=60"),
        (None, "all until=2027-01-01T00:00:00Z"),
        ("ann", "jobs=2"),
        ("ann", "flow=reminders action=remind"),
    ]
    assert told[-1][0] is None
    do(running, "DELETE", "/api/users/ann")
    assert "ann" not in str(recorded(running))


def test_o01_what_is_done_to_an_occurrence_is_about_its_user(running: Product) -> None:
    """Otherwise the reason, which may tell of the user, would outlive an erasure."""
    running.client("ann").put("k", HELLO)
    running.client("ann").run("k")
    (ran,) = [one["id"] for one in running.client("ann").history("k")]
    assert do(running, "DELETE", f"/api/occurrences/{ran}", why="ann asked by phone") == 200
    assert do(running, "POST", "/api/occurrences/occ_1/retry") == 404
    told = [(one["user"], one["target"]) for one in recorded(running)]
    assert told == [(None, "occ_1"), ("ann", ran)]
    do(running, "DELETE", "/api/users/ann")
    assert "ann" not in str(recorded(running))


def test_o01_what_cannot_be_recorded_is_not_done(
    running: Product, monkeypatch: pytest.MonkeyPatch
) -> None:
    running.client("ann").put("k", HELLO)

    def refuse(_operation: object) -> None:
        raise StoreUnavailable("away")

    monkeypatch.setattr(wiring.store().shelf, "add_operation", refuse)
    assert do(running, "DELETE", PATH) == 503
    assert running.client("ann").get("k").status == 200

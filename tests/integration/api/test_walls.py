"""Two users, and every route: nothing of one reaches the other, and nobody learns that it is there.

A call for another user's thing is answered as one for a thing that never was: with the same status,
headers and body. A route of the published document without an attempt here fails the build.
"""

import json
from collections.abc import Callable
from importlib.resources import files
from urllib.parse import quote

import pytest
from duetick.domain.identity import to_path

from tests.integration.api.town import (
    IDEMPOTENCY,
    KEY,
    NEVER,
    OURS,
    SCHEDULE,
    THEIRS,
    WORK,
    Attempt,
    Town,
)

pytestmark = pytest.mark.slow

ONE = "/schedules/{key}"
PLAIN = [Attempt()]
SPAN = {"from": "2026-01-01T00:00:00Z", "to": "2026-01-02T00:00:00Z"}
CONDITIONAL = [
    Attempt(),
    Attempt(headers={"If-Match": "{etag}"}),
    Attempt(headers={"If-Match": "*"}),
]
ATTEMPTS: dict[tuple[str, str], list[Attempt]] = {
    ("GET", "/actions"): PLAIN,
    ("GET", "/flows"): PLAIN,
    ("POST", "/upcoming"): [Attempt({"cron": "@daily"})],
    ("POST", "/forecast"): [
        Attempt(),
        Attempt({"schedule": {"key": "{key}", "cron": "* * * * *"}}),
    ],
    ("GET", "/schedules"): PLAIN,
    ("POST", "/schedules"): [
        Attempt({**SCHEDULE, "key": "{key}"}),
        Attempt({**SCHEDULE, "key": "{key}"}, {"Idempotency-Key": IDEMPOTENCY}),
    ],
    ("GET", "/schedules/by-external/{key}"): PLAIN,
    ("GET", ONE): PLAIN,
    ("PUT", ONE): [
        Attempt(SCHEDULE, {"If-Match": "{etag}"}),
        Attempt(SCHEDULE, {"If-Match": "*"}),
        Attempt(SCHEDULE, {"If-None-Match": "*"}),
        Attempt(SCHEDULE),
    ],
    ("PATCH", ONE): [Attempt({"cron": "@daily"}, one.headers) for one in CONDITIONAL],
    ("DELETE", ONE): CONDITIONAL,
    ("POST", f"{ONE}/pause"): [Attempt({"note": "x"}, one.headers) for one in CONDITIONAL],
    ("POST", f"{ONE}/resume"): CONDITIONAL,
    ("POST", f"{ONE}/run"): [Attempt(), Attempt(headers={"Idempotency-Key": IDEMPOTENCY})],
    ("GET", f"{ONE}/upcoming"): PLAIN,
    ("GET", f"{ONE}/history"): PLAIN,
    ("GET", f"{ONE}/explain"): PLAIN,
    ("GET", f"{ONE}/timeline"): PLAIN,
    ("POST", "/schedules/batch"): [
        Attempt({"schedules": [{"key": "{key}", **SCHEDULE, "cron": "@daily"}]})
    ],
    ("POST", "/all-schedules/batch"): [
        Attempt({"schedules": [{"user": "bob", "key": "k", **SCHEDULE}]})
    ],
    ("GET", "/jobs"): PLAIN,
    ("POST", "/jobs"): [Attempt({**WORK, "key": "{key}"})],
    ("POST", "/jobs/batch"): [Attempt({"jobs": [{**WORK, "key": "{key}"}]})],
    ("GET", "/jobs/{key}"): PLAIN,
    ("POST", "/jobs/{key}/cancel"): PLAIN,
    ("GET", "/jobs/{key}/history"): PLAIN,
    ("GET", "/jobs/{key}/explain"): PLAIN,
    ("POST", f"{ONE}/backfills"): [Attempt({**SPAN, "dryRun": dry}) for dry in (True, False)],
    ("GET", "/backfills"): PLAIN,
    ("GET", "/backfills/{key}"): PLAIN,
    ("POST", "/backfills/{key}/stop"): PLAIN,
    ("POST", "/backfills/{key}/continue"): PLAIN,
    ("GET", "/export"): PLAIN,
    ("DELETE", ""): PLAIN,
    ("POST", f"{ONE}/mend"): PLAIN,
    ("GET", "/overview"): PLAIN,
    ("GET", "/workers"): PLAIN,
    ("GET", "/locks"): PLAIN,
    ("GET", "/all-schedules"): PLAIN,
    ("GET", "/unreadable"): PLAIN,
    ("GET", "/operations"): PLAIN,
    ("GET", "/occurrences"): PLAIN,
    ("GET", "/occurrences/{id}"): PLAIN,
    ("DELETE", "/occurrences/{id}"): PLAIN,
    ("POST", "/occurrences/{id}/retry"): PLAIN,
    ("POST", "/occurrences/{id}/cancel"): PLAIN,
    ("POST", "/all-occurrences/retry"): [Attempt({"dryRun": False})],
    ("POST", "/all-occurrences/cancel"): [Attempt({"dryRun": False, "state": "running"})],
    ("POST", "/all-occurrences/delete"): [Attempt({"dryRun": False})],
    ("GET", "/pauses"): PLAIN,
    ("PUT", "/pauses/{scope}"): [Attempt({"note": "x"})],
    ("DELETE", "/pauses/{scope}"): PLAIN,
    ("GET", "/static-schedules/{flow}/{id}"): PLAIN,
    ("GET", "/static-schedules/{flow}/{id}/history"): PLAIN,
    ("GET", "/static-schedules/{flow}/{id}/timeline"): PLAIN,
    ("GET", "/static-schedules/{flow}/{id}/explain"): PLAIN,
    ("POST", "/static-schedules/{flow}/{id}/pause"): [Attempt({"note": "x"})],
    ("POST", "/static-schedules/{flow}/{id}/resume"): PLAIN,
    ("POST", "/recover"): [Attempt({"how": "skip", "dryRun": False})],
    ("GET", "/limits"): PLAIN,
    ("PUT", "/limits/{scope}"): [Attempt({"parallel": 1, "note": "x"})],
    ("DELETE", "/limits/{scope}"): PLAIN,
}
PUBLISHED = [
    (method.upper(), path)
    for path, item in json.loads(files("duetick.api").joinpath("openapi.json").read_text())[
        "paths"
    ].items()
    for method in item
]
OF_USERS = (
    *("/api/schedules", "/api/actions", "/api/flows", "/api/forecast", "/api/jobs"),
    "/api/upcoming",
)
USERS = [one for one in PUBLISHED if one[1].startswith(OF_USERS)]
OPERATORS = [one for one in PUBLISHED if not one[1].startswith(OF_USERS)]
FORMS = (to_path, lambda text: quote(text, safe=""))
SECOND = ("~62ob", "%62ob", "bo%62", "%7E62ob", "~62~6F~62", "b%6fb")
"""Paths that named bob as well, and passed by a Deny of `/api/users/bob/*`."""


def route_of(path: str) -> str:
    """Return a published path without its prefix."""
    return path.removeprefix("/api/users/{user}").removeprefix("/api")


@pytest.mark.parametrize(("method", "path"), PUBLISHED)
def test_every_published_route_is_attempted(method: str, path: str) -> None:
    assert ATTEMPTS.get((method, route_of(path))), "describe an attempt of one user on another's"


@pytest.mark.parametrize(("method", "path"), USERS)
@pytest.mark.parametrize("form", FORMS)
def test_what_is_anothers_is_answered_like_what_never_was(
    town: Town, method: str, path: str, form: Callable[[str], str]
) -> None:
    token = town.product.stack.token_of(OURS)
    for attempt in ATTEMPTS[method, route_of(path)]:
        answers = []
        for key in town.names(path):
            target = path.replace("{key}", form(key))
            answers.append(town.send(method, target, attempt, token, key=key))
            town.forget_ours()
        theirs, never = answers
        assert theirs[0] != 400, "what cannot be read attempts nothing"
        assert theirs[0] == never[0]
        assert "canary" not in theirs[2] or attempt.body
        if theirs[0] >= 400:
            assert theirs == never


@pytest.mark.parametrize(("method", "path"), OPERATORS)
def test_a_users_token_opens_no_operators_route(town: Town, method: str, path: str) -> None:
    for attempt in ATTEMPTS[method, route_of(path)]:
        for token in (town.product.stack.token_of(OURS), town.product.stack.token_of(THEIRS)):
            answers = [
                town.send(
                    method,
                    path.format(user=user, key=KEY, id="occ_1", scope=f"user~3A{user}", flow="f"),
                    attempt,
                    token,
                    key=KEY,
                    user=user,
                )
                for user in (THEIRS, NEVER)
            ]
            assert answers[0] == answers[1]
            assert answers[0][0] == 401


@pytest.mark.parametrize(
    ("method", "path"),
    [one for one in PUBLISHED if "{user}" in one[1] and "{key}" in one[1]],
)
def test_an_operator_who_names_one_user_reaches_nothing_of_another(
    town: Town, method: str, path: str
) -> None:
    for attempt in ATTEMPTS[method, route_of(path)]:
        answers = []
        for key in town.names(path):
            target = path.format(user=OURS, key=to_path(key), id="occ_1")
            answers.append(town.send(method, target, attempt, town.product.stack.operator, key=key))
            town.forget_ours()
        assert answers[0][0] == answers[1][0]
        if answers[0][0] >= 400:
            assert answers[0] == answers[1]


@pytest.mark.parametrize("user", SECOND)
def test_d05_a_user_who_needs_no_escape_has_one_path(town: Town, user: str) -> None:
    for method, path in (("GET", "schedules"), ("GET", f"schedules/{KEY}"), ("GET", "export")):
        target = f"/api/users/{user}/{path}"
        status, _, body = town.send(method, target, Attempt(), town.product.stack.operator)
        assert (status, json.loads(body)["error"]) == (400, "invalid_schedule_id")


@pytest.mark.parametrize("user", ["ann@x.org", "ann%7E40x.org", "ann%7e40x.org", "~61nn%40x.org"])
def test_d05_a_user_who_needs_an_escape_has_one_path_too(town: Town, user: str) -> None:
    """A Deny of `/api/users/ann?40x.org/*` is passed by no other."""
    for method, path in (("GET", "schedules"), ("GET", f"schedules/{KEY}"), ("DELETE", "")):
        target = f"/api/users/{user}/{path}".rstrip("/")
        status, _, body = town.send(method, target, Attempt(), town.product.stack.operator)
        assert (status, json.loads(body)["error"]) == (400, "invalid_schedule_id")
    for right in ("ann~40x.org", "ann%40x.org"):
        target = f"/api/users/{right}/schedules"
        assert town.send("GET", target, Attempt(), town.product.stack.operator)[0] == 200


@pytest.mark.parametrize("key", ["a@b", "a%7E40b", "a%7e40b", "a%3Ab%3a"])
def test_d05_a_key_has_one_path_on_operators_routes(town: Town, key: str) -> None:
    target = f"/api/users/{THEIRS}/schedules/{key}"
    status, _, body = town.send("GET", target, Attempt(), town.product.stack.operator)
    assert (status, json.loads(body)["error"]) == (400, "invalid_schedule_id")


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("ann@x.org/k", 400),
        ("ann@x.org~2Fk", 400),
        ("ann%7E40x.org~2Fk", 400),
        ("ann%40x.org%2fk", 400),
        ("ann~40x.org~2Fk", 404),
        ("ann%40x.org%2Fk", 404),
        ("ann%40x.org/k", 404),
    ],
)
def test_d05_an_id_has_one_path_on_machines_routes(town: Town, path: str, status: int) -> None:
    target = f"/api/flows/reminders/schedules/{path}/dispatch"
    assert town.send("POST", target, Attempt(), town.product.stack.secret)[0] == status


def test_d05_a_key_that_needs_no_escape_has_one_path(town: Town) -> None:
    for token in (town.product.stack.token_of(OURS), town.product.stack.token_of(THEIRS)):
        status, _, body = town.send("GET", "/api/schedules/~74heirs", Attempt(), token)
        assert (status, json.loads(body)["error"]) == (400, "invalid_schedule_id")

"""Two users, and every route: nothing of one reaches the other, and nobody learns that it is there.

A call for what is another's is answered as a call for what never was: the same status, headers
and body. A route of the published document without an attempt here fails the build.
"""

import json
from collections.abc import Callable
from importlib.resources import files
from urllib.parse import quote

import pytest
from duetick.domain.identity import to_path

from tests.integration.api.town import (
    EXTERNAL,
    IDEMPOTENCY,
    KEY,
    NEVER,
    OURS,
    SCHEDULE,
    THEIRS,
    Attempt,
    Town,
)

ONE = "/schedules/{key}"
PLAIN = [Attempt()]
CONDITIONAL = [
    Attempt(),
    Attempt(headers={"If-Match": "{etag}"}),
    Attempt(headers={"If-Match": "*"}),
]
ATTEMPTS: dict[tuple[str, str], list[Attempt]] = {
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
    ("GET", "/export"): PLAIN,
    ("DELETE", ""): PLAIN,
}
PUBLISHED = [
    (method.upper(), path)
    for path, item in json.loads(files("duetick.api").joinpath("openapi.json").read_text())[
        "paths"
    ].items()
    for method in item
]
FORMS = (to_path, lambda text: quote(text, safe=""), lambda text: f"%{ord(text[0]):02x}{text[1:]}")


def route_of(path: str) -> str:
    """A published path without what stands before it."""
    return path.removeprefix("/api/users/{user}").removeprefix("/api")


@pytest.mark.parametrize(("method", "path"), PUBLISHED)
def test_every_published_route_is_attempted(method: str, path: str) -> None:
    assert ATTEMPTS.get((method, route_of(path))), "describe an attempt of one user on another's"


@pytest.mark.parametrize(("method", "path"), [one for one in PUBLISHED if "{user}" not in one[1]])
@pytest.mark.parametrize("form", FORMS)
def test_what_is_anothers_is_answered_like_what_never_was(
    town: Town, method: str, path: str, form: Callable[[str], str]
) -> None:
    token = town.product.stack.token_of(OURS)
    for attempt in ATTEMPTS[method, route_of(path)]:
        answers = []
        for key in (EXTERNAL if "external" in path else KEY, "never-was"):
            target = path.replace("{key}", form(key))
            answers.append(town.send(method, target, attempt, token, key=key))
            town.forget_ours()
        theirs, never = answers
        assert theirs[0] != 400, "what cannot be read attempts nothing"
        assert theirs[0] == never[0]
        assert "canary" not in theirs[2] or attempt.body
        if theirs[0] >= 400:
            assert theirs == never


@pytest.mark.parametrize(("method", "path"), [one for one in PUBLISHED if "{user}" in one[1]])
def test_a_users_token_opens_no_operators_route(town: Town, method: str, path: str) -> None:
    for attempt in ATTEMPTS[method, route_of(path)]:
        for token in (town.product.stack.token_of(OURS), town.product.stack.token_of(THEIRS)):
            answers = [
                town.send(
                    method, path.format(user=user, key=KEY), attempt, token, key=KEY, user=user
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
        for key in (EXTERNAL if "external" in path else KEY, "never-was"):
            target = path.format(user=OURS, key=to_path(key))
            answers.append(town.send(method, target, attempt, town.product.stack.secret, key=key))
            town.forget_ours()
        assert answers[0][0] == answers[1][0]
        if answers[0][0] >= 400:
            assert answers[0] == answers[1]

"""Two users, and every route: nothing of one reaches the other, and nobody learns that it is there.

A call for what is another's is answered as a call for what never was: the same status, headers
and body. A route of the published document without an attempt here fails the build.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from http.client import HTTPConnection
from importlib.resources import files
from typing import Any
from urllib.parse import quote, urlsplit

import pytest
from duetick.client import Client, Fields
from duetick.domain.identity import to_path

from tests.integration.api.conftest import NINE
from tests.integration.local_product import Product

OURS, THEIRS, NEVER = "ann", "bob", "nobody"
KEY, EXTERNAL, IDEMPOTENCY = "theirs", "their-project", "their-order"
SCHEDULE: Fields = {
    "cron": "* * * * *",
    "flow": "reminders",
    "action": "remind",
    "input": {"text": "canary"},
}
VOLATILE = ("date", "server", "location")


@dataclass(frozen=True, slots=True)
class Attempt:
    """What is sent along on a route."""

    body: Mapping[str, Any] | None = None
    headers: Mapping[str, str] = field(default_factory=dict)


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


@dataclass(frozen=True, slots=True)
class Town:
    """A product in which bob has schedules with a past, and ann has none."""

    product: Product
    theirs: Client
    etag: str

    def send(
        self, method: str, path: str, attempt: Attempt, token: str, **names: str
    ) -> tuple[int, dict[str, str], str]:
        """Status, headers and body, with the names in it made anonymous."""
        connection = HTTPConnection(urlsplit(self.product.stack.server.url).netloc, timeout=60)
        filled = {"etag": self.etag, **names}
        headers = {name: _fill(value, filled) for name, value in attempt.headers.items()}
        body = None if attempt.body is None else _fill(json.dumps(attempt.body), filled)
        headers["Authorization"] = f"Bearer {token}"
        connection.request(method, path, body, headers)
        answer = connection.getresponse()
        text = answer.read().decode()
        connection.close()
        shown = {n.lower(): v for n, v in answer.getheaders() if n.lower() not in VOLATILE}
        for name in names.values():
            text = text.replace(name, "*")
        shown["content-length"] = str(len(text))
        return answer.status, shown, text

    def everything(self) -> Fields:
        """All that is kept of bob."""
        return self.product.operator(THEIRS).export()

    def forget_ours(self) -> None:
        """Whatever an attempt made of ann's own."""
        self.product.operator(OURS).erase()


def _fill(text: str, names: Mapping[str, str]) -> str:
    for name, value in names.items():
        text = text.replace(f"{{{name}}}", value)
    return text


def known_by_a_function(running: Product) -> None:
    """Users=lambda: the authorizer says a principal, and of bob in whatever else it says."""
    users = running.stack.server.routes[0]

    def authorize(header: str) -> dict[str, Any] | None:
        granted = users.authorize(header)
        if granted is None:
            return None
        more = {"claims": f'{{"sub": "{THEIRS}"}}', "sub": THEIRS, "integrationLatency": 5}
        return {**more, "principalId": granted["claims"]["sub"]}

    running.stack.server.routes[0] = replace(users, authorize=authorize)


@pytest.fixture(params=["cognito", "lambda"])
def town(request: pytest.FixtureRequest, running: Product) -> Iterator[Town]:
    """Bob's things, and ann; users are known by their token's claims, or by a function."""
    if request.param == "lambda":
        known_by_a_function(running)
    running.operator(THEIRS).put(KEY, SCHEDULE | {"externalId": EXTERNAL})
    bob = running.client(THEIRS)
    bob.create(SCHEDULE, idempotency_key=IDEMPOTENCY)
    bob.run(KEY, idempotency_key=IDEMPOTENCY)
    running.clock.now = NINE
    running.tick()
    made = Town(running, bob, bob.get(KEY).etag)
    before = made.everything()
    yield made
    assert made.everything() == before, "something of bob's was changed"


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


TRICKS = [
    f"/api/schedules/{THEIRS}/{KEY}",
    f"/api/schedules/{THEIRS}%2F{KEY}",
    f"/api/schedules/{THEIRS}~2F{KEY}",
    f"/api/schedules/..%2F{THEIRS}%2F{KEY}",
    f"/api/schedules/~2E~2E~2F{THEIRS}~2F{KEY}",
    f"/api/schedules/../users/{THEIRS}/schedules/{KEY}",
    f"/api/schedules/%2e%2e/users/{THEIRS}/schedules/{KEY}",
    f"/api/schedules/{KEY}?user={THEIRS}",
    f"/api/schedules/{KEY}?userId={THEIRS}&user_id={THEIRS}",
    f"/api/schedules/{KEY}%00",
    f"/api/schedules/{KEY};user={THEIRS}",
    f"/api//users/{THEIRS}/schedules/{KEY}",
    f"//api/users/{THEIRS}/schedules/{KEY}",
    f"/API/users/{THEIRS}/schedules/{KEY}",
    f"/api/schedules/by-external/{EXTERNAL}",
    f"/api/schedules/{KEY.upper()}",
    "/api/schedules/U%23bob%2FS%23theirs",
]
POSING: list[dict[str, str]] = [
    {"X-User-Id": THEIRS},
    {"X-Forwarded-User": THEIRS, "X-Amzn-Oidc-Identity": THEIRS},
    {"X-HTTP-Method-Override": "DELETE"},
    {"X-Original-Url": f"/api/users/{THEIRS}/schedules/{KEY}"},
    {"Cookie": f"user={THEIRS}", "Forwarded": f"for={THEIRS}"},
]


@pytest.mark.parametrize("path", TRICKS)
@pytest.mark.parametrize("method", ["GET", "DELETE"])
def test_no_path_leads_to_anothers(town: Town, method: str, path: str) -> None:
    status, _, body = town.send(method, path, Attempt(), town.product.stack.token_of(OURS))
    assert status in (400, 401, 404, 405), body
    assert "canary" not in body


@pytest.mark.parametrize("headers", POSING)
def test_no_header_makes_one_user_another(town: Town, headers: dict[str, str]) -> None:
    token = town.product.stack.token_of(OURS)
    path = f"/api/schedules/{KEY}"
    posing, plain = (town.send("GET", path, Attempt(headers=each), token) for each in (headers, {}))
    assert posing == plain
    assert posing[0] == 404


@pytest.mark.parametrize("name", ["user", "userId", "user_id", "principal", "owner"])
def test_no_field_of_a_body_names_another_user(town: Town, name: str) -> None:
    attempt = Attempt({**SCHEDULE, name: THEIRS})
    status, _, body = town.send(
        "PUT", "/api/schedules/mine", attempt, town.product.stack.token_of(OURS)
    )
    assert status == 400
    assert name in body


def test_a_cursor_of_one_shows_the_other_nothing_but_their_own(town: Town) -> None:
    ours = town.product.client(OURS)
    for number in range(3):
        town.theirs.put(f"k{number}", SCHEDULE)
        ours.put(f"k{number}", SCHEDULE)
    page = town.theirs.call("GET", "/api/schedules?limit=1").body
    seen = ours.call("GET", f"/api/schedules?cursor={page['cursor']}").body["schedules"]
    assert isinstance(seen, list)
    assert {one["key"] for one in seen if isinstance(one, dict)} <= {"k0", "k1", "k2"}
    history = town.theirs.call("GET", f"/api/schedules/{KEY}/history?limit=1").body["cursor"]
    assert history
    past = ours.call("GET", f"/api/schedules/{KEY}2/history?cursor={history}").body["history"]
    assert past == []
    for number in range(3):
        town.theirs.delete(f"k{number}")


def test_an_idempotency_key_of_one_makes_the_other_a_schedule_of_their_own(town: Town) -> None:
    ours = town.product.client(OURS)
    made = ours.create(SCHEDULE | {"input": {"text": "mine"}}, idempotency_key=IDEMPOTENCY)
    assert made.body["input"] == {"text": "mine"}
    assert [one["key"] for one in ours.list()] == [made.body["key"]]


def test_an_outside_id_does_not_tell_whether_another_has_it(town: Town) -> None:
    token = town.product.stack.token_of(OURS)
    answers = [
        town.send(
            "PUT",
            "/api/schedules/mine",
            Attempt({**SCHEDULE, "externalId": name}),
            token,
            name=name,
        )
        for name in (EXTERNAL, "free-id")
    ]
    assert answers[0] == answers[1]
    assert answers[0][0] == 400

"""Two users on the deployed stack: neither reaches anything of the other's.

Once the users are Cognito's, once a Lambda authorizer names them.
"""

import json
from collections.abc import Iterator, Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.town import AUTHORIZER, TOKENS, Town
from tests.lab.agents import Calls, official_agent
from tests.lab.emulated_aws import EmulatedAws
from tests.lab.sam import Sam

HELLO = {
    "cron": "0 9 1 1 *",
    "flow": "reminders",
    "action": "remind",
    "input": {"text": "canary"},
}
PAGE = "https://app.example.com"
PATHS = json.loads(files("duetick.api").joinpath("openapi.json").read_text())["paths"]
OF_USERS = (
    *("/api/schedules", "/api/actions", "/api/flows", "/api/forecast", "/api/jobs"),
    "/api/upcoming",
)
OWN = [
    (method.upper(), path)
    for path, item in PATHS.items()
    for method in item
    if path.startswith(OF_USERS)
]
JOB = {name: HELLO[name] for name in ("flow", "action", "input")}
BODIES: dict[tuple[str, str], Any] = {
    ("POST", "/api/schedules"): {**HELLO, "key": "theirs"},
    ("PUT", "/api/schedules/{key}"): HELLO,
    ("PATCH", "/api/schedules/{key}"): {"cron": "@daily"},
    ("POST", "/api/upcoming"): {"cron": "@daily"},
    ("POST", "/api/schedules/batch"): {"schedules": [{**HELLO, "key": "theirs"}]},
    ("POST", "/api/forecast"): {"schedule": {"cron": "@daily", "copies": 2}},
    ("POST", "/api/jobs"): JOB,
    ("POST", "/api/jobs/batch"): {"jobs": [JOB]},
}
MANY_WRITES = {"WritesPerMinute": "1000000"}
"""Both users write in every test here: neither may meet a limit of a minute on the way."""

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module", params=["cognito", "lambda"])
def town(
    request: pytest.FixtureRequest,
    sam: Sam,
    emulated_aws: EmulatedAws,
    quiet: Path,
    parameters: dict[str, str],
) -> Town:
    """The stack with users of either kind, and bob's schedule."""
    parameters = {**parameters, "AllowedOrigin": PAGE, "Agents": "true", **MANY_WRITES}
    if request.param == "lambda":
        given = {**parameters, "Users": "lambda", "AuthorizerArn": _authorizer(emulated_aws)}
        outputs = sam.deploy(emulated_aws, quiet, "village", given)
        ann, bob = TOKENS
    else:
        outputs = sam.deploy(emulated_aws, quiet, "town", parameters)
        ann, bob = (_token(emulated_aws, outputs, name) for name in ("ann", "bob"))
    made = Town(emulated_aws, outputs, ann, bob)
    assert made.call(bob, "PUT", "/api/schedules/theirs", HELLO)[0] == 201
    return made


@pytest.fixture
def cleared(town: Town) -> Iterator[None]:
    """After a test that fills the town, only bob's schedule is left there."""
    yield
    town.forget(town.ann)
    town.forget(town.bob, but="theirs")


def _authorizer(aws: EmulatedAws) -> str:
    """Return a function that knows two tokens, and names bob everywhere but in the principal."""
    return aws.function("authorizer", AUTHORIZER)


def _token(aws: EmulatedAws, outputs: Mapping[str, str], name: str) -> str:
    """Sign a new user in. Return the token."""
    return aws.sign_in(outputs["UserPoolId"], outputs["UserPoolClientId"], name)


def _of_key(body: dict[str, Any] | None, key: str) -> dict[str, Any] | None:
    """Return a body with another key, wherever it has one."""
    if body and "schedules" in body:
        return {"schedules": [{**one, "key": key} for one in body["schedules"]]}
    return {**body, "key": key} if body and "key" in body else body


@pytest.mark.parametrize(("method", "path"), OWN)
def test_what_is_anothers_is_answered_like_what_never_was(
    town: Town, method: str, path: str
) -> None:
    before = town.call(town.bob, "GET", "/api/schedules/theirs")
    body = BODIES.get((method, path))
    answers = []
    for key in ("theirs", "never-was"):
        given = _of_key(body, key)
        answers.append(town.call(town.ann, method, path.replace("{key}", key), given))
        town.call(town.ann, "DELETE", f"/api/schedules/{key}")
    assert answers[0][0] != 400, "what cannot be read attempts nothing: give it a body in BODIES"
    assert answers[0][0] == answers[1][0]
    if answers[0][0] >= 400:
        assert answers[0] == answers[1]
    assert town.call(town.bob, "GET", "/api/schedules/theirs") == before


@pytest.mark.parametrize(("method", "path"), OWN)
def test_without_a_genuine_token_nothing_is_answered(town: Town, method: str, path: str) -> None:
    forged = town.bob[:-4] + ("AAAA" if not town.bob.endswith("AAAA") else "BBBB")
    for token in (None, "x.y.z", forged):
        assert town.call(token, method, path.replace("{key}", "theirs"), {})[0] == 401


@pytest.mark.parametrize(
    "path",
    [
        "/api/schedules/..%2Fbob%2Ftheirs",
        "/api/schedules/~2E~2E~2Fbob~2Ftheirs",
        "/api/schedules/bob~2Ftheirs",
        "/api/schedules/theirs%00",
        "/api/users/bob/schedules/theirs",
        "/api/schedules/../users/bob/schedules/theirs",
        "/api//users/bob/schedules/theirs",
        "/api/schedules/THEIRS",
        "/api/schedules/Theirs",
        "/api/schedules/%74heirs%2f",
        "/api/schedules/~74heirs",
        "/api/schedules/%2574heirs",
        "/api/schedules/th%65irs%20",
        "/api/schedules/th%D0%B5irs",
        "/api/schedules/%EF%BD%94heirs",
        "/api/schedules/theirs;user=bob",
        "/api/schedules/theirs?user=bob&userId=bob",
        "/api/schedules/by-external/theirs",
        "/api/schedules/" + "x" * 5_000,
    ],
)
def test_no_path_leads_to_anothers(town: Town, path: str) -> None:
    status, answer = town.call(town.ann, "GET", path)
    assert 400 <= status < 500
    assert "canary" not in str(answer)


POSING = [
    {"X-User-Id": "bob"},
    {"X-Amzn-Oidc-Identity": "bob", "X-Amzn-Oidc-Data": "bob"},
    {"X-Forwarded-User": "bob", "X-Forwarded-For": "127.0.0.1", "Forwarded": "for=bob"},
    {"X-Amzn-Requestid": "bob", "X-Amz-Invocation-Type": "Event"},
    {"X-HTTP-Method-Override": "DELETE", "X-Method-Override": "DELETE"},
    {"X-Original-Url": "/api/users/bob/schedules/theirs"},
    {"X-Rewrite-Url": "/api/users/bob/schedules/theirs", "X-Forwarded-Prefix": "/api/users/bob"},
    {"Cookie": "user=bob; sub=bob"},
]


@pytest.mark.parametrize("headers", POSING)
def test_no_header_makes_one_user_another(town: Town, headers: dict[str, str]) -> None:
    before = town.call(town.bob, "GET", "/api/schedules/theirs")
    posing = town.call(town.ann, "GET", "/api/schedules", headers=headers)
    assert posing == (200, {"schedules": [], "cursor": None})
    assert town.call(town.ann, "GET", "/api/schedules/theirs", headers=headers)[0] == 404
    assert town.call(town.bob, "GET", "/api/schedules/theirs") == before


def test_of_two_tokens_none_adds_to_the_other(town: Town) -> None:
    """Sent twice, or joined as proxies join them: never bob's answer to ann."""
    both = f"Bearer {town.ann}, Bearer {town.bob}"
    answer = town.send(None, "GET", "/api/schedules/theirs", headers={"Authorization": both})
    assert answer.status in (400, 401, 403, 404)
    second = {"authorization": f"Bearer {town.bob[:-4]}AAAA"}
    assert "canary" not in town.send(town.ann, "GET", "/api/schedules/theirs", None, second).body


CONDITIONAL = [
    ("PUT", "/api/schedules/{key}", HELLO),
    ("PATCH", "/api/schedules/{key}", {"cron": "@daily"}),
    ("DELETE", "/api/schedules/{key}", None),
    ("POST", "/api/schedules/{key}/pause", {"note": "x"}),
    ("POST", "/api/schedules/{key}/resume", None),
]


@pytest.mark.parametrize(("method", "path", "body"), CONDITIONAL)
def test_an_etag_of_one_opens_nothing_to_the_other(
    town: Town, method: str, path: str, body: object
) -> None:
    before = town.call(town.bob, "GET", "/api/schedules/theirs")
    tag = town.etag
    for headers in ({"If-Match": tag}, {"If-Match": "*"}, {"If-Match": f'"0-0", {tag}'}):
        theirs, never = (
            town.call(town.ann, method, path.replace("{key}", key), body, headers)
            for key in ("theirs", "never-was")
        )
        assert theirs == never
        assert theirs[0] in (404, 412)
    assert town.call(town.bob, "GET", "/api/schedules/theirs") == before


@pytest.mark.usefixtures("cleared")
def test_a_cursor_of_one_shows_the_other_nothing_but_their_own(town: Town) -> None:
    for token in (town.ann, town.bob):
        for number in range(3):
            town.call(token, "PUT", f"/api/schedules/k{number}", HELLO)
            town.call(token, "POST", f"/api/schedules/k{number}/run", {})
    cursor = town.call(town.bob, "GET", "/api/schedules?limit=1")[1]["cursor"]
    _, page = town.call(town.ann, "GET", f"/api/schedules?cursor={cursor}")
    assert {one["key"] for one in page["schedules"]} == {"k1", "k2"}
    town.call(town.bob, "POST", "/api/schedules/k0/run", {})
    past = "/api/schedules/{}/history?limit=1"
    cursor = town.call(town.bob, "GET", past.format("k0"))[1]["cursor"]
    assert cursor
    mine = town.call(town.ann, "GET", "/api/schedules/k0/history")[1]["history"]
    seen = town.call(town.ann, "GET", f"{past.format('k0')}&cursor={cursor}")[1]["history"]
    assert {line["id"] for line in seen} <= {line["id"] for line in mine}
    theirs, never = (
        town.call(town.ann, "GET", f"/api/schedules/{key}/history?cursor={cursor}")
        for key in ("theirs", "never-was")
    )
    assert theirs == never


@pytest.mark.usefixtures("cleared")
def test_an_idempotency_key_of_one_is_nothing_to_the_other(town: Town) -> None:
    once = {"Idempotency-Key": "order-7"}
    _, made = town.call(town.bob, "POST", "/api/schedules", HELLO, once)
    other = {**HELLO, "input": {"text": "mine"}}
    status, mine = town.call(town.ann, "POST", "/api/schedules", other, once)
    assert (status, mine["input"]) == (201, {"text": "mine"})
    assert town.call(town.bob, "GET", f"/api/schedules/{made['key']}")[1]["input"] == HELLO["input"]
    ran = [
        town.call(token, "POST", f"/api/schedules/{made['key']}/run", {}, once)
        for token in (town.bob, town.ann, town.bob, town.ann)
    ]
    assert [status for status, _ in ran] == [202] * 4
    assert ran[0] == ran[2]
    assert ran[1] == ran[3]
    assert ran[0][1]["nominalFireTime"] != ran[1][1]["nominalFireTime"]
    theirs, never = (
        town.call(town.ann, "POST", f"/api/schedules/{key}/run", {}, once)
        for key in ("theirs", "never-was")
    )
    assert theirs == never
    assert theirs[0] == 404


def test_a_users_token_does_not_open_the_operators_api(town: Town) -> None:
    for path in ("/api/users/bob/schedules", "/api/users/bob/export"):
        answer = town.aws.rest_call(
            town.outputs["ApiId"], "v1", "GET", path, signed=False, token=town.bob
        )
        assert answer.status in (401, 403)
        assert "canary" not in answer.body


def test_a_user_runs_a_schedule_by_hand(town: Town) -> None:
    status, ran = town.call(town.bob, "POST", "/api/schedules/theirs/run", {})
    assert status == 202, ran
    assert ran["state"] == "succeeded"
    assert town.call(town.ann, "POST", "/api/schedules/theirs/run", {})[0] == 404


def test_a_method_that_a_route_does_not_take_is_refused_with_those_it_does(town: Town) -> None:
    answer = town.send(town.bob, "POST", "/api/schedules/theirs")
    told = {name.lower(): value for name, value in answer.headers.items()}
    assert (answer.status, told["allow"]) == (405, "DELETE, GET, PATCH, PUT")


@pytest.mark.parametrize("path", ["/api/schedules", "/api/schedules/theirs/history", "/api/mcp"])
def test_a_page_asks_without_a_token_what_it_may_do_and_is_told_nothing_else(
    town: Town, path: str
) -> None:
    answer = town.send(None, "OPTIONS", path, headers={"Origin": PAGE})
    told = {name.lower(): value for name, value in answer.headers.items()}
    assert (answer.status, answer.body) == (204, "")
    assert told["access-control-allow-origin"] == PAGE
    assert "Authorization" in told["access-control-allow-headers"]


def test_a_page_may_read_what_its_user_is_answered(town: Town) -> None:
    answer = town.send(town.bob, "GET", "/api/schedules/theirs", headers={"Origin": PAGE})
    told = {name.lower(): value for name, value in answer.headers.items()}
    assert (answer.status, told["access-control-allow-origin"]) == (200, PAGE)
    assert "ETag" in told["access-control-expose-headers"]


NAMED = (
    *("get_schedule", "change_schedule", "pause_schedule", "resume_schedule", "delete_schedule"),
    *("schedule_history", "explain_schedule"),
)
"""The tools that take the key of a schedule."""


@pytest.mark.usefixtures("cleared")
def test_an_agent_acts_for_its_user_and_for_nobody_else(town: Town) -> None:
    """The official SDK, in each of its modes, through the gateway and its authorizer."""
    town.call(town.bob, "PUT", "/api/schedules/bobs", HELLO)
    before = town.call(town.bob, "GET", "/api/schedules/bobs")
    assert before[0] == 200
    calls: Calls = [
        ("create_schedule", {**HELLO, "key": "mine"}),
        ("list_schedules", {"state": "all"}),
        ("delete_schedule", {"key": "mine"}),
        *((tool, {"key": key}) for tool in NAMED for key in ("bobs", "nobodys")),
    ]
    host = {"Host": f"{town.outputs['UsersApiId']}.execute-api.localhost:{town.aws.port}"}
    url = f"http://127.0.0.1:{town.aws.port}/v1/api/mcp"
    for mode, told in official_agent(url, town.ann, calls, host).items():
        made, listed, deleted, *others = told["results"]
        assert made["structuredContent"]["key"] == "mine", mode
        assert [one["key"] for one in listed["structuredContent"]["schedules"]] == ["mine"], mode
        assert deleted["structuredContent"] == {"deleted": "mine"}, mode
        assert others[0::2] == others[1::2], mode
        assert "canary" not in str(others), mode
    assert town.call(town.bob, "GET", "/api/schedules/bobs") == before


@pytest.mark.parametrize("method", ["GET", "DELETE"])
def test_an_agent_that_asks_for_a_stream_is_told_that_there_is_none(
    town: Town, method: str
) -> None:
    answer = town.send(town.bob, method, "/api/mcp")
    told = {name.lower(): value for name, value in answer.headers.items()}
    assert (answer.status, told["allow"]) == (405, "POST")
    assert town.send(None, method, "/api/mcp").status == 401


@pytest.mark.parametrize("token", [None, "x.y.z"])
def test_no_agent_gets_in_without_a_genuine_token(town: Town, token: str | None) -> None:
    ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    assert town.call(token, "POST", "/api/mcp", ping)[0] == 401
    assert town.call(town.bob, "POST", "/api/mcp", ping) == (
        200,
        {"jsonrpc": "2.0", "id": 1, "result": {}},
    )

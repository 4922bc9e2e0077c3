"""Two real Cognito users on the deployed stack: neither reaches anything of the other's."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

import pytest

from tests.e2e.conftest import TEMPLATE
from tests.lab.emulated_aws import EmulatedAws
from tests.lab.sam import Sam
from tests.lab.this_machine import ARCHITECTURE

HELLO = {
    "cron": "* * * * *",
    "flow": "reminders",
    "action": "remind",
    "input": {"text": "canary"},
}
SIGN_IN = "only for this Test 1!"
PATHS = json.loads(files("duetick.api").joinpath("openapi.json").read_text())["paths"]
OWN = [
    (method.upper(), path)
    for path, item in PATHS.items()
    for method in item
    if "{user}" not in path
]
BODIES: dict[tuple[str, str], Any] = {
    ("POST", "/api/schedules"): {**HELLO, "key": "theirs"},
    ("PUT", "/api/schedules/{key}"): HELLO,
    ("PATCH", "/api/schedules/{key}"): {"cron": "@daily"},
}

pytestmark = pytest.mark.slow


@dataclass(frozen=True, slots=True)
class Town:
    """A stack with users, and two of them signed in."""

    aws: EmulatedAws
    outputs: Mapping[str, str]
    ann: str
    bob: str

    def call(
        self,
        token: str | None,
        method: str,
        path: str,
        body: object = None,
        headers: Mapping[str, str] | None = None,
    ) -> tuple[int, Any]:
        """A call of the users' API: the status and the JSON."""
        text = "" if body is None else json.dumps(body)
        answer = self.aws.rest_call(
            self.outputs["UsersApiId"], "v1", method, path,
            body=text, token=token, signed=False, headers=headers,
        )  # fmt: skip
        return answer.status, json.loads(answer.body) if answer.body else None


@pytest.fixture(scope="module")
def town(sam: Sam, emulated_aws: EmulatedAws, tmp_path_factory: pytest.TempPathFactory) -> Town:
    """The stack with Cognito, and bob's schedule."""
    parameters = {
        "Architecture": ARCHITECTURE,
        "ApiDomain": f"execute-api.localhost:{emulated_aws.port}",
        "ApiAddress": emulated_aws.endpoint,
        "Users": "cognito",
    }
    built = sam.build(TEMPLATE, tmp_path_factory.mktemp("built"), parameters)
    outputs = sam.deploy(emulated_aws, built, "town", parameters)
    ann, bob = (_token(emulated_aws, outputs, name) for name in ("ann", "bob"))
    made = Town(emulated_aws, outputs, ann, bob)
    assert made.call(bob, "PUT", "/api/schedules/theirs", HELLO)[0] == 201
    return made


def _token(aws: EmulatedAws, outputs: Mapping[str, str], name: str) -> str:
    """A new user, signed in."""
    cognito = aws.session().client("cognito-idp", endpoint_url=aws.endpoint)
    pool, client = outputs["UserPoolId"], outputs["UserPoolClientId"]
    cognito.admin_create_user(UserPoolId=pool, Username=name, MessageAction="SUPPRESS")
    cognito.admin_set_user_password(
        UserPoolId=pool, Username=name, Password=SIGN_IN, Permanent=True
    )
    signed_in = cognito.admin_initiate_auth(
        UserPoolId=pool,
        ClientId=client,
        AuthFlow="ADMIN_USER_PASSWORD_AUTH",
        AuthParameters={"USERNAME": name, "PASSWORD": SIGN_IN},
    )
    return signed_in["AuthenticationResult"]["IdToken"]


@pytest.mark.parametrize(("method", "path"), OWN)
def test_what_is_anothers_is_answered_like_what_never_was(
    town: Town, method: str, path: str
) -> None:
    before = town.call(town.bob, "GET", "/api/schedules/theirs")
    body = BODIES.get((method, path))
    answers = []
    for key in ("theirs", "never-was"):
        given = body | {"key": key} if body and "key" in body else body
        answers.append(town.call(town.ann, method, path.replace("{key}", key), given))
        town.call(town.ann, "DELETE", f"/api/schedules/{key}")
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
    ],
)
def test_no_path_leads_to_anothers(town: Town, path: str) -> None:
    status, answer = town.call(town.ann, "GET", path)
    assert 400 <= status < 500
    assert "canary" not in str(answer)


@pytest.mark.parametrize("header", ["X-User-Id", "X-Amzn-Oidc-Identity", "X-Forwarded-User"])
def test_no_header_makes_one_user_another(town: Town, header: str) -> None:
    posing = town.call(town.ann, "GET", "/api/schedules", headers={header: "bob"})
    assert posing == (200, {"schedules": [], "cursor": None})


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

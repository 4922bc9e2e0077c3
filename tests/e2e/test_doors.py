"""The default stack: who comes in by a door that is for others."""

import pytest

from tests.e2e.conftest import Deployed

pytestmark = pytest.mark.slow

DANS = ("dan~40x.org", "dan%40x.org", "dan@x.org", "dan%7E40x.org", "dan%7e40x.org")
"""Paths that name dan@x.org to whoever decodes them."""


def test_a_token_of_another_client_of_the_pool_opens_nothing(deployed: Deployed) -> None:
    """The gateway takes the token, since it is of the pool; the function looks at its client."""
    pool = deployed.outputs["UserPoolId"]
    made = deployed.aws.client("cognito-idp").create_user_pool_client(
        UserPoolId=pool,
        ClientName="another application",
        ExplicitAuthFlows=["ALLOW_ADMIN_USER_PASSWORD_AUTH", "ALLOW_REFRESH_TOKEN_AUTH"],
    )
    token = deployed.aws.sign_in(pool, made["UserPoolClient"]["ClientId"], "carl")
    answer = deployed.as_user(token, "GET", "/api/schedules")
    assert (answer.status, answer.json()["error"]) == (403, "forbidden")
    assert deployed.as_user(deployed.user("dora"), "GET", "/api/schedules").status == 200


def test_a_deployment_that_was_not_told_to_has_no_door_for_agents(deployed: Deployed) -> None:
    ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    answer = deployed.as_user(deployed.user("agnes"), "POST", "/api/mcp", ping)
    assert answer.status in (403, 404)
    assert "result" not in answer.body
    assert deployed.call("POST", "/api/mcp", ping)[0] in (403, 404)


def test_d05_an_iam_deny_of_a_users_path_holds(deployed: Deployed) -> None:
    """A caller who is denied two users reaches them by no escape of their names."""
    api = deployed.outputs["ApiId"]
    arn = f"arn:aws:execute-api:*:*:{api}/v1/*/api/users"
    keys = deployed.aws.user(
        "all-but-two",
        {"Effect": "Allow", "Action": "execute-api:Invoke", "Resource": f"{arn}/*"},
        {
            "Effect": "Deny",
            "Action": "execute-api:Invoke",
            "Resource": [f"{arn}/bob/*", f"{arn}/dan?40x.org/*"],
        },
    )
    others = ("bob", "~62ob", "bo~62", *DANS)
    asked = {
        user: deployed.aws.rest_call(
            api, "v1", "GET", f"/api/users/{user}/schedules", keys=keys
        ).status
        for user in ("ann", "eve~40x.org", *others)
    }
    assert asked.pop("ann") == asked.pop("eve~40x.org") == 200
    assert (asked["bob"], asked["dan~40x.org"]) == (403, 403)
    assert {status for user, status in asked.items() if user in others} <= {400, 403}

"""A stack with two users, and the calls of each."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tests.lab.emulated_aws import Answer, EmulatedAws

TOKENS = ("only-for-this-test-ann", "only-for-this-test-bob")
AUTHORIZER = """
def handler(event, context):
    token = event["authorizationToken"].removeprefix("Bearer only-for-this-test-")
    if token not in ("ann", "bob"):
        raise Exception("Unauthorized")
    allowed = {"Action": "execute-api:Invoke", "Effect": "Allow", "Resource": "*"}
    return {
        "principalId": token,
        "policyDocument": {"Version": "2012-10-17", "Statement": [allowed]},
        "context": {"sub": "bob", "claims": '{"sub": "bob"}', "user": "bob"},
    }
"""


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
        """Make a call of the users' API. Return the status and the JSON."""
        answer = self.send(token, method, path, body, headers)
        return answer.status, json.loads(answer.body) if answer.body else None

    def send(
        self,
        token: str | None,
        method: str,
        path: str,
        body: object = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """Make a call of the users' API. Return the status, the headers and the JSON."""
        return self.aws.rest_call(
            self.outputs["UsersApiId"], "v1", method, path,
            body="" if body is None else json.dumps(body),
            token=token, signed=False, headers=headers,
        )  # fmt: skip

    @property
    def etag(self) -> str:
        """Of bob's schedule as it is now."""
        headers = self.send(self.bob, "GET", "/api/schedules/theirs").headers
        return next(value for name, value in headers.items() if name.lower() == "etag")

    def forget(self, token: str, but: str | None = None) -> None:
        """Delete each schedule of a user but one."""
        _, listed = self.call(token, "GET", "/api/schedules?state=all")
        for one in listed["schedules"]:
            if one["key"] != but:
                self.call(token, "DELETE", f"/api/schedules/{one['key']}")

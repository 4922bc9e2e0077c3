"""An AWS on a free port of this machine: ministack, which runs functions as processes."""

import http.client
import json
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import boto3
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from tests.lab.credentials import DUMMY
from tests.lab.process import LOCALHOST, Command, Server, free_port
from tests.lab.pythons import environment

PART = "The emulated AWS"
REGION = "us-east-1"
START = Path(__file__).with_name("start_ministack.py")

# The root user: ministack checks neither its signatures nor its rights, as AWS refuses it nothing.
ROOT = Credentials(DUMMY["AWS_ACCESS_KEY_ID"], DUMMY["AWS_SECRET_ACCESS_KEY"])


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer of a REST call."""

    status: int
    headers: Mapping[str, str]
    body: str

    def json(self) -> dict[str, Any]:
        decoded: dict[str, Any] = json.loads(self.body)
        return decoded


class EmulatedAws:
    """Endpoint, clients, and signed calls; the policies of users and functions hold."""

    def __init__(self, folder: Path, *, enforce_iam: bool = True) -> None:
        self.port = free_port()
        self.endpoint = f"http://{LOCALHOST}:{self.port}"
        python = environment("ministack", PART) / "bin" / "python"
        runtime = environment("lambda", PART) / "bin"
        temporary = folder / "tmp"
        temporary.mkdir()
        env = _settings(self.port, temporary, runtime, enforce_iam=enforce_iam)
        command: Command = [python, "-P", START, runtime / "python"]
        self.server = Server(command, folder / "ministack.log", env=env, cwd=folder)
        self.server.wait_until(self._healthy)

    def stop(self) -> None:
        self.server.stop()

    def outputs(self, stack: str) -> dict[str, str]:
        """Return the outputs of a stack that was deployed."""
        described = self.client("cloudformation")
        [found] = described.describe_stacks(StackName=stack)["Stacks"]
        return {each["OutputKey"]: each["OutputValue"] for each in found.get("Outputs", [])}

    def user(self, name: str, *statements: Mapping[str, object]) -> Credentials:
        """Return the keys of a new IAM user who has the rights of the statements."""
        iam = self.client("iam")
        iam.create_user(UserName=name)
        if statements:
            rights = _policy(*statements)
            iam.put_user_policy(UserName=name, PolicyName="lab", PolicyDocument=rights)
        made = iam.create_access_key(UserName=name)["AccessKey"]
        return Credentials(made["AccessKeyId"], made["SecretAccessKey"])

    def sign_in(self, pool: str, client: str, name: str) -> str:
        """Return the token of a new user of a pool."""
        cognito, password = self.client("cognito-idp"), "Correct-horse-9-battery"
        cognito.admin_create_user(UserPoolId=pool, Username=name)
        cognito.admin_set_user_password(
            UserPoolId=pool, Username=name, Password=password, Permanent=True
        )
        answer = cognito.admin_initiate_auth(
            UserPoolId=pool,
            ClientId=client,
            AuthFlow="ADMIN_USER_PASSWORD_AUTH",
            AuthParameters={"USERNAME": name, "PASSWORD": password},
        )
        return str(answer["AuthenticationResult"]["IdToken"])

    def function(
        self, name: str, source: str, *statements: Mapping[str, object], **variables: str
    ) -> str:
        """Return the ARN of a new function that has the rights of the statements."""
        role, code = self.role(name, "lambda", *statements), BytesIO()
        with ZipFile(code, "w") as archive:
            archive.writestr("app.py", source)
        made = self.client("lambda").create_function(
            FunctionName=name,
            Runtime="python3.13",
            Role=role,
            Handler="app.handler",
            Timeout=60,
            Code={"ZipFile": code.getvalue()},
            Environment={"Variables": {"AWS_ENDPOINT_URL": self.endpoint, **variables}},
        )
        return str(made["FunctionArn"])

    def role(self, name: str, service: str, *statements: Mapping[str, object]) -> str:
        """Return the ARN of a new role of a service. It has the rights of the statements."""
        trust = {"Effect": "Allow", "Principal": {"Service": f"{service}.amazonaws.com"}}
        iam, assume = self.client("iam"), _policy({**trust, "Action": "sts:AssumeRole"})
        made = iam.create_role(RoleName=name, AssumeRolePolicyDocument=assume)
        if statements:
            rights = _policy(*statements)
            iam.put_role_policy(RoleName=name, PolicyName="lab", PolicyDocument=rights)
        return str(made["Role"]["Arn"])

    def client(self, service: str) -> Any:  # noqa: ANN401 -- boto3 makes its clients as it runs
        """Return a client of a service of the emulated AWS."""
        session: Any = self.session()
        return session.client(service, endpoint_url=self.endpoint)

    def session(self) -> boto3.Session:
        return boto3.Session(ROOT.access_key, ROOT.secret_key, region_name=REGION)

    def rest_call(
        self,
        api_id: str,
        stage: str,
        method: str,
        path: str,
        *,
        headers: Mapping[str, str] | None = None,
        body: str = "",
        signed: bool = True,
        keys: Credentials = ROOT,
        token: str | None = None,
    ) -> Answer:
        """Call a route of a REST API, IAM-signed by default; the path is sent as it is."""
        all_headers = {"Host": f"{api_id}.execute-api.localhost:{self.port}", **(headers or {})}
        if token:
            all_headers["Authorization"] = f"Bearer {token}"
        elif signed:
            url = f"http://{all_headers['Host']}/{stage}{path}"
            all_headers = _signed(method, url, body, all_headers, keys)
        return self._send(method, f"/{stage}{path}", body, all_headers)

    def _send(self, method: str, target: str, body: str, headers: Mapping[str, str]) -> Answer:
        connection = http.client.HTTPConnection(LOCALHOST, self.port, timeout=60)
        try:
            connection.request(method, target, body, dict(headers))
            response = connection.getresponse()
            return Answer(response.status, dict(response.headers), response.read().decode())
        finally:
            connection.close()

    def _healthy(self) -> bool:
        with suppress(OSError, http.client.HTTPException):
            return self._send("GET", "/_ministack/health", "", {}).status == 200
        return False


def _policy(*statements: Mapping[str, object]) -> str:
    return json.dumps({"Version": "2012-10-17", "Statement": statements})


def _signed(
    method: str, url: str, body: str, headers: Mapping[str, str], keys: Credentials
) -> dict[str, str]:
    request = AWSRequest(method, url, headers=headers, data=body)
    SigV4Auth(keys, "execute-api", REGION).add_auth(request)
    return dict(request.headers.items())


def _settings(port: int, temporary: Path, runtime: Path, *, enforce_iam: bool) -> dict[str, str]:
    """Return the settings, which functions inherit: nothing of the tests' own environment is among
    them.
    """
    return {
        "PATH": f"{runtime}{os.pathsep}{os.environ.get('PATH', '')}",
        "HOME": str(temporary),
        "TMPDIR": str(temporary),
        **DUMMY,
        "GATEWAY_PORT": str(port),
        "BIND_HOST": LOCALHOST,
        # These two listen on ports that are not free ones.
        "IOT_MTLS_ENABLED": "0",
        "SFTP_ENABLED": "0",
        "AUTH": "true" if enforce_iam else "false",
    }

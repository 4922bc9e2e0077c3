"""An operator's client of a deployed stack: found by its name, signed as the shell may sign."""

import os
from collections.abc import Mapping
from typing import Any, cast

from duetick.cli.problem import Problem
from duetick.client import Client
from duetick.transports.sigv4 import SERVICE

try:
    from botocore.auth import SigV4Auth
    from botocore.awsrequest import AWSRequest
    from botocore.exceptions import BotoCoreError, ClientError
    from botocore.session import Session, get_session
except ImportError as missing:
    raise Problem("--stack needs boto3: pip install boto3.") from missing


def client_of(stack: str, user: str) -> Client:
    """The stack is asked for the address of its API."""
    session = get_session()
    if region := os.environ.get("AWS_REGION"):  # as AWS's own command reads it, and botocore not
        session.set_config_variable("region", region)
    try:
        cloudformation = cast("Any", session.create_client("cloudformation"))
        asked = cloudformation.describe_stacks(StackName=stack)
        signer = _signer(session)
    except (BotoCoreError, ClientError) as problem:
        raise Problem(
            f"The stack {stack!r} cannot be asked ({problem}). Are AWS_DEFAULT_REGION and the "
            "credentials those of its deployment?"
        ) from problem
    (found,) = asked["Stacks"]
    outputs = {one["OutputKey"]: one["OutputValue"] for one in found.get("Outputs", ())}
    if "ApiUrl" not in outputs:
        raise Problem(
            f"The stack {stack!r} tells no ApiUrl; it is {found['StackStatus']}. Is it one of "
            "Duetick, and deployed to the end?"
        )
    return _client(outputs["ApiUrl"], user, signer)


def _signer(session: Session) -> SigV4Auth:
    credentials, region = session.get_credentials(), session.get_config_variable("region")
    if credentials is None or not region:
        raise Problem("No credentials, or no region: those of `sam deploy` are needed here.")
    return SigV4Auth(credentials.get_frozen_credentials(), SERVICE, region)


def _client(url: str, user: str, signer: SigV4Auth) -> Client:
    def authorize(method: str, url: str, body: bytes) -> Mapping[str, str]:
        request = AWSRequest(method, url, data=body)
        signer.add_auth(request)
        return dict(request.headers)

    elsewhere = os.environ.get("DUETICK_API_ADDRESS", "")
    return Client(url, user=user, authorize=authorize, connect_to=elsewhere)

"""A deployed stack, found by name, and asked with the shell's credentials."""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol, cast

from duetick.cli.problem import CliProblem
from duetick.network.sigv4 import GATEWAY
from duetick.operators import Operators

try:
    from botocore.auth import SigV4Auth
    from botocore.awsrequest import AWSRequest
    from botocore.config import Config
    from botocore.session import Session, get_session

    from duetick.cli.aws_problems import AWS_PROBLEMS, NO_SUCH, what_helps
except ImportError as missing:
    raise CliProblem("--stack needs boto3: pip install boto3.") from missing

PATIENCE = 900
"""The seconds that a step may take: a function's longest."""


NEEDED: Final = frozenset(("ApiUrl", "MigrateFunction"))
"""The outputs by which a stack of Duetick's is known. One that it stands in may repeat some."""

NESTED: Final = "AWS::CloudFormation::Stack"


def own_session() -> Session:
    """Return a session with the shell's credentials and region."""
    session = get_session()
    if region := os.environ.get("AWS_REGION"):  # the aws command reads it, and botocore not
        session.set_config_variable("region", region)
    return session


class _CloudFormation(Protocol):
    """The part of its client that is used here."""

    def describe_stacks(self, *, StackName: str) -> Mapping[str, Any]: ...

    def describe_stack_resources(self, *, StackName: str) -> Mapping[str, Any]: ...


def _describe(cloudformation: _CloudFormation, stack: str) -> dict[str, Any]:
    (found,) = cloudformation.describe_stacks(StackName=stack)["Stacks"]
    return dict(found)


def _outputs(described: Mapping[str, Any]) -> dict[str, str]:
    return {one["OutputKey"]: one["OutputValue"] for one in described.get("Outputs", ())}


def _list_nested(cloudformation: _CloudFormation, stack: str) -> dict[str, dict[str, str]]:
    """Return the outputs of each stack of Duetick's that stands in this one, by its name."""
    listed = cloudformation.describe_stack_resources(StackName=stack)["StackResources"]
    ids = [one["PhysicalResourceId"] for one in listed if one["ResourceType"] == NESTED]
    inner = {one.split("/")[1]: _outputs(_describe(cloudformation, one)) for one in ids}
    return {name: outputs for name, outputs in inner.items() if outputs.keys() >= NEEDED}


@dataclass(frozen=True, slots=True)
class Deployed:
    """A stack of Duetick, perhaps nested in another one, and the signer of calls to it."""

    outputs: Mapping[str, str]
    session: Session
    name: str = ""

    @classmethod
    def find(cls, stack: str) -> "Deployed":
        """Ask the stack for its outputs; if it has none of Duetick's, the stacks in it."""
        session = own_session()
        try:
            cloudformation = cast("_CloudFormation", session.create_client("cloudformation"))
            described = _describe(cloudformation, stack)
            outputs = _outputs(described)
            nested = {} if outputs.keys() >= NEEDED else _list_nested(cloudformation, stack)
        except AWS_PROBLEMS as problem:
            told = what_helps(problem, NO_SUCH)
            raise CliProblem(f"The stack {stack!r} cannot be described {told}") from problem
        if len(nested) > 1:
            names = ", ".join(nested)
            raise CliProblem(f"In the stack {stack!r} are several of Duetick's: {names}. Name one.")
        for name, inner in nested.items():
            return cls(inner, session, name)
        if "ApiUrl" not in outputs:
            raise CliProblem(
                f"The stack {stack!r} ({described['StackStatus']}) has no output ApiUrl, and no "
                "stack in it has: its deployment did not end, or it is none of Duetick's."
            )
        return cls(outputs, session, stack)

    def operators(self, why: str = "") -> Operators:
        """Return a client that signs."""
        return Operators(
            self.outputs["ApiUrl"], authorize=self.sign, connect_to=self.address, why=why
        )

    @property
    def address(self) -> str:
        """The address to connect to, if the name of the API does not lead to it; else empty."""
        return os.environ.get("DUETICK_API_ADDRESS", "")

    def sign(self, method: str, url: str, body: bytes) -> Mapping[str, str]:
        """Return the headers of a signed call. Credentials that ended are asked for anew."""
        request = AWSRequest(method, url, data=body)
        self._signer().add_auth(request)
        return dict(request.headers)

    def _signer(self) -> SigV4Auth:
        credentials = self.session.get_credentials()
        region = self.session.get_config_variable("region")
        if credentials is None or not region:
            raise CliProblem("No credentials, or no region: those of `sam deploy` are needed here.")
        return SigV4Auth(credentials.get_frozen_credentials(), GATEWAY, region)

    def who(self) -> str:
        """Return the name that IAM knows the shell's credentials by."""
        try:
            sts = cast("Any", self.session.create_client("sts"))
            return str(sts.get_caller_identity()["Arn"])
        except AWS_PROBLEMS as problem:
            raise CliProblem(f"AWS does not say who you are {what_helps(problem)}") from problem

    def variables(self, function: str) -> dict[str, str]:
        """Return the variables of a function, by the name of its output."""
        try:
            client = cast("Any", self.session.create_client("lambda"))
            found = client.get_function_configuration(FunctionName=self.outputs[function])
        except AWS_PROBLEMS as problem:
            told = what_helps(problem, "That needs the right lambda:GetFunctionConfiguration.")
            raise CliProblem(f"The function {function} cannot be read {told}") from problem
        return dict(found.get("Environment", {}).get("Variables", {}))

    def step(self, step: Mapping[str, object]) -> dict[str, Any]:
        """Let the stack's function `migrate` take a step, and return its answer."""
        config = Config(read_timeout=PATIENCE + 5, retries={"total_max_attempts": 1})
        try:
            client = cast("Any", self.session.create_client("lambda", config=config))
            answer = client.invoke(
                FunctionName=self.outputs["MigrateFunction"],
                Payload=json.dumps(dict(step)).encode(),
            )
        except AWS_PROBLEMS as problem:
            told = what_helps(problem, "Calling it needs the right lambda:InvokeFunction.")
            raise CliProblem(f"The stack's function migrate did not answer {told}") from problem
        found = json.loads(answer["Payload"].read() or b"{}")
        if answer.get("FunctionError"):
            told = found.get("errorMessage", "it does not say why") if found else "no reason"
            raise CliProblem(f"The stack's function migrate failed: {told}")
        return dict(found or {})

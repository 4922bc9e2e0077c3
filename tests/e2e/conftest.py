"""The stack, built and deployed onto the emulated AWS, once for all end-to-end tests."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.lab.emulated_aws import EmulatedAws
from tests.lab.sam import Sam
from tests.lab.this_machine import ARCHITECTURE

TEMPLATE = Path(__file__).parents[2] / "template.yaml"


@dataclass(frozen=True, slots=True)
class Deployed:
    """A stack and its API."""

    aws: EmulatedAws
    outputs: dict[str, str]

    def call(
        self, method: str, path: str, body: object = None, *, signed: bool = True
    ) -> tuple[int, Any]:
        """The status and the JSON of an answer."""
        text = "" if body is None else json.dumps(body)
        answer = self.aws.rest_call(
            self.outputs["ApiId"], "v1", method, path, body=text, signed=signed
        )
        return answer.status, json.loads(answer.body) if answer.body else None

    def invoke(self, function: str, event: object) -> dict[str, Any]:
        """Invoke a function by its output's name."""
        client = self.aws.session().client("lambda", endpoint_url=self.aws.endpoint)
        answer = client.invoke(FunctionName=self.outputs[function], Payload=json.dumps(event))
        result: dict[str, Any] = json.loads(answer["Payload"].read())
        assert not answer.get("FunctionError"), result
        return result


@pytest.fixture(scope="session")
def deployed(
    sam: Sam, emulated_aws: EmulatedAws, tmp_path_factory: pytest.TempPathFactory
) -> Deployed:
    """The default stack."""
    parameters = {
        "Architecture": ARCHITECTURE,
        "ApiDomain": f"execute-api.localhost:{emulated_aws.port}",
        "ApiAddress": emulated_aws.endpoint,
    }
    built = sam.build(TEMPLATE, tmp_path_factory.mktemp("built"), parameters)
    return Deployed(emulated_aws, sam.deploy(emulated_aws, built, "duetick", parameters))

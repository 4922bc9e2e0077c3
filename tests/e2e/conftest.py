"""The template, built once and deployed onto the emulated AWS: a stack for each backend."""

import json
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.lab.emulated_aws import Answer, EmulatedAws
from tests.lab.postgres import EmbeddedPostgres
from tests.lab.sam import Parameters, Sam
from tests.lab.this_machine import ARCHITECTURE

TEMPLATE = Path(__file__).parents[2] / "template.yaml"
TRIALS = Path(__file__).parent / "trials.py"


@dataclass(frozen=True, slots=True)
class Deployed:
    """A stack and its API."""

    aws: EmulatedAws
    outputs: dict[str, str]
    name: str
    sam: Sam
    built: Path
    parameters: Parameters

    def call(
        self, method: str, path: str, body: object = None, *, signed: bool = True
    ) -> tuple[int, Any]:
        """Make a call. Return the status and the JSON of its answer."""
        text = "" if body is None else json.dumps(body)
        answer = self.aws.rest_call(
            self.outputs["ApiId"], "v1", method, path, body=text, signed=signed
        )
        return answer.status, json.loads(answer.body) if answer.body else None

    def invoke(self, function: str, event: object) -> dict[str, Any]:
        """Invoke a function by its output's name."""
        client = self.aws.client("lambda")
        answer = client.invoke(FunctionName=self.outputs[function], Payload=json.dumps(event))
        result: dict[str, Any] = json.loads(answer["Payload"].read())
        assert not answer.get("FunctionError"), result
        return result

    def user(self, name: str) -> str:
        """Make a user in the stack's pool. Return the user's token."""
        pool, client = self.outputs["UserPoolId"], self.outputs["UserPoolClientId"]
        return self.aws.sign_in(pool, client, name)

    def as_user(self, token: str | None, method: str, path: str, body: object = None) -> Answer:
        """Make a call of the users' API."""
        text = "" if body is None else json.dumps(body)
        api = self.outputs["UsersApiId"]
        return self.aws.rest_call(api, "v1", method, path, body=text, signed=False, token=token)

    def log_of(self, function: str) -> str:
        """Return the name of a function's log group."""
        client = self.aws.client("cloudformation")
        found = client.describe_stack_resource(
            StackName=self.name, LogicalResourceId=f"{function}Log"
        )
        return str(found["StackResourceDetail"]["PhysicalResourceId"])

    def lines(self, function: str) -> list[str]:
        """Return the log lines of a function. Each invocation has a stream of its own."""
        found = self.aws.client("logs").filter_log_events(logGroupName=self.log_of(function))
        return [event["message"] for event in found["events"]]

    def status(self) -> str:
        """Return the status of the stack."""
        client = self.aws.client("cloudformation")
        return str(client.describe_stacks(StackName=self.name)["Stacks"][0]["StackStatus"])

    def stop_ticking(self) -> None:
        """Keep the stack's tick from firing by itself."""
        client = self.aws.client("scheduler")
        stack = self.aws.client("cloudformation")
        unique = stack.describe_stacks(StackName=self.name)["Stacks"][0]["StackId"].split("/")[2]
        found = client.get_schedule(Name=f"duetick-tick-{unique}")
        same = ("Name", "ScheduleExpression", "FlexibleTimeWindow", "Target")
        client.update_schedule(State="DISABLED", **{name: found[name] for name in same})

    def deploy(self, *, parameters: Parameters | None = None, template: Path | None = None) -> None:
        """Deploy it again, with other parameters or another template."""
        given = {**self.parameters, **(parameters or {})}
        self.sam.deploy(self.aws, template or self.built, self.name, given)


def configure(aws: EmulatedAws, name: str, variables: dict[str, str]) -> None:
    """Set a function's environment, and wait until it is in force."""
    client = aws.client("lambda")
    client.update_function_configuration(FunctionName=name, Environment={"Variables": variables})
    patience = {"Delay": 1, "MaxAttempts": 60}
    client.get_waiter("function_updated_v2").wait(FunctionName=name, WaiterConfig=patience)


def emulated_parameters(aws: EmulatedAws) -> dict[str, str]:
    """Return the parameters of a stack on the emulated AWS, without its backend."""
    return {
        "Architecture": ARCHITECTURE,
        "ApiDomain": f"execute-api.localhost:{aws.port}",
        "ApiAddress": aws.endpoint,
    }


@pytest.fixture(scope="session")
def parameters(emulated_aws: EmulatedAws) -> dict[str, str]:
    """Return the parameters of every stack here."""
    return emulated_parameters(emulated_aws)


@pytest.fixture(scope="session")
def built(sam: Sam, parameters: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The template, built once, with the flows of `trials.py` beside the others."""
    made = sam.build(TEMPLATE, tmp_path_factory.mktemp("built"), parameters)
    [layer] = made.parent.glob("FlowsLayer/**/flows")
    shutil.copy(TRIALS, layer)
    return made


@pytest.fixture(scope="session")
def quiet(sam: Sam, emulated_aws: EmulatedAws, built: Path) -> Path:
    """Return a packaged template of which nothing fires by itself: a test alone claims and
    calls.
    """
    made = built.with_name("quiet.json")
    sam.package(emulated_aws, built, made)
    template = json.loads(made.read_text())
    schedules = [
        event["Properties"]
        for resource in template["Resources"].values()
        for event in resource["Properties"].get("Events", {}).values()
        if event["Type"] == "ScheduleV2"
    ]
    assert len(schedules) == 2, "the tick and the hourly count"
    for schedule in schedules:
        schedule["State"] = "DISABLED"
    made.write_text(json.dumps(template))
    return made


def deploy(
    sam: Sam, aws: EmulatedAws, built: Path, name: str, parameters: Mapping[str, str]
) -> Deployed:
    """Deploy a stack of that name."""
    outputs = sam.deploy(aws, built, name, parameters)
    return Deployed(aws, outputs, name, sam, built, parameters)


@pytest.fixture(scope="session")
def deployed(
    sam: Sam, emulated_aws: EmulatedAws, quiet: Path, parameters: dict[str, str]
) -> Deployed:
    """The default stack, on DynamoDB, with a bus."""
    return deploy(sam, emulated_aws, quiet, "duetick", {**parameters, "EventBus": "default"})


@contextmanager
def on_postgres(aws: EmulatedAws, secret: str) -> Iterator[dict[str, str]]:
    """Parameters of a Postgres that was there before, over TCP, its password in a secret."""
    server = EmbeddedPostgres()
    made = aws.client("secretsmanager").create_secret(
        Name=secret, SecretString=json.dumps({"password": "any"})
    )
    yield {
        "Backend": "postgres",
        "PostgresAddress": server.tcp_url,
        "PostgresSecretArn": made["ARN"],
    }
    server.remove()


@pytest.fixture(scope="session")
def deployed_on_postgres(
    sam: Sam, emulated_aws: EmulatedAws, quiet: Path, parameters: dict[str, str]
) -> Iterator[Deployed]:
    """A stack on Postgres."""
    with on_postgres(emulated_aws, "database") as there:
        yield deploy(sam, emulated_aws, quiet, "duetick-postgres", {**parameters, **there})


@pytest.fixture(scope="session", params=["deployed", "deployed_on_postgres"])
def stack(request: pytest.FixtureRequest) -> Deployed:
    """Each backend's stack."""
    found: Deployed = request.getfixturevalue(request.param)
    return found

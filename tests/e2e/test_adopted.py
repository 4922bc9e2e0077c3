"""A team's repository, made by `duetick new`: deployed, and upgraded while its schedules fire."""

import json
import os
import shutil
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from duetick.cli.main import main
from duetick.version import VERSION

from tests.e2e.conftest import Deployed, deploy, emulated_parameters
from tests.lab.credentials import DUMMY
from tests.lab.deployable import deployable
from tests.lab.emulated_aws import REGION, EmulatedAws
from tests.lab.next_version import NEXT, make_next
from tests.lab.sam import Sam
from tests.lab.this_machine import ARCHITECTURE
from tests.lab.waiting import wait
from tests.lab.wheels import offline, write_wheel

STACK = "my-app-dev"
COMMAND = "import sys; from duetick.cli.start import main; sys.exit(main())"
FEW = 2
FLOW = '''"""A second flow, which needs a package."""

import boto3
import stamps
from duetick import Context, Flow
from duetick.version import VERSION

posts = Flow("posts")


@posts.action("post")
def post(text: str, ctx: Context) -> None:
    """Publish the text with a stamp, and with the version that runs it."""
    print(stamps.stamp(text), ctx.settings.secret("album"))
    boto3.client("sns").publish(
        TopicArn=ctx.settings["topic"], Message=f"{VERSION} {ctx.schedule_id} {stamps.stamp(text)}"
    )
'''

STAMPS = "def stamp(text: str) -> str:\n    return f'[{text}]'\n"

pytestmark = pytest.mark.slow


@dataclass(frozen=True, slots=True)
class Repository:
    """A team's own, on the emulated AWS."""

    folder: Path
    aws: EmulatedAws
    sam: Sam

    def deploy(self) -> Deployed:
        """Deploy it as its samconfig.toml says. Return Duetick's own stack in it."""
        self.sam.deploy_environment(self.aws, self.folder / "template.yaml", "dev")
        inner = self.aws.client("cloudformation").describe_stack_resource(
            StackName=STACK, LogicalResourceId="Duetick"
        )
        name = inner["StackResourceDetail"]["PhysicalResourceId"].split("/")[1]
        outputs = self.aws.outputs(name)
        return Deployed(self.aws, outputs, name, self.sam, self.folder, {})

    def change(self, file: str, before: str, after: str) -> None:
        """Change a file of the repository."""
        path = self.folder / file
        assert path.read_text().count(before) == 1, path.read_text()
        path.write_text(path.read_text().replace(before, after))


@pytest.fixture(scope="module")
def repository(
    sam: Sam, emulated_aws: EmulatedAws, tmp_path_factory: pytest.TempPathFactory
) -> Repository:
    """Make a repository with `duetick new`, and a second flow that needs a package and a secret."""
    folder = tmp_path_factory.mktemp("teams") / "my-app"
    assert main(["new", str(folder)]) == 0
    made = Repository(folder, emulated_aws, sam)
    (folder / "flows/posts.py").write_text(FLOW)
    (folder / "flows/requirements.txt").write_text("--find-links ../wheels\nstamps==1.0\n")
    write_wheel(folder / "wheels", "stamps", "1.0", STAMPS)
    build_flows(folder)
    shutil.copytree(deployable(), folder / ".duetick/stack")
    secret = emulated_aws.client("secretsmanager").create_secret(
        Name="album", SecretString=json.dumps({"album": "canary-album"})
    )
    given = {**emulated_parameters(emulated_aws), "SettingsSecretArn": secret["ARN"]}
    named = "        Deployment: !Ref AWS::StackName\n"
    lines = "".join(f"        {name}: {value}\n" for name, value in given.items())
    made.change("template.yaml", named, named + lines)
    return made


def build_flows(folder: Path) -> None:
    """Build the flows as `make build` does."""
    command = ["layer", str(folder / "flows"), "--architecture", ARCHITECTURE]
    named = ["--requirements", str(folder / "flows/requirements.txt")]
    with pytest.MonkeyPatch.context() as patch:
        for name, value in offline().items():
            patch.setenv(name, value)
        assert main([*command, *named, "--to", str(folder / ".duetick/flows")]) == 0


@pytest.fixture(scope="module")
def deployed(repository: Repository) -> Iterator[Deployed]:
    """Deploy the first version of the repository."""
    stack = repository.deploy()
    yield stack
    stack.stop_ticking()


def ask(stack: str, *words: str, aws: EmulatedAws) -> Any:  # noqa: ANN401 -- JSON of any kind
    """Return the output of a command about a stack, in the shell of its owner."""
    done = subprocess.run(
        [sys.executable, "-c", COMMAND, *words, "--stack", stack, "--json"],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **shell(aws)},
    )
    return json.loads(done.stdout)


def shell(aws: EmulatedAws) -> dict[str, str]:
    """Return the variables of that shell."""
    at = {"AWS_ENDPOINT_URL": aws.endpoint, "DUETICK_API_ADDRESS": aws.endpoint}
    return {**DUMMY, **at, "AWS_DEFAULT_REGION": REGION}


def test_a_users_schedule_runs_with_its_settings_its_package_and_its_rights(
    deployed: Deployed,
) -> None:
    """Checked by one dispatch, of a run by hand: nothing has to wait for a minute."""
    user = deployed.user("bea")
    put = {"cron": "@yearly", "flow": "greetings", "action": "greet", "input": {"text": "hello"}}
    assert deployed.as_user(user, "PUT", "/api/schedules/first", put).status == 201
    ran = deployed.as_user(user, "POST", "/api/schedules/first/run")
    assert (ran.status, ran.json()["state"]) == (202, "succeeded"), ran.body
    wait(lambda: any("my-app (dev) to" in line for line in deployed.lines("Dispatch")))


def test_the_command_finds_the_stack_in_the_teams_own(
    deployed: Deployed, repository: Repository
) -> None:
    looks = {one["name"]: one for one in ask(STACK, "doctor", aws=repository.aws)}
    assert looks["stack"]["said"].startswith(f"{deployed.name}, https://")
    assert looks["version"]["ok"]
    assert looks["API"]["ok"]
    assert looks["dispatch"]["ok"]


class Repeated(threading.Thread):
    """Does something again and again, until the block ends. The block fails if it raises."""

    def __init__(self, act: Callable[[], object], pause: float) -> None:
        super().__init__()
        self._act, self._pause = act, pause
        self._ended = threading.Event()
        self._failed: Exception | None = None
        self.done: list[Any] = []

    def run(self) -> None:
        """Do it."""
        while not self._ended.wait(self._pause) and not self._failed:
            try:
                self.done.append(self._act())
            except Exception as problem:
                self._failed = problem

    def wait_for(self, more: int) -> None:
        """Wait until it was done so often again."""
        enough = len(self.done) + more
        wait(lambda: len(self.done) > enough or self._failed)

    def __enter__(self) -> "Repeated":
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self.join()
        if self._failed:
            raise self._failed


def posted(aws: EmulatedAws) -> str:
    """Return the URL of a queue that gets all that the actions publish."""
    described = aws.client("cloudformation").describe_stack_resource(
        StackName=STACK, LogicalResourceId="Greetings"
    )
    topic = described["StackResourceDetail"]["PhysicalResourceId"]
    queues = aws.client("sqs")
    url: str = queues.create_queue(QueueName="posted")["QueueUrl"]
    (arn,) = queues.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])[
        "Attributes"
    ].values()
    send = {"Effect": "Allow", "Principal": "*", "Action": "sqs:SendMessage", "Resource": arn}
    policy = json.dumps({"Version": "2012-10-17", "Statement": [send]})
    queues.set_queue_attributes(QueueUrl=url, Attributes={"Policy": policy})
    aws.client("sns").subscribe(TopicArn=topic, Protocol="sqs", Endpoint=arn)
    return url


def messages(aws: EmulatedAws, url: str) -> list[str]:
    """Everything in the queue."""
    found: list[str] = []
    while True:
        answer = aws.client("sqs").receive_message(QueueUrl=url, MaxNumberOfMessages=10)
        if not answer.get("Messages"):
            return found
        for one in answer["Messages"]:
            found.append(json.loads(one["Body"])["Message"])
            aws.client("sqs").delete_message(QueueUrl=url, ReceiptHandle=one["ReceiptHandle"])


def publish(repository: Repository, folder: Path) -> str:
    """Publish the next version's deployable in a bucket. Return the URL to nest."""
    package = make_next(folder / "next")
    aws, stack = repository.aws, folder / "stack"
    shutil.copytree(deployable(), stack)
    aws.client("s3").create_bucket(Bucket="artifacts")
    published = subprocess.run(
        [sys.executable, "-c", COMMAND, "package", "--to", stack, "--bucket", "artifacts"],
        capture_output=True,
        text=True,
        check=False,
        env={
            **repository.sam.environment,
            **shell(aws),
            **offline(),
            "PYTHONPATH": str(package.parent),
        },
    )
    assert published.returncode == 0, published.stderr
    (url,) = published.stdout.split()
    assert url.endswith(f"/artifacts/duetick/{NEXT}/template.yaml")
    return url


def test_an_upgrade_and_a_rollback_while_schedules_fire_lose_no_fire(
    deployed: Deployed, repository: Repository, tmp_path: Path
) -> None:
    """Schedules are put and fire before, while and after the stack changes to the next version, and
    back. Each runs once, and verify accounts for every time.
    """
    aws, user = repository.aws, deployed.user("ann")
    queue, keys = posted(aws), count()
    began = datetime.now(UTC)
    here, there = ".duetick/stack/template.yaml", publish(repository, tmp_path)

    def put() -> datetime:
        """Put one that is due in a moment. A slow machine may take longer to answer."""
        due = datetime.now(UTC).replace(microsecond=0) + timedelta(seconds=4)
        one = {"cron": f"at({due:%Y-%m-%dT%H:%M:%S})", "flow": "posts", "action": "post"}
        path = f"/api/schedules/post-{next(keys)}"
        answer = deployed.as_user(user, "PUT", path, one | {"input": "post"})
        if answer.status == 400 and "give one that lies in the future" in answer.body:
            return put()
        assert answer.status == 201, answer.body
        return due

    with Repeated(lambda: deployed.invoke("TickFunction", {}), 0.2) as ticks:
        with Repeated(put, 1.5) as puts:
            versions = []
            for before, after in ((here, there), (there, here)):
                puts.wait_for(FEW)
                repository.change("template.yaml", before, after)
                versions.append(repository.deploy().outputs["Version"])
            puts.wait_for(FEW)
        wait(lambda: datetime.now(UTC) > puts.done[-1] + timedelta(seconds=1))
        ticks.wait_for(2)

    assert [deployed.outputs["Version"], *versions] == [VERSION, NEXT, VERSION]
    ran = Counter(tuple(one.split()[:2]) for one in messages(aws, queue))
    assert set(ran.values()) == {1}
    assert len({name for _, name in ran}) == len(puts.done)
    assert {version for version, _ in ran} == {VERSION, NEXT}
    verified = deployed.invoke("MigrateFunction", {"Step": "verify", "Since": f"{began:%FT%TZ}"})
    assert (verified["faults"], verified["times"]) == (0, len(puts.done)), verified


def test_the_deployable_stands_beside_a_teams_stack_and_tells_others_where_it_is(
    deployed: Deployed, repository: Repository
) -> None:
    aws = repository.aws
    layer = aws.client("cloudformation").describe_stacks(StackName=deployed.name)["Stacks"][0]
    (flows,) = (
        one["ParameterValue"]
        for one in layer["Parameters"]
        if one["ParameterKey"] == "FlowsLayerArn"
    )
    template = repository.folder / ".duetick/stack/template.yaml"
    settings = r'"{\"sender\": \"beside\"}"'  # as sam reads it
    given = {**emulated_parameters(aws), "FlowsLayerArn": flows, "Settings": settings}
    beside = deploy(repository.sam, aws, template, "beside", given)
    exports = aws.client("cloudformation").list_exports()["Exports"]
    told = {one["Name"]: one["Value"] for one in exports}
    for name in ("ApiUrl", "ApiId", "UsersApiUrl"):
        assert told[f"beside-{name}"] == beside.outputs[name]
    put = {"cron": "@yearly", "flow": "greetings", "action": "greet", "input": {"text": "hello"}}
    assert beside.call("PUT", "/api/users/ann/schedules/k", put)[0] == 201
    status, ran = beside.call("POST", "/api/users/ann/schedules/k/run")
    assert (status, ran["state"]) == (202, "succeeded"), ran
    assert any("beside to ann: hello" in line for line in beside.lines("Dispatch"))
    beside.stop_ticking()

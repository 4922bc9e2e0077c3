"""The lab itself: each part is real, and each is whole."""

import json
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from io import BytesIO
from pathlib import Path
from zipfile import ZipFile

import pytest
from botocore.credentials import Credentials
from botocore.exceptions import ClientError

from tests.lab.cache import TOP
from tests.lab.dynamodb import DynamoDB, table_name
from tests.lab.emulated_aws import ROOT, Answer, EmulatedAws
from tests.lab.lambda_runtime import LambdaRuntime
from tests.lab.missing import LACKS
from tests.lab.postgres import (
    EmbeddedPostgres,
    Postgres,
    connect,
    drop_database,
    fresh_database,
)
from tests.lab.process import LOCALHOST, Command, LabError, answers, free_port
from tests.lab.sam import Sam
from tests.lab.this_machine import ARCHITECTURE
from tests.lab.waiting import wait

SAMPLE = Path(__file__).parents[1] / "lab" / "sample" / "template.yaml"
PARAMETERS = {"Architecture": ARCHITECTURE}


def query(url: str, statement: str) -> list[list[object]]:
    connection = connect(url)
    try:
        rows: list[list[object]] = connection.run(statement)
    finally:
        connection.close()
    return rows


def test_postgres_answers_over_its_socket(postgres_url: str) -> None:
    assert query(postgres_url, "SELECT 6 * 7") == [[42]]


def test_two_fresh_databases_are_separate(postgres: Postgres, postgres_url: str) -> None:
    query(postgres_url, "CREATE TABLE only_here (id int)")
    other = fresh_database(postgres)
    assert query(other, "SELECT to_regclass('only_here')") == [[None]]
    drop_database(postgres, other)


def test_postgres_answers_over_tcp(own_postgres: EmbeddedPostgres) -> None:
    assert query(own_postgres.tcp_url, "SELECT 1") == [[1]]


@pytest.mark.parametrize("end", [EmbeddedPostgres.stop, EmbeddedPostgres.kill])
def test_postgres_keeps_its_rows_when_it_comes_back(
    own_postgres: EmbeddedPostgres, end: Callable[[EmbeddedPostgres], None]
) -> None:
    query(own_postgres.url, "CREATE TABLE kept AS SELECT 7 AS id")
    end(own_postgres)
    own_postgres.start()
    assert query(own_postgres.url, "SELECT id FROM kept") == [[7]]


@pytest.mark.skipif(sys.platform != "linux", reason=f"this system {LACKS} 'held ports'")
def test_a_free_port_is_given_to_nobody_else_and_can_be_listened_on_again_and_again() -> None:
    port = free_port()
    with socket.socket() as other, pytest.raises(OSError, match="in use"):
        other.bind((LOCALHOST, port))
    for _ in range(2):
        assert not answers(port)
        with socket.create_server((LOCALHOST, port)):
            assert answers(port)


def test_dynamodb_refuses_a_write_whose_condition_does_not_hold(dynamodb: DynamoDB) -> None:
    client, table = dynamodb.client(), table_name()
    client.create_table(
        TableName=table,
        BillingMode="PAY_PER_REQUEST",
        AttributeDefinitions=[{"AttributeName": "id", "AttributeType": "S"}],
        KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}],
    )
    client.put_item(TableName=table, Item={"id": {"S": "one"}})
    with pytest.raises(ClientError, match="ConditionalCheckFailed"):
        client.put_item(
            TableName=table,
            Item={"id": {"S": "one"}},
            ConditionExpression="attribute_not_exists(id)",
        )


STARTS = """
import sys, time
from pathlib import Path
from tests.lab.process import Server

Server([sys.executable, "-m", "http.server", "--bind", "127.0.0.1", sys.argv[1]], Path(sys.argv[2]))
time.sleep(600)
"""


@pytest.mark.parametrize("sent", [signal.SIGTERM, signal.SIGKILL])
def test_a_server_ends_with_whoever_started_it(tmp_path: Path, sent: signal.Signals) -> None:
    port = free_port()
    command: Command = [sys.executable, "-c", STARTS, str(port), tmp_path / "log"]
    starter = subprocess.Popen(command, cwd=TOP)
    try:
        wait(lambda: answers(port))
    finally:
        starter.send_signal(sent)
        starter.wait()
    wait(lambda: not answers(port))


@pytest.fixture(scope="session")
def built(sam: Sam, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sample, built."""
    return sam.build(SAMPLE, tmp_path_factory.mktemp("sample"), PARAMETERS).parent


@pytest.fixture(scope="session")
def deployed(sam: Sam, emulated_aws: EmulatedAws, built: Path) -> dict[str, str]:
    """The outputs of the sample, deployed."""
    return sam.deploy(emulated_aws, built / "template.yaml", "sample", PARAMETERS)


@pytest.mark.slow
def test_the_sample_is_a_valid_template(sam: Sam) -> None:
    assert "is a valid SAM Template" in sam.validate(SAMPLE)


@pytest.mark.slow
def test_the_translated_sample_passes_the_linter(sam: Sam, tmp_path: Path) -> None:
    assert sam.lint_translated(SAMPLE, tmp_path, PARAMETERS) == ""


@pytest.mark.slow
def test_the_linter_sees_what_only_the_translated_template_shows(sam: Sam, tmp_path: Path) -> None:
    wrong = tmp_path / "template.yaml"
    wrong.write_text(SAMPLE.read_text().replace("!GetAtt Echo.Arn", "!GetAtt EchoRole.Nothing"))
    with pytest.raises(LabError, match="'Nothing' is not one of"):
        sam.lint_translated(wrong, tmp_path, PARAMETERS)


@pytest.mark.slow
def test_layers_are_built_where_python_looks_and_ship_no_junk(built: Path) -> None:
    code = built / "CodeLayer"
    assert sorted(p.relative_to(code).as_posix() for p in code.rglob("*") if p.is_file()) == [
        "python/sample/__init__.py",
        "python/sample/greeting.py",
    ]
    assert (built / "DepsLayer" / "python" / "six.py").exists()


class Greeting:
    """The sample's one route."""

    def __init__(self, aws: EmulatedAws, outputs: dict[str, str]) -> None:
        self._aws = aws
        self._api, self._stage = outputs["ApiId"], outputs["Stage"]

    def call(self, *, signed: bool = True, keys: Credentials = ROOT) -> Answer:
        return self._aws.rest_call(
            self._api, self._stage, "POST", "/greeting/Ada", body="hi", signed=signed, keys=keys
        )


@pytest.fixture
def greeting(emulated_aws: EmulatedAws, deployed: dict[str, str]) -> Greeting:
    return Greeting(emulated_aws, deployed)


@pytest.mark.slow
def test_a_signed_call_reaches_the_deployed_function(greeting: Greeting) -> None:
    answer = greeting.call()
    assert (answer.status, answer.json()) == (200, {"greeting": "Hello, Ada", "said": "hi"})


@pytest.mark.slow
def test_an_unsigned_call_is_refused(greeting: Greeting) -> None:
    assert greeting.call(signed=False).status == 403


@pytest.mark.slow
def test_a_user_may_call_what_a_policy_allows_and_nothing_else(
    greeting: Greeting, emulated_aws: EmulatedAws
) -> None:
    invoke = {"Effect": "Allow", "Action": "execute-api:Invoke", "Resource": "*"}
    allowed, stranger = emulated_aws.user("allowed", invoke), emulated_aws.user("stranger")
    assert greeting.call(keys=allowed).status == 200
    assert greeting.call(keys=stranger).status == 403


@pytest.mark.slow
def test_a_forged_signature_is_refused(greeting: Greeting, emulated_aws: EmulatedAws) -> None:
    invoke = {"Effect": "Allow", "Action": "execute-api:Invoke", "Resource": "*"}
    forged = Credentials(emulated_aws.user("robbed", invoke).access_key, "not the secret")
    assert greeting.call(keys=forged).status == 403


@pytest.mark.slow
def test_a_deployed_function_reaches_its_table(
    emulated_aws: EmulatedAws, deployed: dict[str, str]
) -> None:
    functions = emulated_aws.client("lambda")
    answer = functions.invoke(FunctionName=deployed["EchoArn"], Payload=b"{}")
    assert answer["Payload"].read() == b'{"ticked": true}'


WAITS = """
import pathlib, time

def handler(event, _):
    pathlib.Path(event["began"]).touch()
    while not pathlib.Path(event["end"]).exists():
        time.sleep(0.02)
    return "ended"
"""


@pytest.mark.slow
def test_an_invocation_under_way_survives_an_update_of_its_function(
    emulated_aws: EmulatedAws, tmp_path: Path
) -> None:
    functions = emulated_aws.client("lambda")
    emulated_aws.function("waits", WAITS)
    began, end = tmp_path / "began", tmp_path / "end"
    event = json.dumps({"began": str(began), "end": str(end)})
    with ThreadPoolExecutor() as beside:
        answer = beside.submit(functions.invoke, FunctionName="waits", Payload=event)
        wait(began.exists)
        functions.update_function_configuration(FunctionName="waits", Timeout=50)
        end.touch()
        assert answer.result(60)["Payload"].read() == b'"ended"'


@pytest.mark.slow
def test_the_lambda_runtime_reports_one_cold_start(
    built: Path, lambda_runtime: Callable[..., LambdaRuntime]
) -> None:
    runtime = lambda_runtime(
        built / "Echo", built / "DepsLayer", built / "CodeLayer", env={"TABLE": "unused"}
    )
    event = {"httpMethod": "POST", "pathParameters": {"name": "Ada"}, "body": None}
    cold, warm = runtime.invoke(event), runtime.invoke(event)
    assert cold.payload["statusCode"] == 200
    assert cold.init_ms is not None
    assert cold.init_ms > 0
    assert warm.init_ms is None


def layer_of(modules: Mapping[str, str]) -> dict[str, bytes]:
    """Return a layer with some modules."""
    made = BytesIO()
    with ZipFile(made, "w") as archive:
        for name, source in modules.items():
            archive.writestr(f"python/{name}.py", source)
    return {"ZipFile": made.getvalue()}


GREETS = """
import greeting

def handler(event, _):
    return greeting.TEXT
"""


@pytest.mark.slow
def test_a_process_of_a_function_starts_from_the_layer_that_it_was_invoked_with(
    emulated_aws: EmulatedAws,
) -> None:
    """Another version takes the place of the layer, as in a nested stack, where the old layer goes
    at once. Calls come all the while: a call that began before finds its layer.
    """
    functions = emulated_aws.client("lambda")
    emulated_aws.function("greets", GREETS)

    def publish(name: str, modules: Mapping[str, str]) -> str:
        made = functions.publish_layer_version(LayerName=name, Content=layer_of(modules))
        return str(made["LayerVersionArn"])

    many = publish("many", {f"module_{number}": "" for number in range(800)})  # it takes a while

    def replace(number: int) -> None:
        layers = [many, publish("greeting", {"greeting": f"TEXT = {number}"})]
        functions.update_function_configuration(FunctionName="greets", Layers=layers)
        if number > 1:
            functions.delete_layer_version(LayerName="greeting", VersionNumber=number - 1)

    def call(_: int) -> bytes:
        found: bytes = functions.invoke(FunctionName="greets", Payload="{}")["Payload"].read()
        return found

    replace(1)
    with ThreadPoolExecutor(4) as beside:
        answers = beside.map(call, range(4))
        for number in (2, 3):
            replace(number)
        found = list(answers)
    assert [one for one in found if not one.isdigit()] == []


INNER = """
Transform: AWS::Serverless-2016-10-31
Parameters:
  Answer: {Type: String}
Resources:
  Queue: {Type: "AWS::SQS::Queue"}
  Echo:
    Type: AWS::Serverless::Function
    Properties:
      Runtime: python3.13
      Handler: index.handler
      InlineCode: |
        import os
        def handler(event, context):
            return os.environ["ANSWER"]
      Environment: {Variables: {ANSWER: !Ref Answer}}
Outputs:
  Queue: {Value: !GetAtt Queue.QueueName}
  Echo: {Value: !Ref Echo}
"""
OUTER = """
Parameters:
  Answer: {Type: String}
Resources:
  Inner:
    Type: AWS::CloudFormation::Stack
    Properties: {TemplateURL: "%s", Parameters: {Answer: !Ref Answer}}
Outputs:
  Queue: {Value: !GetAtt Inner.Outputs.Queue}
  Echo: {Value: !GetAtt Inner.Outputs.Echo}
"""


@pytest.mark.slow
def test_a_nested_stack_may_be_serverless_and_keeps_what_an_update_leaves_alone(
    emulated_aws: EmulatedAws,
) -> None:
    store, stacks = emulated_aws.client("s3"), emulated_aws.client("cloudformation")
    store.create_bucket(Bucket="nested")
    store.put_object(Bucket="nested", Key="inner.yaml", Body=INNER)
    asked = {
        "StackName": "outer",
        "TemplateBody": OUTER % "https://s3.us-east-1.amazonaws.com/nested/inner.yaml",
        "Capabilities": ["CAPABILITY_IAM", "CAPABILITY_AUTO_EXPAND"],
    }
    seen, patience = [], {"Delay": 1, "MaxAttempts": 60}
    for act, answer in (("create", "first"), ("update", "second")):
        given = [{"ParameterKey": "Answer", "ParameterValue": answer}]
        getattr(stacks, f"{act}_stack")(**asked, Parameters=given)
        waiter = stacks.get_waiter(f"stack_{act}_complete")
        waiter.wait(StackName="outer", WaiterConfig=patience)
        outputs = emulated_aws.outputs("outer")
        functions = emulated_aws.client("lambda")
        said = functions.invoke(FunctionName=outputs["Echo"], Payload="{}")["Payload"].read()
        seen.append((outputs["Queue"], said))
    (queue, first), (same, second) = seen
    assert (first, second) == (b'"first"', b'"second"')
    assert queue == same != ""

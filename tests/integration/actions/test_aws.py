"""Targets in AWS, on the emulated one: a due message arrives, and a repeat is dropped."""

import json
from typing import Any, cast

import boto3
import pytest
from duetick import Flow
from duetick.actions import EventBus, Function, Queue, StateMachine, Topic
from duetick.actions.messages import TargetFailed
from duetick.core.action import ActionFunction
from duetick.testing import Fired, fire

from tests.lab.emulated_aws import EmulatedAws

LONGEST_WAIT = 20
"""Seconds that SQS waits for a message."""
PATIENCE = 60

pytestmark = pytest.mark.slow


@pytest.fixture
def aws(emulated_aws: EmulatedAws, monkeypatch: pytest.MonkeyPatch) -> boto3.Session:
    """Return a session whose calls go to the emulated AWS."""
    session = emulated_aws.session()
    monkeypatch.setenv("AWS_ENDPOINT_URL", emulated_aws.endpoint)
    return session


def sent_by(target: ActionFunction, text: str = "good morning") -> Fired:
    """Fire a schedule whose action is the target."""
    flow = Flow("outside")
    flow.action("notify", target=target)
    return fire(flow, action="notify", input={"text": text})


def queue_of_anyone(aws: boto3.Session, name: str) -> tuple[str, str]:
    """Return the URL and the ARN of a queue that other services may send to."""
    sqs = aws.client("sqs")
    url = sqs.create_queue(QueueName=name)["QueueUrl"]
    attributes = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]
    statement = {
        "Effect": "Allow",
        "Principal": "*",
        "Action": "sqs:SendMessage",
        "Resource": attributes["QueueArn"],
    }
    policy = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
    sqs.set_queue_attributes(QueueUrl=url, Attributes={"Policy": policy})
    return url, attributes["QueueArn"]


def received(aws: boto3.Session, url: str) -> list[dict[str, Any]]:
    """Take the bodies out of a queue, once there are any."""
    sqs = aws.client("sqs")
    for _ in range(PATIENCE // LONGEST_WAIT):
        answer = sqs.receive_message(
            QueueUrl=url, MaxNumberOfMessages=10, WaitTimeSeconds=LONGEST_WAIT
        )
        if messages := answer.get("Messages"):
            for message in messages:
                sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
            return [json.loads(message["Body"]) for message in messages]
    return []


def test_a_message_arrives_in_a_queue(aws: boto3.Session) -> None:
    url = aws.client("sqs").create_queue(QueueName="due")["QueueUrl"]
    assert sent_by(Queue(url, lambda: aws.client("sqs"))).state == "succeeded"
    (told,) = received(aws, url)
    assert (told["user"], told["input"]) == ("ann", {"text": "good morning"})


def test_a_fifo_queue_drops_a_repeat(aws: boto3.Session) -> None:
    made = aws.client("sqs").create_queue(QueueName="due.fifo", Attributes={"FifoQueue": "true"})
    for _ in range(2):
        sent_by(Queue(made["QueueUrl"], lambda: aws.client("sqs")))
    assert len(received(aws, made["QueueUrl"])) == 1


def test_a_topic_passes_it_on(aws: boto3.Session) -> None:
    sns = aws.client("sns")
    url, arn = queue_of_anyone(aws, "behind")
    topic = sns.create_topic(Name="due")["TopicArn"]
    sns.subscribe(
        TopicArn=topic,
        Protocol="sqs",
        Endpoint=arn,
        Attributes={"RawMessageDelivery": "true"},
    )
    assert sent_by(Topic(topic, lambda: aws.client("sns"))).state == "succeeded"
    assert [told["user"] for told in received(aws, url)] == ["ann"]


def test_a_bus_passes_it_to_a_rules_target(aws: boto3.Session) -> None:
    events = aws.client("events")
    url, arn = queue_of_anyone(aws, "ruled")
    events.create_event_bus(Name="due")
    events.put_rule(
        Name="all", EventBusName="due", EventPattern=json.dumps({"source": ["duetick"]})
    )
    events.put_targets(Rule="all", EventBusName="due", Targets=[{"Id": "queue", "Arn": arn}])
    assert sent_by(EventBus("due", client=lambda: aws.client("events"))).state == "succeeded"
    (told,) = received(aws, url)
    assert (told["detail-type"], told["detail"]["user"]) == ("Schedule due", "ann")


def test_an_execution_is_started_once_for_an_occurrence(
    aws: boto3.Session, emulated_aws: EmulatedAws
) -> None:
    states = aws.client("stepfunctions")
    made = states.create_state_machine(
        name="due",
        roleArn=emulated_aws.role("states", "states"),
        definition=json.dumps({"StartAt": "end", "States": {"end": {"Type": "Succeed"}}}),
    )
    machine = StateMachine(made["stateMachineArn"], lambda: aws.client("stepfunctions"))
    for _ in range(2):
        assert sent_by(machine).state == "succeeded"
    found = states.list_executions(stateMachineArn=made["stateMachineArn"])["executions"]
    assert len(found) == 1


HANDLER = """
import json, os, boto3

def handler(event, context):
    boto3.client("sqs").send_message(QueueUrl=os.environ["TOLD"], MessageBody=json.dumps(event))
    if event["input"]["text"] == "fail":
        raise RuntimeError("told to")
"""


@pytest.fixture(scope="module")
def told(emulated_aws: EmulatedAws) -> str:
    """Return the queue to which a Lambda function called `due` passes its events on."""
    url = emulated_aws.client("sqs").create_queue(QueueName="told")["QueueUrl"]
    may_send = {"Effect": "Allow", "Action": "sqs:SendMessage", "Resource": "*"}
    emulated_aws.function("due", HANDLER, may_send, TOLD=url)
    return str(url)


def told_of(aws: boto3.Session, url: str, text: str, count: int) -> list[dict[str, Any]]:
    """Return the events of one input, without those of other tests that Lambda tries again."""
    found: list[dict[str, Any]] = []
    while len(found) < count and (events := received(aws, url)):
        found += [event for event in events if event["input"]["text"] == text]
    return found


def test_a_function_is_invoked_with_who_what_and_when(aws: boto3.Session, told: str) -> None:
    assert sent_by(Function("due", lambda: aws.client("lambda"))).state == "succeeded"
    (event,) = told_of(aws, told, "good morning", 1)
    assert (event["user"], event["flow"]) == ("ann", "outside")
    assert event["scheduleId"] == "ann/fired"
    assert event["nominalFireTime"] == "2026-12-01T09:00:00Z"
    assert event["input"] == {"text": "good morning"}


def test_a_function_is_told_by_the_same_name_that_an_occurrence_comes_again(
    aws: boto3.Session, told: str
) -> None:
    for _ in range(2):
        sent_by(Function("due", lambda: aws.client("lambda")), "again")
    events = told_of(aws, told, "again", 2)
    assert len(events) == 2
    assert len({event["occurrence"] for event in events}) == 1


def test_a_function_that_fails_is_lambdas_to_try_again(aws: boto3.Session, told: str) -> None:
    """The invocation is asynchronous: the action promises only that Lambda has taken it."""
    fired = sent_by(Function("due", lambda: aws.client("lambda")), "fail")
    assert (fired.state, fired.error) == ("succeeded", None)
    assert told_of(aws, told, "fail", 1)


def test_a_function_that_does_not_take_it_fails_the_attempt(aws: boto3.Session) -> None:
    class Refusing:
        def invoke(self, **_: object) -> dict[str, int]:
            return {"StatusCode": 200}

    with pytest.raises(TargetFailed, match="200, not 202"):
        sent_by(Function("due", lambda: cast("Any", Refusing())))


def test_a_function_that_is_not_there_fails_the_attempt(aws: boto3.Session) -> None:
    client = aws.client("lambda")
    with pytest.raises(client.exceptions.ClientError, match="not"):
        sent_by(Function("nowhere", lambda: client))

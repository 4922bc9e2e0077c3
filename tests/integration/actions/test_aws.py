"""Targets in AWS, against the emulated one: what is due arrives, and a repeat is dropped."""

import json
from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from duetick import Flow
from duetick.actions import EventBus, Function, Queue, StateMachine, Topic
from duetick.actions.aws import forget_clients
from duetick.core.flows import ActionFunction
from duetick.testing import Fired, fire

from tests.lab.emulated_aws import REGION, EmulatedAws

pytestmark = pytest.mark.slow


@pytest.fixture
def aws(emulated_aws: EmulatedAws, monkeypatch: pytest.MonkeyPatch) -> Iterator[boto3.Session]:
    """A session whose calls, and the targets', go to the emulated AWS."""
    session = emulated_aws.session()
    monkeypatch.setenv("AWS_ENDPOINT_URL", emulated_aws.endpoint)
    monkeypatch.setenv("AWS_DEFAULT_REGION", REGION)
    forget_clients()
    yield session
    forget_clients()


def sent_by(target: ActionFunction) -> Fired:
    """Fire a schedule whose action it is."""
    flow = Flow("outside")
    flow.action("notify", target=target)
    return fire(flow, action="notify", input={"text": "good morning"})


def queue_of_anyone(aws: boto3.Session, name: str) -> tuple[str, str]:
    """The URL and the ARN of a queue that other services may send to."""
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
    """The bodies in a queue."""
    answer = aws.client("sqs").receive_message(
        QueueUrl=url, MaxNumberOfMessages=10, WaitTimeSeconds=2
    )
    return [json.loads(message["Body"]) for message in answer.get("Messages", [])]


def test_a_message_arrives_in_a_queue(aws: boto3.Session) -> None:
    url = aws.client("sqs").create_queue(QueueName="due")["QueueUrl"]
    assert sent_by(Queue(url)).state == "succeeded"
    (told,) = received(aws, url)
    assert (told["user"], told["input"]) == ("ann", {"text": "good morning"})


def test_a_fifo_queue_drops_a_repeat(aws: boto3.Session) -> None:
    made = aws.client("sqs").create_queue(QueueName="due.fifo", Attributes={"FifoQueue": "true"})
    for _ in range(2):
        sent_by(Queue(made["QueueUrl"]))
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
    assert sent_by(Topic(topic)).state == "succeeded"
    assert [told["user"] for told in received(aws, url)] == ["ann"]


def test_a_bus_passes_it_to_a_rules_target(aws: boto3.Session) -> None:
    events = aws.client("events")
    url, arn = queue_of_anyone(aws, "ruled")
    events.create_event_bus(Name="due")
    events.put_rule(
        Name="all", EventBusName="due", EventPattern=json.dumps({"source": ["duetick"]})
    )
    events.put_targets(Rule="all", EventBusName="due", Targets=[{"Id": "queue", "Arn": arn}])
    assert sent_by(EventBus("due")).state == "succeeded"
    (told,) = received(aws, url)
    assert (told["detail-type"], told["detail"]["user"]) == ("Schedule due", "ann")


def test_an_execution_is_started_once_for_an_occurrence(aws: boto3.Session) -> None:
    states = aws.client("stepfunctions")
    trust = {"Effect": "Allow", "Principal": {"Service": "states.amazonaws.com"}}
    role = aws.client("iam").create_role(
        RoleName="states",
        AssumeRolePolicyDocument=json.dumps(
            {"Version": "2012-10-17", "Statement": [{**trust, "Action": "sts:AssumeRole"}]}
        ),
    )
    made = states.create_state_machine(
        name="due",
        roleArn=role["Role"]["Arn"],
        definition=json.dumps({"StartAt": "end", "States": {"end": {"Type": "Succeed"}}}),
    )
    for _ in range(2):
        assert sent_by(StateMachine(made["stateMachineArn"])).state == "succeeded"
    found = states.list_executions(stateMachineArn=made["stateMachineArn"])["executions"]
    assert len(found) == 1


def test_a_function_that_is_not_there_fails_the_attempt(aws: boto3.Session) -> None:
    client = aws.client("lambda")
    with pytest.raises(client.exceptions.ClientError, match="not"):
        sent_by(Function("nowhere"))

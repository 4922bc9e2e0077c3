"""Targets in one's own AWS account. The dispatch function's role has to allow each call.

`client` is for one of another region or account: a function that gives it, and keeps it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from duetick.actions.messages import TargetFailed, as_text, identity, in_order
from duetick.core.context import Context
from duetick.domain.schedule import Json

if TYPE_CHECKING:
    from mypy_boto3_events import EventBridgeClient
    from mypy_boto3_lambda import LambdaClient
    from mypy_boto3_sns import SNSClient
    from mypy_boto3_sqs import SQSClient
    from mypy_boto3_stepfunctions import SFNClient


@cache
def _events() -> "EventBridgeClient":
    import boto3

    return boto3.client("events")


@cache
def _sqs() -> "SQSClient":
    import boto3

    return boto3.client("sqs")


@cache
def _sns() -> "SNSClient":
    import boto3

    return boto3.client("sns")


@cache
def _lambda() -> "LambdaClient":
    import boto3

    return boto3.client("lambda")


@cache
def _states() -> "SFNClient":
    import boto3

    return boto3.client("stepfunctions")


@dataclass(frozen=True, slots=True)
class EventBus:
    """An event on an EventBridge bus; needs events:PutEvents."""

    name: str = "default"
    source: str = "duetick"
    detail_type: str = "Schedule due"
    client: Callable[[], "EventBridgeClient"] = _events

    def __call__(self, given: Json, ctx: Context) -> None:
        """Put it; an entry that the bus refuses is an error."""
        answer = self.client().put_events(
            Entries=[
                {
                    "EventBusName": self.name,
                    "Source": self.source,
                    "DetailType": self.detail_type,
                    "Detail": as_text(given, ctx),
                }
            ]
        )
        if answer["FailedEntryCount"]:
            code = answer["Entries"][0].get("ErrorCode", "no reason given")
            raise TargetFailed(f"The bus {self.name} did not take the event: {code}.")


@dataclass(frozen=True, slots=True)
class Queue:
    """A message in an SQS queue; needs sqs:SendMessage. A FIFO queue drops a repeat."""

    url: str
    client: Callable[[], "SQSClient"] = _sqs

    def __call__(self, given: Json, ctx: Context) -> None:
        """Send it."""
        self.client().send_message(
            QueueUrl=self.url, MessageBody=as_text(given, ctx), **in_order(self.url, ctx)
        )


@dataclass(frozen=True, slots=True)
class Topic:
    """A message on an SNS topic; needs sns:Publish. A FIFO topic drops a repeat."""

    arn: str
    client: Callable[[], "SNSClient"] = _sns

    def __call__(self, given: Json, ctx: Context) -> None:
        """Publish it."""
        self.client().publish(
            TopicArn=self.arn, Message=as_text(given, ctx), **in_order(self.arn, ctx)
        )


@dataclass(frozen=True, slots=True)
class Function:
    """An asynchronous invocation of a Lambda function; needs lambda:InvokeFunction."""

    name: str
    client: Callable[[], "LambdaClient"] = _lambda

    def __call__(self, given: Json, ctx: Context) -> None:
        """Hand it over; Lambda keeps it from then on."""
        payload = as_text(given, ctx).encode()
        answer = self.client().invoke(
            FunctionName=self.name, InvocationType="Event", Payload=payload
        )
        if answer["StatusCode"] != 202:
            raise TargetFailed(f"{self.name} was not invoked: {answer['StatusCode']}, not 202.")


@dataclass(frozen=True, slots=True)
class StateMachine:
    """A Step Functions execution, one for each occurrence; needs states:StartExecution."""

    arn: str
    client: Callable[[], "SFNClient"] = _states

    def __call__(self, given: Json, ctx: Context) -> None:
        """Start it; that it was started before is as good."""
        client = self.client()
        try:
            client.start_execution(
                stateMachineArn=self.arn, name=identity(ctx), input=as_text(given, ctx)
            )
        except client.exceptions.ExecutionAlreadyExists:
            return

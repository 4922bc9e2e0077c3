"""Targets in your own AWS account. The role of the dispatch function must allow each call.

For another region or account, give `client`: a function that returns the client, and keeps it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

from duetick.actions.messages import TargetFailed, as_text, fifo_fields, identity
from duetick.aws import client_of
from duetick.core.context import Context
from duetick.domain.schedule import Json

if TYPE_CHECKING:
    from mypy_boto3_events import EventBridgeClient
    from mypy_boto3_lambda import LambdaClient
    from mypy_boto3_sns import SNSClient
    from mypy_boto3_sqs import SQSClient
    from mypy_boto3_stepfunctions import SFNClient

_EVENTS: Final["Callable[[], EventBridgeClient]"] = partial(client_of, "events")
_SQS: Final["Callable[[], SQSClient]"] = partial(client_of, "sqs")
_SNS: Final["Callable[[], SNSClient]"] = partial(client_of, "sns")
_LAMBDA: Final["Callable[[], LambdaClient]"] = partial(client_of, "lambda")
_STATES: Final["Callable[[], SFNClient]"] = partial(client_of, "stepfunctions")


@dataclass(frozen=True, slots=True)
class EventBus:
    """An event on an EventBridge bus; needs events:PutEvents."""

    name: str = "default"
    source: str = "duetick"
    detail_type: str = "Schedule due"
    client: Callable[[], "EventBridgeClient"] = _EVENTS

    def __call__(self, given: Json, ctx: Context) -> None:
        """Put the event. Raise TargetFailed if the bus refuses it."""
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
    client: Callable[[], "SQSClient"] = _SQS

    def __call__(self, given: Json, ctx: Context) -> None:
        """Send the message."""
        self.client().send_message(
            QueueUrl=self.url, MessageBody=as_text(given, ctx), **fifo_fields(self.url, ctx)
        )


@dataclass(frozen=True, slots=True)
class Topic:
    """A message on an SNS topic; needs sns:Publish. A FIFO topic drops a repeat."""

    arn: str
    client: Callable[[], "SNSClient"] = _SNS

    def __call__(self, given: Json, ctx: Context) -> None:
        """Publish the message."""
        self.client().publish(
            TopicArn=self.arn, Message=as_text(given, ctx), **fifo_fields(self.arn, ctx)
        )


@dataclass(frozen=True, slots=True)
class Function:
    """An asynchronous invocation of a Lambda function; needs lambda:InvokeFunction."""

    name: str
    client: Callable[[], "LambdaClient"] = _LAMBDA

    def __call__(self, given: Json, ctx: Context) -> None:
        """Queue the invocation. Lambda keeps it from then on."""
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
    client: Callable[[], "SFNClient"] = _STATES

    def __call__(self, given: Json, ctx: Context) -> None:
        """Start the execution, unless it was started before."""
        client = self.client()
        try:
            client.start_execution(
                stateMachineArn=self.arn, name=identity(ctx), input=as_text(given, ctx)
            )
        except client.exceptions.ExecutionAlreadyExists:
            return

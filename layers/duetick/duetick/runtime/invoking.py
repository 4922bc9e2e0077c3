"""Invocations of the dispatch function without a gateway.

A background action is an asynchronous, durable invocation. A run by hand waits for the answer.
"""

import json
import os
import threading
from collections.abc import Callable, Mapping
from typing import Any, Final

from duetick.aws import client_of
from duetick.core.dispatch import Request, request_of
from duetick.core.runs import PATIENCE
from duetick.domain.errors import ConfigurationError, StoreUnavailable
from duetick.domain.schedule import Principal
from duetick.ports import Deliverable, Delivered

MARK: Final = "duetickBackground"
"""A field that no event of API Gateway has: only the owner of the function can send it."""


def to_event(request: Request) -> dict[str, Any]:
    """Return the event of an invocation that runs the request. It has none of the headers."""
    return {
        MARK: {
            "flow": request.flow,
            "pathId": request.path_id,
            "body": request.body,
            "requestId": request.request_id,
            "caller": request.caller.user_id if request.caller else None,
        }
    }


def from_event(event: dict[str, Any], seconds: float) -> Request | None:
    """Return the request that `to_event` wrote, or None for any other event."""
    written = event.get(MARK)
    if not isinstance(written, dict):
        return None
    return Request(
        flow=written["flow"],
        path_id=written["pathId"],
        headers={},
        body=written["body"],
        request_id=written["requestId"],
        caller=Principal(written["caller"]) if written["caller"] else None,
        seconds=seconds,
    )


def enqueue(request: Request) -> None:
    """Queue an invocation of this function that runs a request."""
    call_this(to_event(request))


def call_this(event: Mapping[str, object]) -> None:
    """Queue an invocation of this function with an event."""
    name = os.environ.get("AWS_LAMBDA_FUNCTION_NAME", "")
    if not name:
        raise ConfigurationError("A function calls itself in Lambda, or in the local stack.")
    _queue(name, event)


def queue(function: str, request: Request) -> None:
    """Queue an invocation of the dispatch function that runs a request."""
    _queue(function, to_event(request))


def _queue(name: str, event: Mapping[str, object]) -> None:
    answer = client_of("lambda").invoke(
        FunctionName=name, InvocationType="Event", Payload=json.dumps(event).encode()
    )
    if answer["StatusCode"] != 202:
        raise StoreUnavailable(f"The invocation was not queued: status {answer['StatusCode']}.")


def enqueue_in_thread(run: Callable[[Request], object]) -> Callable[[Request], None]:
    """Return the queue of the local stack: a new thread takes the place of an invocation."""

    def start(request: Request) -> None:
        threading.Thread(target=run, args=(request,), daemon=True, name="background").start()

    return start


class InvokeTransport:
    """`ports.Transport` that invokes the dispatch function and waits for its answer."""

    def __init__(self, function: str) -> None:
        self._function = function

    def deliver(self, occurrence: Deliverable, *, timeout: float) -> Delivered:
        """See `Transport`. `timeout` has no effect: the client's own timeout bounds the wait."""
        del timeout
        from botocore.exceptions import BotoCoreError, ClientError

        event = to_event(request_of(occurrence))
        try:
            answer = client_of("lambda", patience=PATIENCE).invoke(
                FunctionName=self._function, Payload=json.dumps(event).encode()
            )
            reply = json.loads(answer["Payload"].read())
        except (BotoCoreError, ClientError, ValueError) as problem:
            return Delivered(0, type(problem).__name__)
        return Delivered(int(reply.get("statusCode", 0)), str(reply.get("body", "")))

    def close(self) -> None:
        """See `Transport`."""

"""Background actions: an invocation of their own, asynchronous and durable, or a thread here."""

import json
import os
import threading
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any, Final, cast

from duetick.core.calls import Request
from duetick.domain.errors import ConfigurationError, StoreUnavailable
from duetick.domain.schedule import Principal

if TYPE_CHECKING:
    from mypy_boto3_lambda import LambdaClient

MARK: Final = "duetickBackground"
"""No event of API Gateway has this: whoever can invoke the function itself is its owner."""


def to_event(request: Request) -> dict[str, Any]:
    """The event of the invocation that runs it. The caller's headers stay behind."""
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
    """What `to_event` made; None for any other event."""
    told = event.get(MARK)
    if not isinstance(told, dict):
        return None
    return Request(
        flow=told["flow"],
        path_id=told["pathId"],
        headers={},
        body=told["body"],
        request_id=told["requestId"],
        caller=Principal(told["caller"]) if told["caller"] else None,
        seconds=seconds,
    )


def invoke(request: Request) -> None:
    """Queue an invocation of this very function."""
    name = os.environ.get("AWS_LAMBDA_FUNCTION_NAME", "")
    if not name:
        raise ConfigurationError("Background actions run in Lambda or in the local stack.")
    answer = _client().invoke(
        FunctionName=name, InvocationType="Event", Payload=json.dumps(to_event(request)).encode()
    )
    if answer["StatusCode"] != 202:
        raise StoreUnavailable(f"The invocation was not queued: status {answer['StatusCode']}.")


@cache
def _client() -> "LambdaClient":
    from botocore.session import get_session

    return cast("LambdaClient", get_session().create_client("lambda"))


def in_thread(run: Callable[[Request], object]) -> Callable[[Request], None]:
    """What the local stack has in place of an invocation."""

    def start(request: Request) -> None:
        threading.Thread(target=run, args=(request,), daemon=True, name="background").start()

    return start

"""Dispatch by an invocation of its function: for runs by hand, which no gateway stands before."""

import json
from functools import cache
from typing import TYPE_CHECKING, cast

from duetick.core.calls import request_of
from duetick.core.runs import PATIENCE
from duetick.domain.schedule import Occurrence
from duetick.ports import Delivery
from duetick.runtime.background import to_event

if TYPE_CHECKING:
    from mypy_boto3_lambda import LambdaClient


class InvokeTransport:
    """`ports.Transport` that invokes the dispatch function, and waits for its answer."""

    def __init__(self, function: str) -> None:
        self._function = function

    def deliver(self, occurrence: Occurrence, *, timeout: float) -> Delivery:
        """See `Transport`. The client's own patience is what bounds the wait."""
        del timeout
        from botocore.exceptions import BotoCoreError, ClientError

        event = to_event(request_of(occurrence))
        try:
            answer = _client().invoke(
                FunctionName=self._function, Payload=json.dumps(event).encode()
            )
            told = json.loads(answer["Payload"].read())
        except (BotoCoreError, ClientError, ValueError) as problem:
            return Delivery(0, type(problem).__name__)
        return Delivery(int(told.get("statusCode", 0)), str(told.get("body", "")))

    def close(self) -> None:
        """See `Transport`."""


@cache
def _client() -> "LambdaClient":
    from botocore.config import Config
    from botocore.session import get_session

    config = Config(connect_timeout=2, read_timeout=PATIENCE, retries={"total_max_attempts": 1})
    return cast("LambdaClient", get_session().create_client("lambda", config=config))

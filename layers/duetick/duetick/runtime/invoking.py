"""Deliver by invoking the dispatch function itself: for a function that stands behind the API.

The API names that function, so the function cannot be told the API's address at a deploy.
"""

import json
from functools import cache
from typing import TYPE_CHECKING, cast

from duetick.core.calls import Request
from duetick.core.wire import delivery_json
from duetick.domain.identity import to_path
from duetick.domain.schedule import Occurrence
from duetick.ports import Delivery
from duetick.runtime.background import to_event

if TYPE_CHECKING:
    from mypy_boto3_lambda import LambdaClient


class InvokeTransport:
    """`ports.Transport` over Lambda's own API; the right to invoke is the authentication."""

    def __init__(self, function: str) -> None:
        self._function = function

    def deliver(self, occurrence: Occurrence, *, timeout: float) -> Delivery:
        """See `Transport`."""
        request = Request(
            flow=occurrence.flow,
            path_id=to_path(occurrence.schedule_id),
            headers={},
            body=json.dumps(delivery_json(occurrence)),
            request_id=occurrence.id,
        )
        payload = json.dumps(to_event(request)).encode()
        from botocore.exceptions import BotoCoreError, ClientError

        try:
            answer = _client(timeout).invoke(FunctionName=self._function, Payload=payload)
            told = json.loads(answer["Payload"].read())
        except (BotoCoreError, ClientError, ValueError) as error:
            return Delivery(0, f"{type(error).__name__}: {error}")
        if "statusCode" not in told:
            return Delivery(502, "The dispatch function failed; its log says why.")
        return Delivery(int(told["statusCode"]), str(told.get("body", "")))

    def close(self) -> None:
        """See `Transport`."""


@cache
def _client(timeout: float) -> "LambdaClient":
    from botocore.config import Config
    from botocore.session import get_session

    once = Config(read_timeout=timeout, retries={"total_max_attempts": 1})
    return cast("LambdaClient", get_session().create_client("lambda", config=once))

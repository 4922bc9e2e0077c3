"""Deliver within the process: for a cron source of one's own, and for tests."""

import json
from collections.abc import Callable

from duetick.core.answers import Answer
from duetick.core.calls import Request, request_of
from duetick.domain.schedule import Occurrence
from duetick.ports import Delivery


class InlineTransport:
    """`ports.Transport` that calls a dispatcher directly, with the same body as over HTTP."""

    def __init__(self, dispatch: Callable[[Request], Answer]) -> None:
        self._dispatch = dispatch

    def deliver(self, occurrence: Occurrence, *, timeout: float) -> Delivery:
        """See `Transport`. Nothing can cut an action of this process short."""
        del timeout
        answer = self._dispatch(request_of(occurrence))
        return Delivery(answer.status, json.dumps(answer.body))

    def close(self) -> None:
        """See `Transport`."""

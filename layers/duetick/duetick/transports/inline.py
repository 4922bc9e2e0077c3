"""Deliver within the process: for your own cron source, and for tests."""

import json
from collections.abc import Callable

from duetick.core.answers import Answer
from duetick.core.dispatch import Request, request_of
from duetick.ports import Deliverable, Delivered


class InlineTransport:
    """`ports.Transport` that calls a dispatcher directly, with the same body as over HTTP."""

    def __init__(self, dispatch: Callable[[Request], Answer]) -> None:
        self._dispatch = dispatch

    def deliver(self, occurrence: Deliverable, *, timeout: float) -> Delivered:
        """See `Transport`. `timeout` has no effect: nothing can stop an action in this process."""
        del timeout
        answer = self._dispatch(request_of(occurrence))
        return Delivered(answer.status, json.dumps(answer.body))

    def close(self) -> None:
        """See `Transport`."""

"""Deliver within the process: for a cron source of one's own, and for tests."""

import json
from collections.abc import Callable

from duetick.core.answers import Answer
from duetick.core.calls import Request
from duetick.core.wire import delivery_json
from duetick.domain.identity import to_path
from duetick.domain.schedule import Occurrence
from duetick.ports import Delivery


class InlineTransport:
    """`ports.Transport` that calls a dispatcher directly, with the same body as over HTTP."""

    def __init__(self, dispatch: Callable[[Request], Answer]) -> None:
        self._dispatch = dispatch

    def deliver(self, occurrence: Occurrence, *, timeout: float) -> Delivery:
        """See `Transport`. Nothing can cut an action of this process short."""
        del timeout
        answer = self._dispatch(
            Request(
                flow=occurrence.flow,
                path_id=to_path(occurrence.schedule_id),
                headers={},
                body=json.dumps(delivery_json(occurrence)),
                request_id=occurrence.id,
            )
        )
        return Delivery(answer.status, json.dumps(answer.body))

    def close(self) -> None:
        """See `Transport`."""

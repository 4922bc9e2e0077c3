"""A look at the requests that a shelf sends to DynamoDB, and answers in place of the service's."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from duetick.network.exchange import HttpAnswer
from duetick.ports import Shelf
from duetick.stores.dynamodb.service import Body, JsonService, Sender, Service
from duetick.stores.dynamodb.shelf import DynamoShelf

Look = Callable[[str, dict[str, Any]], object]
"""A function that sees the name of an operation, and its request or its answer."""


def _overlook(_operation: str, _body: dict[str, Any]) -> None:
    """See nothing."""


class Between:
    """A service behind functions that see each request before it is sent, and each answer.

    A function may change what it sees, or raise.
    """

    def __init__(self, service: Service, before: Look = _overlook, after: Look = _overlook) -> None:
        self._service = service
        self._before = before
        self._after = after

    @property
    def date(self) -> int | None:
        """See `Service`."""
        return self._service.date

    def call(self, operation: str, request: Body) -> dict[str, Any]:
        """See `Service`."""
        changed = dict(request)
        self._before(operation, changed)
        answer = self._service.call(operation, changed)
        self._after(operation, answer)
        return answer

    def close(self) -> None:
        """See `Service`."""
        self._service.close()


def watch(shelf: Shelf, before: Look = _overlook, after: Look = _overlook) -> None:
    """See the requests of a shelf from now on."""
    assert isinstance(shelf, DynamoShelf)
    shelf._table.service = Between(shelf._table.service, before, after)


@contextmanager
def watched(shelf: Shelf, before: Look) -> Iterator[None]:
    """See the requests of a shelf inside the block."""
    assert isinstance(shelf, DynamoShelf)
    service = shelf._table.service
    shelf._table.service = Between(service, before)
    yield
    shelf._table.service = service


class Refusing:
    """A sender that answers in place of the service: to every request, or to one operation."""

    def __init__(self, sender: Sender, body: bytes, operation: str = "") -> None:
        self._sender = sender
        self._body = body
        self._operation = operation
        self.refused: list[str] = []

    def send(self, operation: str, body: bytes, now: int) -> HttpAnswer:
        """See `Sender`."""
        if self._operation not in ("", operation):
            return self._sender.send(operation, body, now)
        self.refused.append(operation)
        return HttpAnswer(400, self._body, kept=True)

    def close(self) -> None:
        """See `Sender`."""
        self._sender.close()


def answer_with(shelf: Shelf, body: bytes, operation: str = "") -> list[str]:
    """Refuse the requests of a shelf with that body. Return the refused requests: one for each
    try.
    """
    assert isinstance(shelf, DynamoShelf)
    service = shelf._table.service
    assert isinstance(service, JsonService)
    service.sender = refusing = Refusing(service.sender, body, operation)
    return refusing.refused

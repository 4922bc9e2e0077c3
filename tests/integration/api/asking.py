"""Callers for the tests of the API."""

from collections.abc import Callable
from typing import Final

import pytest
from duetick.client import ApiError, Client, Fields

HELLO: Final[Fields] = {
    "cron": "0 9 * * *",
    "flow": "reminders",
    "action": "remind",
    "input": {"text": "good morning"},
}
MINUTE, HOUR, DAY = 60_000, 3_600_000, 86_400_000


def refused(call: Callable[..., object], *arguments: object, **fields: object) -> tuple[int, str]:
    """Return the status and the code of a refusal."""
    with pytest.raises(ApiError) as problem:
        call(*arguments, **fields)
    return problem.value.status, problem.value.code


def states(client: Client, key: str = "hello") -> list[tuple[object, object]]:
    """Return the state and the reason of each line of the history."""
    return [(line["state"], line["reason"]) for line in client.history(key)]

"""Retries after the write of another, or after a failure of the network."""

from collections.abc import Callable
from typing import TypeVar

Result = TypeVar("Result")
Wait = Callable[[int], object]


def retry(
    act: Callable[[], Result],
    error: type[Exception] | tuple[type[Exception], ...],
    tries: int,
    wait: Wait | None = None,
) -> Result:
    """Return the result of the first try that does not raise `error`. The last try raises it.

    `wait` is called between two tries, with the number of tries so far.
    """
    for tried in range(1, tries):
        try:
            return act()
        except error:
            if wait:
                wait(tried)
    return act()

"""Waiting on what other processes and threads do, which no injected clock can move."""

import time
from collections.abc import Callable


def wait(until: Callable[[], bool], seconds: float = 60) -> None:
    """Until it is so."""
    end = time.monotonic() + seconds
    while not until() and time.monotonic() < end:
        time.sleep(0.01)
    assert until()

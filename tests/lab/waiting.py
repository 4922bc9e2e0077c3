"""Waits for other processes and threads, which no injected clock can move."""

import time
from collections.abc import Callable


def wait(until: Callable[[], object], seconds: float = 60, pause: float = 0.01) -> None:
    """Until it is so."""
    end = time.monotonic() + seconds
    while not until() and time.monotonic() < end:
        time.sleep(pause)
    assert until()

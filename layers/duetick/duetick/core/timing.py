"""An action's soft timeout: it is told to stop before the runtime ends it without a word."""

import contextvars
import signal
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Final, NoReturn, TypeVar

Result = TypeVar("Result")

RESERVE: Final = 2.0
"""Seconds of an invocation that are kept for settling."""


class TimedOut(BaseException):
    """Raised inside an action that takes too long. No `except Exception` there can hold it up."""


def in_time(wanted: float, left: float | None) -> float:
    """So many seconds, but no more than the invocation has left beside the settling."""
    return wanted if left is None else min(wanted, max(left - RESERVE, 0.1))


def run_coroutine(coroutine: Coroutine[object, None, Result]) -> Result:
    """Run it to its end. Only who needs asyncio pays for its import."""
    import asyncio

    return asyncio.run(coroutine)


def run_within(seconds: float, call: Callable[[], None]) -> None:
    """Run it; raise TimedOut after that many seconds.

    In a main thread, such as Lambda's, it is interrupted wherever it stands, blocking calls too.
    In another thread it cannot be: it is left behind, and whatever it still does counts no more.
    """
    if threading.current_thread() is threading.main_thread():
        with _alarm(seconds):
            call()
    elif not ended_within(seconds, call):
        raise TimedOut


@contextmanager
def _alarm(seconds: float) -> Iterator[None]:
    def ring(_number: int, _frame: FrameType | None) -> NoReturn:
        raise TimedOut

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def ended_within(seconds: float, call: Callable[[], None]) -> bool:
    """Run it in a thread of its own, for what no signal interrupts; whether it has ended."""
    raised: list[BaseException] = []

    def run() -> None:
        try:
            call()
        except BaseException as problem:
            raised.append(problem)

    context = contextvars.copy_context()
    thread = threading.Thread(target=context.run, args=(run,), daemon=True, name="action")
    thread.start()
    thread.join(seconds)
    ended = not thread.is_alive()
    for problem in raised:
        raise problem
    return ended

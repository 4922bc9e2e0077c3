"""The soft timeout of an action: an exception stops it before the runtime kills the process."""

import contextvars
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Final, NoReturn, TypeAlias, TypeVar

Result = TypeVar("Result")

Within: TypeAlias = Callable[[float, Callable[[], None]], None]
"""A function like `run_within`."""

Await: TypeAlias = Callable[[Coroutine[object, None, object], float], object]
"""A function that runs a coroutine for so many seconds at most. It raises TimedOut after that."""

RESERVE: Final = 2.0
"""The seconds of an invocation that are reserved for settling."""


class TimedOut(BaseException):
    """The exception inside an action that takes too long. No `except Exception` catches it."""


def cap_timeout(wanted: float, remaining: float | None) -> float:
    """Return the wanted seconds, at most the remaining time of the invocation less the reserve."""
    return wanted if remaining is None else min(wanted, max(remaining - RESERVE, 0.1))


def run_coroutine(coroutine: Coroutine[object, None, Result]) -> Result:
    """Run a coroutine to its end. Without coroutines, asyncio is not imported."""
    import asyncio

    return asyncio.run(coroutine)


def run_within(seconds: float, call: Callable[[], None]) -> None:
    """Run a function. Raises TimedOut after that many seconds.

    In a main thread, such as Lambda's, the function is interrupted anywhere, even in a blocking
    call. In another thread it is interrupted in Python code alone: a blocking call runs on, and the
    result is dropped.
    """
    if threading.current_thread() is threading.main_thread():
        with _alarm(seconds):
            call()
    elif not run_in_thread(seconds, call):
        raise TimedOut


@contextmanager
def _alarm(seconds: float) -> Iterator[None]:
    import signal  # a tick rings no alarm

    def ring(_number: int, _frame: FrameType | None) -> NoReturn:
        raise TimedOut

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def run_in_thread(seconds: float, call: Callable[[], None]) -> bool:
    """Run a function in a new thread, where no signal interrupts it. Return True if it ended.

    If it did not, TimedOut is raised in it, once it is back in Python code.
    """
    raised: list[BaseException] = []

    def run() -> None:
        with suppress(TimedOut):
            try:
                call()
            except BaseException as problem:
                raised.append(problem)

    context = contextvars.copy_context()
    thread = threading.Thread(target=context.run, args=(run,), daemon=True, name="action")
    thread.start()
    thread.join(seconds)
    ended = not thread.is_alive()
    if not ended:
        ABANDONED.interrupt(thread)
        return False
    for problem in raised:
        raise problem
    return True


class Abandoned:
    """The threads of functions that still run though their time is over."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._threads: list[threading.Thread] = []

    def interrupt(self, thread: threading.Thread) -> None:
        """Raise TimedOut in a thread, and remember it until it ends."""
        import ctypes  # for what takes too long alone

        with self._lock:
            self._threads.append(thread)
        name = ctypes.c_ulong(thread.ident or 0)
        ctypes.pythonapi.PyThreadState_SetAsyncExc(name, ctypes.py_object(TimedOut))

    def count(self) -> int:
        """Count the threads that have not ended."""
        with self._lock:
            self._threads = [one for one in self._threads if one.is_alive()]
            return len(self._threads)


ABANDONED: Final = Abandoned()
"""Those of this process."""

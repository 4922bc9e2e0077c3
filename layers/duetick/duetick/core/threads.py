"""Threads, and the conditions on which they wait for one another."""

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import cache
from types import TracebackType
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

Start: TypeAlias = Callable[[Callable[[], object]], object]
"""A function that starts work in a thread of its own."""


class WaitPoint(Protocol):
    """`threading.Condition`, as far as ticks and packs use it."""

    def __enter__(self) -> bool: ...
    def __exit__(
        self,
        kind: type[BaseException] | None,
        raised: BaseException | None,
        trace: TracebackType | None,
        /,
    ) -> None: ...

    def wait(self) -> object:
        """Wait until another thread notifies this one."""

    def wait_for(self, predicate: Callable[[], bool], timeout: float) -> object:
        """Wait until the predicate is true, or until the seconds are over."""

    def notify(self, n: int = 1) -> None:
        """Wake that many of the threads that wait."""

    def notify_all(self) -> None:
        """Wake all threads that wait."""


class Threads(Protocol):
    """The way in which several calls run at once. A simulation has a way of its own."""

    def open_threads(self, most: int) -> AbstractContextManager[Start]:
        """Let the block start work in at most that many threads. Its end waits for all of them."""

    def conditions(self) -> tuple[WaitPoint, WaitPoint]:
        """Return two conditions under one lock."""


class RealThreads:
    """`Threads` of the operating system."""

    @contextmanager
    def open_threads(self, most: int) -> Iterator[Start]:
        """See `Threads`. Without work, no pool is made."""
        with ExitStack() as stack:

            @cache
            def pool() -> "ThreadPoolExecutor":
                from concurrent.futures import ThreadPoolExecutor

                made = ThreadPoolExecutor(most, thread_name_prefix="work")
                return stack.enter_context(made)

            yield lambda work: pool().submit(work)

    def conditions(self) -> tuple[WaitPoint, WaitPoint]:
        """See `Threads`."""
        lock = threading.RLock()
        return threading.Condition(lock), threading.Condition(lock)


REAL: Final = RealThreads()

"""One loop for the coroutines of a process: a client that they share stays usable."""

import asyncio
import threading
from collections.abc import Coroutine
from typing import TYPE_CHECKING

from duetick.core.timeouts import TimedOut

if TYPE_CHECKING:
    from concurrent.futures import Future


class SharedLoop:
    """A loop in a thread of its own. The first coroutine starts the loop, which stays."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None

    def run(self, coroutine: Coroutine[object, None, object], seconds: float) -> object:
        """Run a coroutine beside others. Cancel it after so many seconds, and raise TimedOut."""
        future: Future[object] = asyncio.run_coroutine_threadsafe(coroutine, self._running())
        try:
            return future.result(seconds)
        except TimeoutError:
            if future.done():  # the coroutine itself raised it
                raise
            raise TimedOut from None
        finally:
            future.cancel()

    def _running(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                threading.Thread(target=self._loop.run_forever, daemon=True, name="loop").start()
            return self._loop

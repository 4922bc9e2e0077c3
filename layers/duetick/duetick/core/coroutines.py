"""One loop for the coroutines of a process: what they share, such as a client, stays usable."""

import asyncio
import threading
from collections.abc import Coroutine
from typing import TYPE_CHECKING

from duetick.core.timeouts import TimedOut

if TYPE_CHECKING:
    from concurrent.futures import Future


class SharedLoop:
    """A loop in a thread of its own. It is started with the first coroutine, and stays."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None

    def run(self, coroutine: Coroutine[object, None, object], seconds: float) -> object:
        """Run a coroutine beside others. After so many seconds it is cancelled: TimedOut."""
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

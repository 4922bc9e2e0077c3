"""The cost of an answer, without the other work of this process."""

import time
from collections.abc import Callable

from duetick.domain.expression import texts


def seconds(work: Callable[[], object]) -> float:
    """Return the processor's seconds of this thread, with no text read before.

    They are the least of three runs: a collection of garbage may fall into one.
    """
    return min(_once(work) for _ in range(3))


def _once(work: Callable[[], object]) -> float:
    texts.EXPRESSIONS.clear()
    began = time.thread_time()
    work()
    return time.thread_time() - began

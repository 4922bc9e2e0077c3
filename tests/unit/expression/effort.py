"""The cost of an answer, whatever else this process does meanwhile."""

import time
from collections.abc import Callable

from duetick.domain.expression import texts


def seconds(work: Callable[[], object]) -> float:
    """The processor's, of this thread, with no text read before.

    The least of three times: a collection of garbage that falls into one is none of its own.
    """
    return min(_once(work) for _ in range(3))


def _once(work: Callable[[], object]) -> float:
    texts.EXPRESSIONS.clear()
    began = time.thread_time()
    work()
    return time.thread_time() - began

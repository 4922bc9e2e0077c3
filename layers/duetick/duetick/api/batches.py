"""The batches of the API: each item is answered by itself, and one that is wrong stops no other."""

import time
from collections.abc import Callable, Iterable, Iterator
from typing import Final, TypeVar

from duetick.core.answers import Answer, error
from duetick.core.refusals import answer_to
from duetick.domain.errors import DuetickError

SECONDS: Final = 15.0
"""The time after which a batch tries no more items: API Gateway waits for 29 s."""

Item = TypeVar("Item")


def answer_each(
    items: Iterable[Item], answer: Callable[[Item], Answer], user_id: str, *, operator: bool
) -> Iterator[Answer]:
    """Yield the answer to each item, in order. After `SECONDS`, no further item is tried."""
    end = time.monotonic() + SECONDS
    for item in items:
        if time.monotonic() >= end:
            yield error(
                "not_tried", "The time of this call was over before its turn; send it again."
            )
            continue
        try:
            yield answer(item)
        except (ValueError, DuetickError) as problem:
            refusal = answer_to(problem, user_id, operator=operator)
            if refusal is None:
                raise
            yield refusal

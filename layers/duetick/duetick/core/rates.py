"""The limits for each minute of a user: runs by hand, and changes."""

from collections.abc import Mapping
from typing import Final

from duetick.core.store import Store
from duetick.domain.errors import RateReached
from duetick.domain.policies import MINUTE_MS
from duetick.ports import Counted

_DONE: Final[Mapping[Counted, str]] = {
    "runs": "run schedules by hand",
    "writes": "change schedules",
}


def count(store: Store, user_id: str, counted: Counted, at_most: int, now: int) -> None:
    """Count one run or write. Raises RateReached if the limit of this minute is used up."""
    if store.allow(user_id, counted, at_most, now=now):
        return
    seconds = -(-(MINUTE_MS - now % MINUTE_MS) // 1_000)
    raise RateReached(
        counted,
        at_most,
        seconds,
        f"A user may {_DONE[counted]} {at_most} times in a minute, and these are used up. "
        f"Try again in {seconds} s.",
        f"DUETICK_QUOTA_{counted.upper()}",
    )

"""The host's clock, compared with the service's."""

import time
from typing import Final

from duetick.domain.errors import ClockSkewed

LARGEST_SKEW_MS: Final = 60_000


def host_clock() -> int:
    """Return milliseconds since the epoch."""
    return time.time_ns() // 1_000_000


class Skew:
    """The check of the host's clock before a claim. A clock that the caller gave is not checked."""

    def __init__(self, *, checked: bool) -> None:
        self._checked = checked

    def check(self, service: int | None) -> None:
        """Raise ClockSkewed if the host's clock is over a minute from the service's."""
        if not self._checked or service is None:
            return
        skew = host_clock() - service
        if abs(skew) > LARGEST_SKEW_MS:
            raise ClockSkewed(
                f"This host's clock is {skew / 1000:+.0f} s from DynamoDB's; at most "
                f"{LARGEST_SKEW_MS // 1000} s are allowed. Nothing was claimed; set the clock."
            )

"""The ids of occurrences, and other names that nobody else has."""

import secrets
import time
from string import hexdigits
from typing import Final

PREFIX: Final = "occ_"
_TIME_DIGITS: Final = 12


def new_id() -> str:
    """Return a new id for an occurrence. Its prefix says what the id names.

    The id begins with the time, so that an index of ids grows at its end. To callers an id is
    opaque.
    """
    return f"{PREFIX}{time.time_ns() // 1_000_000:0{_TIME_DIGITS}x}{secrets.token_hex(8)}"


def read_time_of_id(name: str) -> int | None:
    """Return the time with which an id begins, in milliseconds; None if the id is none of ours."""
    digits = name.removeprefix(PREFIX)[:_TIME_DIGITS]
    known = name.startswith(PREFIX) and len(digits) == _TIME_DIGITS
    return int(digits, 16) if known and not set(digits) - set(hexdigits) else None


def new_name(prefix: str) -> str:
    """Return a random name. Its prefix says what the name is of."""
    return f"{prefix}_{secrets.token_hex(12)}"

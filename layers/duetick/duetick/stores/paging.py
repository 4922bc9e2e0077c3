"""Where a page begins: after a schedule's key, or after an occurrence, the newest first."""

import base64
import binascii
from typing import Final

from duetick.domain.errors import InvalidCursor, InvalidQuery
from duetick.domain.identity import LONGEST_ID
from duetick.domain.schedule import LATEST, Identity
from duetick.domain.states import WAITING, State

FINDABLE: Final = WAITING | {State.DEAD}
"""The states that have an index of their own over all users."""


def read_cursor(cursor: str | None) -> str:
    """The key after which a page begins."""
    try:
        key = base64.b64decode((cursor or "").encode(), altchars=b"-_", validate=True).decode()
    except (binascii.Error, UnicodeError):
        key = "\0"
    # No key has one, and Postgres cannot be asked for it; none is longer, and DynamoDB cannot.
    if "\0" in key or len(key) > LONGEST_ID:
        raise InvalidCursor("The cursor is not one that a page carried; begin without one.")
    return key


def make_cursor(key: str) -> str:
    """What `read_cursor` reads."""
    return base64.urlsafe_b64encode(key.encode()).decode()


def place_of(before: int | Identity | None) -> Identity:
    """The identity after which a page begins. No real one is before any other of its time."""
    if before is None:
        return "", "", LATEST, ""
    if isinstance(before, int):
        return "", "", min(before - 1, LATEST), ""
    return before


def newest_first(identity: Identity) -> tuple[int, str, str, str]:
    """How occurrences are ordered: a time that several share does not leave it open."""
    user_id, key, nominal_at, origin = identity
    return -nominal_at, user_id, key, origin


def check_findable(user_id: str | None, key: str | None, state: State | None) -> None:
    """Raise InvalidQuery where no index could answer."""
    if user_id is None and key is not None:
        raise InvalidQuery("A key is a user's: give `user_id` with it.")
    if user_id is None and state not in FINDABLE:
        states = ", ".join(sorted(FINDABLE))
        asked = f"state {state}" if state else "any state"
        raise InvalidQuery(f"Occurrences in {asked} are found by user; of all users only {states}.")

"""The place where a page begins: after a schedule's key, or after an occurrence, newest first."""

import base64
import json
import re
from typing import Any, Final, TypeAlias, TypeGuard

from duetick.domain.errors import InvalidCursor, InvalidQuery
from duetick.domain.identity import LONGEST_ID, LONGEST_ORIGIN, InvalidId, check_key, is_job
from duetick.domain.occurrence import ScheduleName
from duetick.domain.schedule import LATEST, Identity
from duetick.domain.states import LEASED, WAITING, State

MOST_PASSED: Final = 100_000
MOST_PARTS: Final = 1_000

FINDABLE: Final = (LEASED, WAITING, frozenset({State.DEAD}))
"""The states that have an index over all users, those together that one index has."""


def make_cursor(*place: str | int) -> str:
    """Return the cursor of the page that begins after a place."""
    return base64.urlsafe_b64encode(json.dumps(place).encode()).decode()


def _read_parts(cursor: str, size: int) -> list[Any]:
    try:
        place = json.loads(base64.b64decode(cursor, altchars=b"-_", validate=True))
    except (ValueError, RecursionError):
        place = None
    if not isinstance(place, list) or len(place) != size:
        raise _unknown_cursor()
    return place


def read_key(cursor: str | None, *, of_jobs: bool = False) -> str:
    """Return the key after which a page of schedules begins, or with `of_jobs` a page of jobs."""
    if cursor is None:
        return ""
    (key,) = _read_parts(cursor, 1)
    # DynamoDB refuses an empty key, and a longer one.
    if not _is_text(key) or not 0 < len(key) <= LONGEST_ID or is_job(key) is not of_jobs:
        raise _unknown_cursor()
    return key


def _is_text(value: object) -> TypeGuard[str]:
    """Return True for a text that each store takes: Postgres refuses a NUL, and none takes half of
    a character.
    """
    return isinstance(value, str) and re.search("[\0\ud800-\udfff]", value) is None


def _is_number(value: object, most: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= most


def read_moment(cursor: str | None) -> tuple[int, str] | None:
    """Return the time and the id after which a page of dated things begins, or None."""
    if cursor is None:
        return None
    at, name = _read_parts(cursor, 2)
    named = isinstance(name, str) and name.isprintable() and len(name) <= LONGEST_ID
    if not (_is_number(at, LATEST) and named):
        raise _unknown_cursor()
    return at, name


def read_count(cursor: str | None) -> tuple[int, int]:
    """Return the instant at which a page begins, and how many rows of it earlier pages listed."""
    if cursor is None:
        return 0, 0
    at, passed = _read_parts(cursor, 2)
    if not (_is_number(at, LATEST) and _is_number(passed, MOST_PASSED)):
        raise _unknown_cursor()
    return at, passed


def read_name(place: str) -> ScheduleName:
    """Return the name after which a walk goes on; an empty place is the beginning."""
    if not place:
        return "", ""
    user_id, key = _read_parts(place, 2)
    if not (_is_text(user_id) and _is_text(key)):
        raise _unknown_cursor()
    return user_id, key


WalkPlace: TypeAlias = tuple[str, str, int]
"""The name after which a part of a walk goes on, and a number by which the part is ordered."""


def read_walk(place: str) -> tuple[int, WalkPlace | None]:
    """Return the part of a walk, and the place in it, at which the walk goes on."""
    if not place:
        return 0, None
    part, user_id, key, at = _read_parts(place, 4)
    numbers = _is_number(part, MOST_PARTS) and _is_number(at, LATEST)
    if not (numbers and _is_text(user_id) and _is_text(key)):
        raise _unknown_cursor()
    return part, (user_id, key, at)


def read_place(user_id: str, cursor: str) -> Identity:
    """Return the identity after which a page of a user's history begins."""
    nominal_at, key, origin = _read_parts(cursor, 3)
    try:
        check_key(user_id, key)
    except InvalidId:
        raise _unknown_cursor() from None
    named = isinstance(origin, str) and 0 < len(origin) <= LONGEST_ORIGIN
    if not (_is_number(nominal_at, LATEST - 1) and named and origin.isprintable()):
        raise _unknown_cursor()
    return user_id, key, nominal_at, origin


def read_anywhere(cursor: str) -> Identity:
    """Return the identity after which a page of occurrences of all users begins."""
    nominal_at, user_id, key, origin = _read_parts(cursor, 4)
    if not isinstance(user_id, str) or not isinstance(key, str):
        raise _unknown_cursor()
    return read_place(user_id, make_cursor(nominal_at, key, origin))


def _unknown_cursor() -> InvalidCursor:
    return InvalidCursor("The cursor is not one that a page carried; begin without one.")


def place_of(before: int | Identity | None) -> Identity:
    """Return the identity after which a page begins.

    The empty names of a time sort before every real identity of that time.
    """
    if before is None:
        return "", "", LATEST, ""
    if isinstance(before, int):
        return "", "", min(before - 1, LATEST), ""
    return before


def newest_first(identity: Identity) -> tuple[int, str, str, str]:
    """Return the sort key of an occurrence: newest first, then user, key and origin."""
    user_id, key, nominal_at, origin = identity
    return -nominal_at, user_id, key, origin


def check_findable(user_id: str | None, key: str | None, states: frozenset[State]) -> None:
    """Raise InvalidQuery if no index answers the query."""
    if user_id is None and key is not None:
        raise InvalidQuery("A key is one of a user's schedules: name the user with it.")
    if user_id is None and not any(states and states <= known for known in FINDABLE):
        said = "; ".join(", ".join(sorted(known)) for known in FINDABLE)
        wanted = f"state {', '.join(sorted(states))}" if states else "any state"
        raise InvalidQuery(
            f"Occurrences in {wanted} are found by user; of all users only those that need "
            f"attention: {said}."
        )

"""The names of schedules and occurrences: what they may hold, and how they travel in a path."""

import re
import unicodedata
from typing import Final
from urllib.parse import unquote

from duetick.domain.errors import InvalidSchedule

LONGEST_ID: Final = 128
SCHEDULE_ORIGIN: Final = "schedule"
RUN_ORIGIN: Final = "run:"

_UNRESERVED: Final = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._")
_ESCAPE: Final = r"(?:~[0-9A-F]{2})+"
_NAME: Final = r"[A-Za-z][A-Za-z0-9_-]{0,63}"


class InvalidId(InvalidSchedule):
    """An id that no schedule can have."""


def _check_text(field: str, value: object) -> str:
    if not isinstance(value, str):
        raise InvalidId(field, f"expected text, got {type(value).__name__}.")
    for character in value:
        if unicodedata.category(character) in ("Cc", "Cs"):
            raise InvalidId(field, f"holds the character U+{ord(character):04X}; leave it out.")
    return value


def _check_segments(field: str, value: str) -> None:
    for segment in value.split("/"):
        if segment in ("", ".", ".."):
            raise InvalidId(field, f"the part {segment!r} between slashes is not allowed.")


def check_key(user_id: str, key: str) -> None:
    """Raise unless (user_id, key) can name a schedule. An empty user stands for a static one."""
    if _check_text("user_id", user_id):
        _check_segments("user_id", user_id)
        if "/" in user_id:
            raise InvalidId("user_id", "a slash would make part of it look like the key.")
    _check_text("key", key)
    _check_segments("key", key)
    size = len(f"{user_id}/{key}")
    if size > LONGEST_ID:
        raise InvalidId("key", f"user and key are {size} characters; {LONGEST_ID} are allowed.")


def check_name(field: str, name: object) -> None:
    """Raise unless `name` can be a flow's or an action's."""
    if not isinstance(name, str) or not re.fullmatch(_NAME, name):
        raise InvalidSchedule(
            field,
            "expected a letter, then at most 63 letters, digits, '-' or '_', "
            f"such as 'send_digest'; got {str(name)[:80]!r}.",
        )


def schedule_id(user_id: str, key: str) -> str:
    """`user/key`; of a static schedule, whose key is `flow/id`, the id alone."""
    return f"{user_id}/{key}" if user_id else key.partition("/")[2]


def split_id(flow: str, text: str) -> tuple[str, str]:
    """The user and key that `schedule_id` joined; one segment is a static schedule of the flow."""
    user_id, slash, key = text.partition("/")
    return (user_id, key) if slash else ("", f"{flow}/{text}")


def check_external(text: str) -> None:
    """Raise unless it can be an outside id."""
    _check_text("externalId", text)
    if not 0 < len(text) <= LONGEST_ID:
        raise InvalidId("externalId", f"expected 1 to {LONGEST_ID} characters, got {len(text)}.")


def check_id(text: str) -> str:
    """The id, decoded; raise where no schedule or resolver may see it."""
    _check_text("id", text)
    if not 0 < len(text) <= LONGEST_ID:
        raise InvalidId("id", f"expected 1 to {LONGEST_ID} characters, got {len(text)}.")
    _check_segments("id", text)
    return text


def to_path(text: str) -> str:
    """The id as one path segment of unreserved characters, which no gateway rewrites."""
    return "".join(chr(byte) if byte in _UNRESERVED else f"~{byte:02X}" for byte in text.encode())


def from_path(path: str) -> str:
    """The id that a raw path names: percent escapes once, then the escapes of `to_path`."""
    try:
        plain = unquote(path, errors="strict")
        return re.sub(_ESCAPE, lambda m: bytes.fromhex(m[0].replace("~", "")).decode(), plain)
    except UnicodeDecodeError:
        raise InvalidId("id", "its escapes are not UTF-8.") from None

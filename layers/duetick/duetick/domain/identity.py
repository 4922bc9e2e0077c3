"""The names of schedules and occurrences: their characters, and their spelling in a path."""

import re
import unicodedata
from typing import Final

from duetick.domain.errors import InvalidSchedule, kind_of

LONGEST_ID: Final = 128
LONGEST_ORIGIN: Final = 256
SCHEDULE_ORIGIN: Final = "schedule"
RUN_ORIGIN: Final = "run:"
CALL_ORIGIN: Final = "call:"
BACKFILL_ORIGIN: Final = "backfill:"
FAILURE_ORIGIN: Final = "failure:"
JOB_ORIGIN: Final = "job:"
"""The beginning of a job's key, which is its origin too. No schedule's key begins with it."""
JOBS_END: Final = "job;"
"""The first text that sorts after every key of a job."""
NO_FLOW: Final = "-"
"""The text in a path in place of a flow, if an index row names none. No flow can have this name."""

_UNRESERVED: Final = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._")
_BLANKS: Final = frozenset("\u115f\u1160\u2800\u3164\uffa0")
"""Letters and signs that are invisible: the blanks of Hangul and Braille."""
_NAME: Final = r"[A-Za-z][A-Za-z0-9_-]{0,63}"


class InvalidId(InvalidSchedule):
    """An id that no schedule can have."""


def _check_text(field: str, value: object) -> str:
    if not isinstance(value, str):
        raise InvalidId(field, f"expected text, got {kind_of(value)}.", "wrong_type")
    for character in value:
        if unicodedata.category(character) in ("Cc", "Cs"):
            raise InvalidId(
                field, f"holds the character U+{ord(character):04X}; leave it out.", "character"
            )
    return value


def _check_segments(field: str, value: str) -> None:
    for segment in value.split("/"):
        if segment in ("", ".", ".."):
            raise InvalidId(field, f"the part {segment!r} between slashes is not allowed.", "part")
        if not any(map(_is_visible, segment)):
            raise InvalidId(field, f"the part {segment!r} is blank; write something.", "blank")


def _is_visible(character: str) -> bool:
    """Return True if the character is visible: no space, no layout sign, no combining mark."""
    category = unicodedata.category(character)
    return category[0] not in "ZM" and category != "Cf" and character not in _BLANKS


def check_key(user_id: str, key: str) -> None:
    """Raise InvalidId unless (user_id, key) can name a schedule. A static one has an empty user."""
    if _check_text("user_id", user_id):
        _check_segments("user_id", user_id)
        if "/" in user_id:
            raise InvalidId("user_id", "a slash would make part of it look like the key.")
    _check_text("key", key)
    _check_segments("key", key)
    size = len(f"{user_id}/{key}")
    if size > LONGEST_ID:
        raise InvalidId(
            "key", f"user and key are {size} characters; {LONGEST_ID} are allowed.", "too_long"
        )


def check_user(user_id: str) -> None:
    """Raise InvalidId unless a schedule with a short key can be this user's."""
    check_key(user_id, "k")


def check_name(field: str, name: object) -> None:
    """Raise InvalidSchedule unless `name` can be the name of a flow or an action."""
    if not isinstance(name, str) or not re.fullmatch(_NAME, name):
        raise InvalidSchedule(
            field,
            "expected a letter, then at most 63 letters, digits, '-' or '_', "
            f"such as 'send_digest'; got {name[:80]!r}."
            if isinstance(name, str)
            else f"such as 'send_digest'; got {kind_of(name)}.",
            "invalid_name",
        )


def stands_beside(origin: str) -> bool:
    """Return True if occurrences of that origin are beside those of their schedule.

    They neither take its place nor need it, and use up none of its runs.
    """
    return origin.startswith((BACKFILL_ORIGIN, FAILURE_ORIGIN, JOB_ORIGIN))


def is_job(name: str) -> bool:
    """Return True if a key, or an origin, is a job's."""
    return name.startswith(JOB_ORIGIN)


def job_key(name: str) -> str:
    """Return the key of the job whose occurrence has that id."""
    return f"{JOB_ORIGIN}{name.partition('_')[2]}"


def job_id(key: str) -> str:
    """Return the id of the job that has that key."""
    return f"occ_{key.removeprefix(JOB_ORIGIN)}"


def is_job_id(name: str) -> bool:
    """Return True if a job can have that id."""
    return re.fullmatch("occ_[0-9a-f]{28}", name) is not None


def check_schedule_key(user_id: str, key: str) -> None:
    """Raise InvalidId unless (user_id, key) can name a schedule."""
    check_key(user_id, key)
    check_no_job(key)


def check_no_job(key: str) -> None:
    """Raise InvalidId if the key is a job's."""
    if is_job(key):
        said = f"begins with {JOB_ORIGIN!r}, as the keys of jobs do; name it otherwise."
        raise InvalidId("key", said, "taken")


def is_call(origin: str) -> bool:
    """Return True if a caller from outside asked for the occurrences of that origin."""
    return origin.startswith(CALL_ORIGIN)


def is_failure_hook(origin: str) -> bool:
    """Return True if occurrences of that origin tell of the death of another one."""
    return origin.startswith(FAILURE_ORIGIN)


def schedule_id(user_id: str, key: str) -> str:
    """Return `user/key`. For a static schedule, whose key is `flow/id`, return the id."""
    return f"{user_id}/{key}" if user_id else key.partition("/")[2]


def split_id(flow: str, text: str) -> tuple[str, str]:
    """Return the user and key that `schedule_id` joined.

    If the text has no slash, it is a static schedule of the flow.
    """
    user_id, slash, key = text.partition("/")
    return (user_id, key) if slash else ("", f"{flow}/{text}")


def check_external(text: str) -> None:
    """Raise InvalidId unless the text can be an outside id."""
    _check_text("external_id", text)
    if len(text) > LONGEST_ID:
        raise InvalidId(
            "external_id", f"has {len(text)} characters; {LONGEST_ID} are allowed.", "too_long"
        )
    if not any(map(_is_visible, text)):
        raise InvalidId("external_id", "is blank; write something.", "blank")


def check_id(text: str) -> str:
    """Return the decoded id as it is. Raises InvalidId if no schedule or resolver may get it."""
    _check_text("id", text)
    if not 0 < len(text) <= LONGEST_ID:
        raise InvalidId(
            "id", f"expected 1 to {LONGEST_ID} characters, got {len(text)}.", "too_long"
        )
    _check_segments("id", text)
    return text


def why_not_carried(flow: str, user_id: str, key: str) -> str | None:
    """Return the reason why no path carries the name of an index row; None if a path carries it.

    The name of a row may be any text.
    """
    try:
        if flow:
            check_name("flow", flow)
        check_key(user_id, key)
    except InvalidSchedule as problem:
        return str(problem)
    if split_id(flow, schedule_id(user_id, key)) == (user_id, key):
        return None
    return (
        "user_id: is empty: a row without a user is a static schedule's. It names its flow, and "
        "its key is flow/id."
    )


def to_path(text: str) -> str:
    """Return the id as one path segment of unreserved characters, which no gateway rewrites."""
    return "".join(chr(byte) if byte in _UNRESERVED else f"~{byte:02X}" for byte in text.encode())


def from_path(path: str) -> str:
    """Return the id of a raw path: percent escapes are decoded once, then the escapes of `to_path`.

    Raises InvalidId if a character is escaped without need: a caller who is denied one path must
    not reach the id by another.
    """
    return _unescape("~", "[0-9A-F]", _unescape("%", "[0-9A-Fa-f]", path))


def from_signed_path(path: str) -> str:
    """Return the id of a raw path on a route that IAM guards: an id has one path, so a Deny holds.

    Each `~` of `to_path` may be a `%`, and a slash may stand as it is.
    """
    found = from_path(path)
    if _one_spelling(path) != _one_spelling(to_path(found)):
        raise InvalidId("id", f"has one path on this route: write {to_path(found)}.")
    return found


def _one_spelling(path: str) -> str:
    return path.replace("%", "~").replace("~2F", "/")


def _unescape(mark: str, digit: str, text: str) -> str:
    def decode(found: re.Match[str]) -> str:
        data = bytes.fromhex(found[0].replace(mark, ""))
        if not _UNRESERVED.isdisjoint(data):
            raise InvalidId("id", "escapes a character that needs no escape; write it as it is.")
        return data.decode()

    try:
        return re.sub(f"(?:{mark}{digit}{{2}})+", decode, text)
    except UnicodeDecodeError:
        raise InvalidId("id", "its escapes are not UTF-8.") from None

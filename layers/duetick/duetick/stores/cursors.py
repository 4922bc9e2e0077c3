"""Where a page of schedules begins, as a text that travels in a URL."""

import base64
import binascii

from duetick.domain.errors import InvalidCursor


def read_cursor(cursor: str | None) -> str:
    """The key after which a page begins."""
    try:
        key = base64.b64decode((cursor or "").encode(), altchars=b"-_", validate=True).decode()
    except (binascii.Error, UnicodeError):
        key = "\0"
    if "\0" in key:
        raise InvalidCursor("The cursor is not one that a page carried; begin without one.")
    return key


def make_cursor(key: str) -> str:
    """What `read_cursor` reads."""
    return base64.urlsafe_b64encode(key.encode()).decode()

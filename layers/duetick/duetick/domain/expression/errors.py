"""Why a schedule's words are refused."""

from __future__ import annotations

from duetick.domain.errors import DuetickError


class InvalidExpression(DuetickError, ValueError):
    """The text is no expression, or one that can never fire.

    The message says what is wrong and where, and shows a right one.
    """


class InvalidTimezone(InvalidExpression):
    """The name is no IANA zone of the pinned database. The message offers the nearest names."""


def quoted(text: str) -> str:
    """Return at most 40 characters of foreign text, with everything unprintable escaped."""
    return repr(text if len(text) <= 40 else text[:40] + "…")

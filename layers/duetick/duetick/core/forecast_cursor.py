"""The progress of a forecast's read, and its cursor: the sums so far, as a text that a caller sends
back.

A caller may send any text. The fields of that text are bounded and checked, and count for that
caller alone.
"""

import json
import zlib
from base64 import urlsafe_b64decode, urlsafe_b64encode
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, Final

from duetick.domain.alike import AlikePage
from duetick.domain.errors import InvalidCursor, InvalidQuery
from duetick.domain.forecasting import Outlook, Totals
from duetick.domain.minutes import Sums
from duetick.domain.occurrence import LATEST
from duetick.domain.schedule import Json

LARGEST: Final = 180 * 1024
"""The most characters of a cursor: with the rest, a body has 256 KB."""

LARGEST_UNPACKED: Final = 8 * 1024 * 1024
MOST: Final = 2**53
"""A number beyond which no count can be."""


@dataclass(slots=True)
class ReadSoFar:
    """The progress of a forecast's read: its begin, the place at which it goes on, and the sums so
    far.

    Another question has another `digest`.
    """

    now: int
    digest: str
    place: str | None = ""
    partly: bool = False
    kept: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def begin(cls, now: int, question: Json) -> "ReadSoFar":
        """Return the beginning of a forecast."""
        return cls(now, _digest(question))

    @classmethod
    def read(cls, cursor: str, question: Json) -> "ReadSoFar":
        """Return the progress that a cursor has. Raises InvalidCursor."""
        found = _unpack(cursor)
        if not isinstance(found, dict) or found.keys() != _NAMES:
            raise _unknown()
        if found["digest"] != _digest(question):
            raise InvalidCursor(
                "The cursor is of another forecast; send the same fields again with it, or leave "
                "the cursor out and begin anew."
            )
        if not (_is_count(found["now"], LATEST) and isinstance(found["place"], str)):
            raise _unknown()
        return cls(found["now"], found["digest"], found["place"], found["partly"] is True, found)

    @property
    def is_over(self) -> bool:
        """True if nothing is left to read."""
        return self.place is None

    def advance(self, page: AlikePage) -> None:
        """Go on behind a part that was read."""
        self.place = page.place
        self.partly = self.partly or page.partly

    def restore(self, outlook: Outlook) -> None:
        """Put the sums so far into a forecast. Raises InvalidCursor if they do not fit."""
        if not self.kept:
            return
        scopes = [one.scope for one in outlook.limits.every]
        if self.kept["limits"] != scopes:
            raise InvalidCursor("The limits have changed meanwhile; leave out the cursor.")
        sums, totals = self.kept["sums"], self.kept["totals"]
        if not isinstance(sums, list) or len(sums) != len(outlook.sums):
            raise _unknown()
        outlook.sums = [_sums(one, outlook.span.minutes) for one in sums]
        outlook.totals.update(dict(zip(Totals._fields, _counts(totals, 6), strict=True)))

    def cursor(self, outlook: Outlook) -> str | None:
        """Return the cursor; None if nothing is left."""
        if self.is_over:
            return None
        outlook.finish()
        text = _pack(
            {
                "now": self.now,
                "digest": self.digest,
                "place": self.place,
                "partly": self.partly,
                "limits": [one.scope for one in outlook.limits.every],
                "sums": [[[*o.due], [*o.movable], int(o.ragged), o.densest] for o in outlook.sums],
                "totals": [outlook.totals[name] for name in Totals._fields],
            }
        )
        if len(text) > LARGEST:
            raise InvalidQuery(
                "The forecast is too large to go on: the span and the limits that stand give too "
                "many numbers. Ask for a shorter span, or for one flow."
            )
        return text


_NAMES: Final = {"now", "digest", "place", "partly", "limits", "sums", "totals"}


def _digest(question: Json) -> str:
    text = json.dumps(question, sort_keys=True).encode()
    return blake2b(text, digest_size=12).hexdigest()


def _pack(value: Json) -> str:
    packed = zlib.compress(json.dumps(value, separators=(",", ":")).encode(), 6)
    return urlsafe_b64encode(packed).decode()


def _unpack(cursor: str) -> object:
    try:
        unpacker = zlib.decompressobj()
        text = unpacker.decompress(urlsafe_b64decode(cursor.encode()), LARGEST_UNPACKED)
        return json.loads(text) if unpacker.eof else None
    except (ValueError, zlib.error, RecursionError):
        return None


def _is_count(value: object, most: int = MOST) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= most


def _counts(value: object, size: int) -> list[int]:
    if not isinstance(value, list) or len(value) != size or not all(map(_is_count, value)):
        raise _unknown()
    return value


def _sums(value: object, minutes: int) -> Sums:
    if not isinstance(value, list) or len(value) != 4:
        raise _unknown()
    due, movable, ragged, densest = value
    if not (_is_count(ragged, 1) and _is_count(densest) and densest):
        raise _unknown()
    return Sums(_counts(due, minutes), _counts(movable, minutes), bool(ragged), densest)


def _unknown() -> InvalidCursor:
    return InvalidCursor("The cursor is not one that a forecast carried; begin without one.")

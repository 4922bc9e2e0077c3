"""Redaction: values whose names say that they are secret are withheld, at any depth (J-11).

Other packages import from here alone. A value is read up to a number of characters and levels. The
rest of it is withheld.
"""

import json
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Final

from duetick.domain.redaction.known import KnownSecrets
from duetick.domain.redaction.names import (
    is_option,
    is_secret,
    is_title,
    labels_name,
    labels_value,
)
from duetick.domain.redaction.texts import CUT, LONGEST_TEXT, WITHHELD, secrets_of, withhold
from duetick.domain.schedule import Json, dump_input

__all__ = [
    "CUT",
    "DEEPEST",
    "LONGEST_TEXT",
    "MOST_CHARACTERS",
    "MOST_KNOWN",
    "WITHHELD",
    "Secrets",
    "is_redacted",
    "is_secret",
    "redact",
    "redact_text",
]

MOST_CHARACTERS: Final = 4 * LONGEST_TEXT
"""The most characters that are read of one value: names, texts, and JSON inside texts."""

DEEPEST: Final = 256
"""The most levels that are read of one value: lists, objects, and texts that are JSON. No request
body has so many."""

MOST_KNOWN: Final = 65_536
"""The most characters of all secrets of an input. If there are more, texts are withheld whole."""

_PAIR: Final = 2


def redact(value: Json, extra: Collection[str] = ()) -> Json:
    """Return the value with its secrets withheld. `extra` are names that an action adds."""
    return _Preview(extra, _find_known(value, extra)).part(value, 0)


def is_redacted(value: Json) -> bool:
    """Return True if the value holds the mark of a withheld secret.

    If such a value were written back, the mark would replace the secret.
    """
    return WITHHELD in dump_input(value)


def redact_text(text: str | None, extra: Collection[str] = ()) -> str | None:
    """Return an error's text with the values of secret names withheld."""
    return text and withhold(text, extra)


@dataclass(frozen=True, slots=True)
class Secrets:
    """The secrets of an input: each text and number under a secret name, at any depth.

    If the input is too large or too deep to be read whole, `known` is None.
    """

    known: KnownSecrets | None
    extra: Collection[str] = ()

    @classmethod
    def of(cls, value: Json, extra: Collection[str] = ()) -> "Secrets":
        """Return the secrets of a value. This is the slow part: do it once for many texts."""
        return cls(_find_known(value, extra), extra)

    def without(self, text: str, otherwise: str = WITHHELD) -> str:
        """Return the text with the secrets, and the values of secret names, withheld.

        If the secrets are not known, return `otherwise` instead of the text.
        """
        return otherwise if self.known is None else withhold(text, self.extra, self.known)


class _Budget:
    """The characters that may still be read of one value."""

    def __init__(self) -> None:
        self._remaining = MOST_CHARACTERS

    def spend(self, part: Json, level: int) -> bool:
        """Pay for the text, or the names, of a part. Return False if it may not be read."""
        size = 0
        if isinstance(part, str):
            size = len(part)
        elif isinstance(part, dict):
            size = sum(map(len, part))
        self._remaining -= 1 + size
        return self._remaining >= 0 and level <= DEEPEST and size <= LONGEST_TEXT


class _Preview:
    """A copy of a value, without its secrets."""

    def __init__(self, extra: Collection[str], known: KnownSecrets | None) -> None:
        self._extra = extra
        self._known = known
        self._budget = _Budget()

    def part(self, value: Json, level: int, *, secret: bool = False) -> Json:
        """Return the copy of a part that is `level` levels deep."""
        if value is not None and (secret or not self._budget.spend(value, level)):
            return WITHHELD
        if isinstance(value, dict):
            return {
                self._text(name): self.part(inner, level + 1, secret=hidden)
                for name, inner, hidden in _members(value, self._extra)
            }
        if isinstance(value, list):
            return [
                self.part(inner, level + 1, secret=hidden)
                for inner, hidden in _items(value, self._extra)
            ]
        return self._text(value) if isinstance(value, str) else value

    def _text(self, text: str) -> str:
        """Return a text without the values of its secret names, and without the value's own
        secrets.
        """
        return withhold(text, self._extra, self._known)


def _find_known(value: Json, extra: Collection[str]) -> KnownSecrets | None:
    """Return the secrets of a value. If it is too large or too deep to be read, return None."""
    found, budget = set[str](), _Budget()
    pending: list[tuple[Json, int, bool]] = [(value, 0, False)]
    while pending:
        part, level, secret = pending.pop()
        if not budget.spend(part, level):
            return None
        if secret and isinstance(part, str | int | float) and not isinstance(part, bool):
            found.add(str(part))
        try:
            inners = list(_inners(part, extra, secret=secret))
        except RecursionError:  # JSON that is nested deeper than Python reads it
            return None
        pending += ((inner, level + 1, secret or hidden) for inner, hidden in inners)
    found.discard("")
    return KnownSecrets(found) if sum(map(len, found)) <= MOST_KNOWN else None


def _inners(value: Json, extra: Collection[str], *, secret: bool) -> Iterator[tuple[Json, bool]]:
    """Yield the parts of a value; True marks a secret. A text may be JSON or contain secrets."""
    if isinstance(value, dict):
        for name, inner, hidden in _members(value, extra):
            yield from ((name, False), (inner, hidden))
    elif isinstance(value, list):
        yield from _items(value, extra)
    elif isinstance(value, str):
        read = _json(value)
        if read is not None:
            yield read, False
        elif not secret:
            yield from ((each, True) for each in secrets_of(value, extra))


def _json(text: str) -> Json:
    """Return the value of a text that is JSON, else None.

    If an object has a name twice, its members become a list: each is read.
    """
    if text.lstrip()[:1] not in ("{", "[", '"'):
        return None
    try:
        found: Json = json.loads(text, object_pairs_hook=_object)
    except ValueError:
        return None
    return found


def _object(pairs: list[tuple[str, Json]]) -> Json:
    found = dict(pairs)
    return found if len(found) == len(pairs) else [{name: inner} for name, inner in pairs]


def _members(value: dict[str, Json], extra: Collection[str]) -> list[tuple[str, Json, bool]]:
    """Return the members of an object; True marks a secret.

    Its name says so, or a sibling does: `{"name": "token", "value": …}`.
    """
    titled = any(
        labels_name(name) and isinstance(inner, str) and is_title(inner, extra)
        for name, inner in value.items()
    )
    return [
        (name, inner, is_secret(name, extra) or (titled and labels_value(name)))
        for name, inner in value.items()
    ]


def _items(value: list[Json], extra: Collection[str]) -> list[tuple[Json, bool]]:
    """Return the items of a list; True marks a secret.

    Its predecessor is a secret name in a list of pairs, or a secret option of a command line.
    """
    names = ["", *(inner if isinstance(inner, str) else "" for inner in value[:-1])]
    in_pairs = len(value) % _PAIR == 0
    tests = [is_title if in_pairs and place % _PAIR else is_option for place in range(len(value))]
    return [(inner, tests[place](names[place], extra)) for place, inner in enumerate(value)]

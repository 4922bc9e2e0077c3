"""Secrets in a text without a name beside them: credentials, addresses, elements of XML."""

import binascii
from collections.abc import Collection, Iterator
from functools import cached_property
from typing import Final

from duetick.domain.redaction.names import is_secret
from duetick.domain.redaction.spelling import Span
from duetick.domain.redaction.tokens import Tokens

NONE: Final = (0, 0)
_BETWEEN: Final = ("%20", "+")
"""The blank behind a scheme, as a query writes it."""

_CREDENTIAL: Final = frozenset({"+", "/", "~", "%2b", "%2f", "%3d"})
_COLONS: Final = (":", "%3a")
_SLASHES: Final = ("/", "%2f")
_ATS: Final = ("@", "%40")
_PATHS: Final = ("/", "?", "#", "%2f", "%3f", "%23")
_LONG: Final = 20
"""The least characters of a token that is too long for a word."""

_SHORT: Final = 8


class UnnamedSecrets:
    """The secrets of a text without a name beside them. Each method reads at one token."""

    def __init__(self, tokens: Tokens, extra: Collection[str]) -> None:
        self._tokens = tokens
        self._extra = extra

    def credential(self, at: int) -> Span:
        """Return the credential behind `Bearer` or `Basic`, if it looks like one."""
        tokens, scheme = self._tokens, self._tokens[at].lower()
        if scheme not in ("bearer", "basic"):
            return NONE
        if not (tokens.is_blank(at + 1, lines=True) or tokens[at + 1] in _BETWEEN):
            return NONE
        start = end = at + 2
        while _is_credentials(tokens[end]) and tokens[end] != tokens[at + 1]:
            end += 1
        text = "".join(tokens[each] for each in range(start, end)).rstrip(".")
        looks = _is_basic(text) if scheme == "basic" else _is_bearer(text)
        return (start, end) if looks and not tokens.is_quote(end - 1) else NONE

    def userinfo(self, at: int) -> Span:
        """Return the password of an address: from `:` to the last `@` of `//user:password@`."""
        tokens, first = self._tokens, self._behind_slashes(at)
        here, colon, last = first, 0, 0
        while first and not self._ends_address(here, colon, last):
            if tokens[here] in _ATS:
                last = here
            elif tokens[here].lower().startswith(_COLONS) and not (colon or last):
                colon = here
            here += 1
        if not last:
            return NONE
        user = "".join(tokens[each] for each in range(first, colon or last))
        named = 0 < colon < last - 1 and not _is_key(user)
        if named:
            return colon + 1, last
        return (first, last) if colon or _is_key(user) else NONE

    def _behind_slashes(self, at: int) -> int:
        """Return the token behind `://`, which may be escaped; 0 if there is none."""
        if self._tokens[at].lower() not in _COLONS:
            return 0
        for _ in "//":
            at += 1 + (self._tokens[at + 1][:1] == "\\")
            if self._tokens[at].lower() not in _SLASHES:
                return 0
        return at + 1

    def _ends_address(self, at: int, colon: int, last: int) -> bool:
        """Return True if no `@` can follow. A password may contain `/`; a port is a number."""
        tokens = self._tokens
        if tokens.is_blank(at, lines=True) or tokens.is_quote(at) or tokens[at] in ("", "<", ">"):
            return True
        if self._behind_slashes(at):
            return True
        port = colon and at == colon + 2 and tokens[at - 1].isdecimal()
        return tokens[at].lower() in _PATHS and bool(last or port or not colon)

    def element(self, at: int) -> Span:
        """Return the content of an XML element with a secret name, with its attributes."""
        tokens, name = self._tokens, self._tokens[at].lower()
        prefixed = tokens[at - 1] == ":" and tokens[at - 3] == "<"
        if not (prefixed or tokens[at - 1] == "<") or self._last_closings.get(name, 0) <= at:
            return NONE
        start = at + 1 + (tokens[at + 1] == ">")
        if start == at + 1 and (not tokens.is_blank(start, lines=True) or tokens[at + 2] == "/"):
            return NONE
        end = start
        while self._closings.get(end) != name:
            tokens.steps += 1
            end += 1
        return start, end

    @cached_property
    def _last_closings(self) -> dict[str, int]:
        """The place of the last `</…>` of each name."""
        return {name: at for at, name in self._closings.items()}

    @cached_property
    def _closings(self) -> dict[int, str]:
        """The name of each `</…>`, by its place."""
        return dict(self._find_closings())

    def _find_closings(self) -> Iterator[tuple[int, str]]:
        tokens = self._tokens
        for at in range(tokens.end):
            slash = at + 1 + (tokens[at + 1][:1] == "\\")
            if tokens[at] == "<" and tokens[slash] == "/":
                prefixed = tokens[slash + 2] == ":"
                yield at, tokens[slash + 1 + 2 * prefixed].lower()


def _is_credentials(token: str) -> bool:
    return token[:1].isalnum() or token[:1] in ("_", "-", ".", "=") or token.lower() in _CREDENTIAL


def _is_bearer(text: str) -> bool:
    """Return True if the text is not a word of a sentence or the `realm=…` of a challenge."""
    bare = text.rstrip("=")
    if not bare or "=" in bare or (len(bare) < len(text) and len(bare) < _SHORT):
        return False
    if bare.isdecimal() or is_secret(bare):
        return len(bare) >= _SHORT and any(map(str.isdecimal, bare))
    odd = any(each.isdecimal() or each == "_" for each in bare)
    return odd or len(bare) >= _LONG or (len(bare) >= _SHORT and _is_mixed(bare))


def _is_basic(text: str) -> bool:
    """Return True if the text is `user:password` in base 64, or looks like it."""
    try:
        if b":" in binascii.a2b_base64(text, strict_mode=True):
            return True
    except ValueError:
        pass
    digits = any(map(str.isdecimal, text))
    return len(text) >= _SHORT and "=" not in text.rstrip("=") and digits and _is_mixed(text)


def _is_key(user: str) -> bool:
    """Return True if a user's name in an address looks like a key."""
    return len(user) >= _LONG and any(map(str.isdecimal, user))


def _is_mixed(text: str) -> bool:
    return not (text[1:].islower() or text.isupper() or text[1:].isupper())

"""Texts with their secrets withheld: Python's repr, JSON, headers, queries.

A text takes one pass: each token is read a bounded number of times, whatever the text is.
"""

from collections.abc import Collection, Iterable, Iterator
from typing import Final

from duetick.domain.redaction.known import KnownSecrets
from duetick.domain.redaction.names import (
    KINDS_OF_KEY,
    contains_part,
    is_header,
    is_secret,
    words,
)
from duetick.domain.redaction.paired import PairedSecrets
from duetick.domain.redaction.spelling import Span
from duetick.domain.redaction.tokens import OPENERS, Tokens
from duetick.domain.redaction.unnamed import UnnamedSecrets

WITHHELD: Final = "[withheld]"

LONGEST_TEXT: Final = 65_536
"""The most characters of a text that are read. The rest is not shown."""

CUT: Final = "…"
_LONGEST_ESCAPE: Final = 12

_BEHIND_NAMES: Final = frozenset({"]", "%22", "%27", "%5d"})
"""The tokens between a name and its separator: `user[password]=`, a quoted query."""

_PLACES: Final = frozenset({"[", "%5b"})
"""The first tokens of an index behind a name: `password[]=`, `token[0]=`."""
_EQUALS: Final = ("=", "%3d")
_FEW: Final = 8

_SEPARATORS: Final = frozenset({"%3a", "%3d"})
_SCHEMES: Final = frozenset({"bearer", "basic", "digest", "negotiate", "token", "hmac"})
_ERRORS: Final = ("Error", "Exception", "Warning")
"""The ends of the names of errors. The text behind such a name is a message."""

_ESCAPES: Final = ("n", "r", "t")


def withhold(text: str, extra: Collection[str], known: KnownSecrets | None = None) -> str:
    """Return the text with the values of secret names, and the `known` secrets, withheld."""
    kept = _cut(text)
    cut = len(kept) < len(text)
    quoted = known.spans(kept, cut=cut) if known else ()
    return _withhold(kept, (*NamedSecrets(kept, extra).spans(), *quoted)) + CUT * cut


def secrets_of(text: str, extra: Collection[str]) -> Iterator[str]:
    """Yield the values of secret names in a text."""
    kept = _cut(text)
    return (kept[start:end] for start, end in NamedSecrets(kept, extra).spans())


def _cut(text: str) -> str:
    """Return the part of the text that is read. It never ends inside an escape."""
    if len(text) <= LONGEST_TEXT:
        return text
    backslash = text.rfind("\\", LONGEST_TEXT - _LONGEST_ESCAPE, LONGEST_TEXT)
    return text[:backslash].rstrip("\\") if backslash >= 0 else text[:LONGEST_TEXT]


def _withhold(text: str, spans: Iterable[Span]) -> str:
    parts, at, open_until = list[str](), 0, -1
    for start, end in sorted(spans):
        if start > open_until:
            parts += (text[at:start], WITHHELD)
        at = open_until = max(open_until, end)
    return "".join((*parts, text[at:]))


class NamedSecrets:
    """The values in a text that have a secret name, or that look like secrets.

    `extra` are names that an action adds.
    """

    def __init__(self, text: str, extra: Collection[str] = ()) -> None:
        self._extra = extra
        self._tokens = Tokens(text)
        self._paired = PairedSecrets(self._tokens, extra)
        self._unnamed = UnnamedSecrets(self._tokens, extra)

    @property
    def steps(self) -> int:
        """The number of reads of tokens."""
        return self._tokens.steps

    def spans(self) -> Iterator[Span]:
        """Yield the places of the secrets in the text."""
        at = 0
        while at < self._tokens.end:
            ends = [at + 1]
            for start, end in self._values(at):
                if start < end:
                    yield self._tokens.span(start, end)
                    ends.append(end)
            at = max(ends)

    def _values(self, at: int) -> Iterator[Span]:
        """Yield the secrets that a token announces."""
        word = self._tokens[at]
        if not (word[:1].isalnum() or word[:1] in ("_", "-", ".")):
            yield self._paired.pair(at)
            yield self._unnamed.userinfo(at)
            return
        self._tokens.steps += len(word)
        yield from self._read_named(at, word)
        yield self._unnamed.credential(at)
        if is_secret(word, self._extra):
            yield self._paired.argument(at)
            yield self._unnamed.element(at)

    def _read_named(self, at: int, word: str) -> Iterator[Span]:
        """Yield the value behind a secret name and its separator. See also `PairedSecrets`."""
        tokens, quoted = self._tokens, self._tokens.is_quote(at + 1)
        behind = self._behind_name(at + 1 + quoted)
        here = tokens.behind_blanks(behind, lines=quoted)
        separator = tokens[here]
        if separator[:1] not in (":", "=") and separator.lower() not in _SEPARATORS:
            return
        start = tokens.behind_blanks(here + 1, lines=quoted)
        attached = here == behind and tokens[behind - 1] != ")"
        if quoted or attached:
            yield from self._paired.values_of_label(at, word, start)
        name = self._name(at, word)
        if not name or (not quoted and self._is_prose(at, name, separator, attached=attached)):
            return
        if self._is_line(start, name, separator):
            yield start, tokens.line(start, "" if quoted else tokens[at - 1])
            return
        yield tokens.value(start)
        if not quoted and separator == ":":
            yield tokens.block(at, start)

    def _behind_name(self, at: int) -> int:
        """Return the token where the separator of a name may be. Indexes need a `=` behind them."""
        inside = False
        for here in range(at, at + _FEW):
            found = self._tokens[here].lower()
            if found.startswith(_EQUALS):
                return here
            inside = found in _PLACES or (inside and found not in _BEHIND_NAMES)
            if not (inside or found in _BEHIND_NAMES or found == ")"):
                break
        return at + (self._tokens[at].lower() in _BEHIND_NAMES)

    def _name(self, at: int, word: str) -> str:
        """Return the secret name at a token, or "". After a backslash, drop an escape's letter."""
        if is_secret(word, self._extra) or word.rpartition(".")[2] in self._extra:
            return word
        escaped = word.startswith(_ESCAPES) and self._tokens[at - 1].startswith("\\")
        return word[1:] if escaped and is_secret(word[1:], self._extra) else ""

    def _is_prose(self, at: int, name: str, separator: str, *, attached: bool) -> bool:
        """Return True if a name and value are really prose: an error's message, `the key: …`."""
        if name.endswith(_ERRORS):
            return True
        if contains_part(name) or (is_secret(name) and len(words(name)) > 1):
            return False  # only `key` and the names of an action may be words of a sentence
        before = self._tokens[at - 2] if self._tokens.is_blank(at - 1, lines=False) else ""
        return before.lower() not in KINDS_OF_KEY and not (attached and separator[0] in "=%")

    def _is_line(self, at: int, name: str, separator: str) -> bool:
        """Return True if the value is the rest of the line: a header's, or one with a scheme."""
        if self._tokens.is_string(at) or self._tokens[at] in OPENERS:
            return False
        header = separator[0] == ":" and is_header(name)
        scheme = self._tokens[at].lower() in _SCHEMES
        return header or (scheme and self._tokens.is_blank(at + 1, lines=False))

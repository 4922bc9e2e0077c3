"""Values beside their names in a text: pairs, arguments, `{"name": …, "value": …}`.

No value is read twice: the scan goes on behind a found value. If the value comes before its name,
the search for its end stops at the name.
"""

from collections import deque
from collections.abc import Collection, Iterator
from typing import Final

from duetick.domain.redaction.names import is_header, is_title, labels_name, labels_value
from duetick.domain.redaction.spelling import Span
from duetick.domain.redaction.tokens import CLOSERS, OPENERS, Tokens

NONE: Final = (0, 0)
_NOWHERE: Final = -(10**9)
_MOST_UNNAMED: Final = 8
"""The most values that wait for their names. Each is read once."""

_LISTS: Final = ("[", "(")
_NO_VALUES: Final = ("-", ".", "|", "/", "<", ">", "=", "\\", ")", "]", "}", ",", ":")
_PROSE: Final = frozenset({
    "a", "an", "and", "are", "argument", "arguments", "as", "at", "be", "but", "by", "can",
    "cannot", "does", "expired", "flag", "flags", "for", "from", "had", "has", "have", "if", "in",
    "instead", "into", "is", "it", "may", "missing", "must", "needs", "not", "of", "on", "option",
    "options", "or", "parameter", "required", "requires", "should", "so", "that", "the", "then",
    "this", "to", "was", "were", "when", "where", "which", "while", "will", "with", "without",
})  # fmt: skip
"""The words of a sentence about an option. They are not its value."""


class PairedSecrets:
    """The secrets of a text that are beside their names.

    `_awaited` is the depth in brackets of a secret name whose value has yet to come. `_unnamed` are
    the starts of values whose names may yet come. Brackets in strings count too: if they do not
    match, more is withheld.
    """

    def __init__(self, tokens: Tokens, extra: Collection[str]) -> None:
        self._tokens = tokens
        self._extra = extra
        self._depth = 0
        self._awaited = _NOWHERE
        self._unnamed = deque[int](maxlen=_MOST_UNNAMED)

    def pair(self, at: int) -> Span:
        """Return the second item of a list whose first is a secret name: `('Authorization', …)`."""
        tokens = self._tokens
        self._depth += (tokens[at] in OPENERS) - (tokens[at] in CLOSERS)
        first = tokens.behind_blanks(at + 1, lines=True)
        if tokens[at] not in _LISTS or not tokens.is_string(first):
            return NONE
        start = self._behind_comma(first)
        called = tokens[at] == "(" and tokens[at - 1][-1:].isalnum()  # `get("token", None)`
        return tokens.value(start) if start and (tokens.is_string(start) or not called) else NONE

    def _behind_comma(self, at: int) -> int:
        """Return the item behind a secret name; 0 if there is no such name."""
        tokens = self._tokens
        title, behind = tokens.text(at)
        comma = tokens.behind_blanks(behind, lines=True)
        if tokens[comma] != "," or not is_title(title, self._extra):
            return 0
        return tokens.behind_blanks(comma + 1, lines=True)

    def argument(self, at: int) -> Span:
        """Return the value behind an option: `--password S`, `['--password', 'S']`.

        In a list, a value also follows the name of a header: `[…, 'Cookie', 'S']`.
        """
        tokens = self._tokens
        option = tokens[at]
        if tokens.is_quote(at - 1) and tokens.closes(tokens[at + 1], tokens[at - 1]):
            listed = ("-" in option or is_header(option)) and not self._is_labelled(at - 1)
            start = self._behind_comma(at - 1) if listed else 0
            return tokens.value(start) if start and tokens.is_string(start) else NONE
        if not option.startswith("-") or tokens[at - 1].endswith("/"):
            return NONE
        start = tokens.behind_blanks(at + 1, lines=False)
        return tokens.value(start) if start > at + 1 and self._is_argument(start, option) else NONE

    def _is_labelled(self, at: int) -> bool:
        """Return True if the item at a token has a name. Then the next item has one too."""
        before = at - 1 - self._tokens.is_blank(at - 1, lines=True)
        return self._tokens[before].startswith((":", "="))

    def _is_argument(self, at: int, option: str) -> bool:
        """Return True if a token may be a value, and not a word of a sentence or a usage line."""
        token = self._tokens[at]
        if self._tokens.is_string(at):
            return True
        word = token.lower()
        return (
            token != ""
            and not token.startswith(_NO_VALUES)
            and word not in (*_PROSE, option.strip("-").lower())
        )

    def values_of_label(self, at: int, label: str, start: int) -> Iterator[Span]:
        """Yield the values that a label completes: the value behind it, or values before it."""
        if labels_value(label):
            yield self._value_behind(start)
            return
        title, behind = self._tokens.text(start) if labels_name(label) else ("", at)
        if not is_title(title, self._extra):
            return
        if not self._is_closed(behind):
            self._awaited = self._depth
        while self._unnamed:
            yield self._value_before(at, self._unnamed.popleft())
        yield self._tokens.part(behind)

    def _value_behind(self, start: int) -> Span:
        if self._awaited == _NOWHERE:
            self._unnamed.append(start)
            return NONE
        if self._depth <= self._awaited:
            self._awaited = _NOWHERE
        return self._tokens.value(start)

    def _value_before(self, at: int, value: int) -> Span:
        """Return a value before its name. If its object ends before the name, return none."""
        whole, self._tokens.end = self._tokens.end, at
        start, end = self._tokens.value(value)
        behind = end + self._tokens.is_quote(end)
        beside = not self._is_closed(behind)
        self._tokens.end = whole
        return (start, end) if beside else NONE

    def _is_closed(self, at: int) -> bool:
        return self._tokens[self._tokens.behind_blanks(at, lines=True)] in CLOSERS

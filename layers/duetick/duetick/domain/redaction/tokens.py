"""The tokens of a text, and the ends of the values in it.

A text is cut into tokens in one pass, and each token is read a bounded number of times. If the end
of a value is in doubt, the later end counts.
"""

import re
from typing import Final

from duetick.domain.redaction.spelling import LETTERS, Span, Unquoted, decode_letter

# `re` compiles this text on first use: the cold start of a tick does not need it.
_LEXER: Final = (
    r"""(?s)[\w.-]++|\\*+['"`]|(?:\s|\\++[nrt](?![\w.]|-[\w.-]))++|\\++|"""
    r"""%[0-9A-Fa-f]{2}|[:=][:=>]*+|."""
)
"""A token is a name, a quote with its backslashes, blanks (escaped ones too), a separator, or any
other single character."""

_QUOTES: Final = ("'", '"', "`")
OPENERS: Final = frozenset("([{")
CLOSERS: Final = frozenset(")]}")
_ENDS: Final = frozenset(",;&")
"""The characters that end a plain value, besides white space."""

_ESCAPES: Final = ("n", "r", "t")
_LINE_ENDS: Final = frozenset("\n\rnr")
"""The characters, and the letters of their escapes."""
_ITEM: Final = 2
"""The tokens, and the characters, before an item of a list: a dash and a blank."""
_BLANK_LINE: Final = 2
"""The line ends that make a blank line."""
_FEW: Final = 24
"""The most tokens of a name."""

_IN_NAMES: Final = ("/", "[", "\\", "_")
"""The characters of a name without quotes, besides letters and digits."""
_BLOCKS: Final = ("|", ">")
"""The signs of YAML for a value on the lines below its name."""

_PREFIXES: Final = frozenset({"b", "r", "u", "br", "rb"})
"""The prefixes of a quoted value, as in `b'…'`."""


class Tokens:
    """The tokens of a text whose escaped letters are decoded. Readers stop at `end`.

    `steps` counts the reads of tokens.
    """

    def __init__(self, text: str) -> None:
        self.steps = 0
        self._spelt = Unquoted.of(text).rewrite(LETTERS, decode_letter)
        self._found = [found.span() for found in re.finditer(_LEXER, self._spelt.text)]
        self._tokens = [self._spelt.text[start:end] for start, end in self._found]
        self.end = len(self._tokens)

    def span(self, start: int, end: int) -> Span:
        """Return the place of these tokens in the text."""
        return self._spelt.span(self._found[start][0], self._found[end - 1][1])

    def __getitem__(self, at: int) -> str:
        """Return a token; behind the last one, an empty text."""
        self.steps += 1
        return self._tokens[at] if 0 <= at < self.end else ""

    def value(self, at: int) -> Span:
        """Return the tokens of the value that begins at a token."""
        return self._string(at) if self.is_string(at) else (at, self._plain(at))

    def text(self, at: int) -> tuple[str, int]:
        """Return the short text at a token, quoted or one word, and the token behind it."""
        quoted = self.is_string(at)
        opening = at + (not self.is_quote(at)) if quoted else at - 1
        places = range(opening + 1, opening + _FEW)
        ends = self.is_quote if quoted else self._ends_name
        behind = next(filter(ends, places), opening)
        if behind == opening or (quoted and not self.closes(self[behind], self[opening])):
            return "", at
        name = "".join(self[each] for each in range(opening + 1, behind))
        return name.replace("\\", ""), behind + quoted

    def _ends_name(self, at: int) -> bool:
        inside = self[at][:1].isalnum() or self[at].startswith(_IN_NAMES)
        return self.is_blank(at, lines=True) or not inside

    def _string(self, at: int) -> Span:
        """Return the tokens between the quotes of a string. The strings that continue it count."""
        first = opening = at + (not self.is_quote(at))
        end = self._behind_string(opening)
        while following := self._following(opening, end):
            opening, end = following, self._behind_string(following)
        closed = end - 1 > opening and self.closes(self[end - 1], self[opening])
        return first + 1, end - closed

    def _following(self, opening: int, end: int) -> int:
        """Return the quote that opens the next part of a string in several parts; 0 for none."""
        another = self.behind_blanks(end, lines=True)
        following = another + (not self.is_quote(another))
        same = self[following] == self[opening]
        next_line = another > end and not self.is_blank(end, lines=False)
        return following if self.is_string(another) and (same or next_line) else 0

    def _behind_string(self, opening: int) -> int:
        """Return the token behind the last quote of a string.

        Quotes inside have more backslashes than the quotes around them. So does the last quote, if
        the string ends in a backslash. If the end is in doubt, the string is the rest of the text.
        """
        quote = self[opening]
        width = 3 if self[opening + 1] == self[opening + 2] == quote else 1
        at, closing = opening + width, 0
        while at < self.end and closing < width:
            token, at = self[at], at + 1
            closing = closing + 1 if self.closes(token, quote) else 0
            if _is_doubtful(token, quote):
                return self.end
        return at

    @staticmethod
    def closes(token: str, opening: str) -> bool:
        """Return True if the token ends the string that `opening` opens."""
        return token.endswith(opening[-1]) and len(token) <= len(opening)

    def _plain(self, at: int) -> int:
        """Return the token behind a plain value, without quotes and brackets that end other parts.

        If the word ends in a separator, it is a label, and the value follows it.
        """
        start = end = at
        while at < self.end and self[at] not in _ENDS:
            if _has_space(self[at]):
                if at == start or self[at - 1] != ":" or "\n" in self[at]:
                    break
                at += 1
            elif self[at] in OPENERS:
                end = at = self._behind_bracket(at)
            else:
                at += 1
                if not self._ends_another(at - 1):
                    end = at
        return end

    def _ends_another(self, at: int) -> bool:
        return self[at] in CLOSERS or self.is_quote(at) or self[at][:1] == "\\"

    def _behind_bracket(self, at: int) -> int:
        """Return the token behind the bracket that closes the bracket at a token."""
        depth = 0
        while at < self.end:
            depth += (self[at] in OPENERS) - (self[at] in CLOSERS)
            at = self._behind_string(at) if self.is_quote(at) else at + 1
            if not depth:
                break
        return at

    def line(self, at: int, before: str) -> int:
        """Return the token that ends the line, or the string that began before the name."""
        quote = before if before.endswith(_QUOTES) else ""
        while at < self.end:
            token = self[at]
            if (quote and self.closes(token, quote)) or "\n" in token or "\r" in token:
                break
            at += 1
        return at

    def block(self, name: int, at: int) -> Span:
        """Return the lines that are indented deeper than the line of a name: a value in YAML."""
        depth, quote = self._depth(name), self[name - 1] if self.is_quote(name - 1) else ""
        here = at + (self[at] in _BLOCKS)
        here += at < here and not self._ends_line(here)
        start = end = at + (at == here)
        while depth >= 0 and self._is_below(here, depth):
            end = here = self._line_end(here + 1, quote)
        return start, end

    def _line_end(self, at: int, quote: str) -> int:
        """Return the end of the line, or of the string that the quote began."""
        while at < self.end and not self._ends_line(at):
            if quote and self.closes(self[at], quote):
                break
            at += 1
        return at

    def _depth(self, at: int) -> int:
        """Return the indent of a token that begins a line, or an item; -1 if it does not."""
        item = _ITEM * (self[at - 2] == "-" and self.is_blank(at - 1, lines=False))
        first = at - item
        before = self[first - 1]
        if self._ends_line(first - 1) or (before.isspace() and self._begins(first - 1)):
            return len(before) - len(before.rstrip(" \t")) + item
        spelt = before[:1] == "\\" and self[at].startswith(_ESCAPES)
        return item if spelt or self._begins(first) else -1

    def _begins(self, at: int) -> bool:
        """Return True if the text, or a string in it, begins at a token."""
        return at == 0 or self.is_quote(at - 1)

    def _is_below(self, at: int, above: int) -> bool:
        """Return True if the next line is indented deeper than `above`, or is an item at it."""
        depth = self._depth(at + 1) if self._ends_line(at) else -1
        return above < depth or (above == depth and self[at + 1] == "-")

    def _ends_line(self, at: int) -> bool:
        return self.is_blank(at, lines=True) and not self.is_blank(at, lines=False)

    def part(self, at: int) -> Span:
        """Return the content of a form's part: from the blank line at a token to the next part."""
        lines = [self[at].count(end) + self[at].count(spelt) for end, spelt in ("\nn", "\rr")]
        if max(lines) < _BLANK_LINE or not self._ends_line(at):
            return at, at
        end = at + 1
        while end < self.end and not (self._ends_line(end) and self[end + 1].startswith("--")):
            end += 1
        return at + 1, end

    def is_string(self, at: int) -> bool:
        """Return True if a string begins at a token, also as `b'…'`."""
        prefixed = self[at].lower() in _PREFIXES
        return self.is_quote(at + prefixed)

    def is_quote(self, at: int) -> bool:
        """Return True if a token is a quote, with its backslashes."""
        return self[at].endswith(_QUOTES)

    def is_blank(self, at: int, *, lines: bool) -> bool:
        """Return True if a token is white space, escaped or not. A line end counts if `lines`."""
        token = self[at]
        spelt = token[:1] == "\\" and (token[-1].isspace() or token.endswith(_ESCAPES))
        return (token[:1].isspace() or spelt) and (lines or _LINE_ENDS.isdisjoint(token))

    def behind_blanks(self, at: int, *, lines: bool) -> int:
        """Return the token behind white space; the same one if it is none."""
        return at + self.is_blank(at, lines=lines)


def _is_doubtful(token: str, opening: str) -> bool:
    """Return True if the backslashes before a quote may be the end of the string.

    Each further quoting doubles the backslashes, and may add one before each quote.
    """
    escapes, more = len(opening) - 1, len(token) - len(opening)
    one = 2 * (escapes + (escapes & -escapes)) or 2
    return token.endswith(opening[-1]) and more > 0 and more % one == 0


def _has_space(token: str) -> bool:
    """Return True if the token contains white space that is not escaped."""
    return token.split() != [token]

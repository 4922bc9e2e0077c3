"""Known secrets in a text, however often it was quoted: it may contain the repr of a value's JSON.

Texts and secrets are compared without their quoting, in one pass over the text for all secrets
(Aho and Corasick's automaton). If a text marks an omission (`…`), the beginning of a secret before
the mark counts too, and so does the end of a secret behind it.
"""

import re
from collections.abc import Collection, Iterator, Mapping
from typing import Final, TypeAlias

from duetick.domain.redaction.spelling import BACKSLASHED, BARE, ON_THE_WEB, Span, Unquoted

SHORT: Final = 4
"""A secret of fewer characters must stand alone: many words contain it."""

SHORTENED: Final = 8
"""The least characters of a secret that count if the rest of it is omitted."""

_OMISSION: Final = r"[\s\[(<{]{0,2}(?:\.{3,}|…)[\s\])>}]{0,2}"

_Reading: TypeAlias = tuple[str, ...]
_READINGS: Final[tuple[_Reading, ...]] = ((ON_THE_WEB, BACKSLASHED), (BARE,))
"""Escapes are decoded in one reading and not in the other: a secret may look like an escape."""


class KnownSecrets:
    """Secrets to find in texts."""

    def __init__(self, secrets: Collection[str]) -> None:
        self._secrets = {form for secret in secrets for form in _forms(secret)}
        self._automata: dict[tuple[_Reading, int], _Automaton] = {}

    @property
    def steps(self) -> int:
        """The number of reads of states so far, for all texts and for building the automata."""
        return sum(each.steps for each in self._automata.values())

    def spans(self, text: str, *, cut: bool = False) -> Iterator[Span]:
        """Yield the places of secrets. If the text was `cut`, it may end in a part of a secret."""
        if any(len(each) >= SHORT and not each.strip("\\") for each in self._secrets):
            yield from (found.span() for found in re.finditer(BARE, text))
        several = any(mark in text for mark in "\\%&")
        for reading in _READINGS if several else _READINGS[:1]:
            if self._secrets:
                yield from self._find(reading, Unquoted.read(text, reading), cut=cut)

    def _find(self, reading: _Reading, text: Unquoted, *, cut: bool) -> Iterator[Span]:
        size = len(text.text)
        omissions = [found.span() for found in re.finditer(_OMISSION, text.text)]
        least = {at: SHORTENED for first, last in omissions for at in range(first, last + 1)}
        ends = {**least, size: 1} if cut else least
        for start, end in self._automaton(reading, 1).spans(text, ends):
            yield text.span(start, end)
        if least:  # the end of a secret is its beginning, read backwards
            back = Unquoted(text.text[::-1], text.origins[::-1])
            starts = {size - at: each for at, each in least.items()}
            for end, start in self._automaton(reading, -1).spans(back, starts):
                yield text.span(size - start, size - end)

    def _automaton(self, reading: _Reading, step: int) -> "_Automaton":
        """Return the automaton of a reading, forwards or backwards. It is built on first use."""
        if (reading, step) not in self._automata:
            read = {Unquoted.read(each, reading).text[::step] for each in self._secrets}
            self._automata[reading, step] = _Automaton(read)
        return self._automata[reading, step]


def _forms(secret: str) -> Iterator[str]:
    """Yield the secret, the secret without the blanks around it, and its bytes in a repr."""
    for each in {secret, secret.strip() or secret}:
        yield each
        if not each.isascii():
            yield each.encode(errors="surrogatepass").decode("latin-1")


class _Automaton:
    """The automaton of Aho and Corasick for one set of secrets.

    A state is the beginning of a secret, `depth` characters long; state 0 is empty. `shorter` is
    the longest other beginning with which the state ends, `match` the longest secret.
    """

    def __init__(self, secrets: Collection[str]) -> None:
        self.steps = 0
        self._next: dict[tuple[int, str], int] = {}
        self._depth, self._shorter, self._match = [0], [0], [0]
        made: list[tuple[int, str, int]] = []
        for secret in secrets:
            state = 0
            for character in secret:
                state = self._grow(state, character, made)
            self._match[state] = state
        for parent, character, state in sorted(made, key=lambda one: self._depth[one[2]]):
            self._link(parent, character, state)

    def _grow(self, state: int, character: str, made: list[tuple[int, str, int]]) -> int:
        self.steps += 1
        after = self._next.setdefault((state, character), len(self._depth))
        if after == len(self._depth):
            self._depth.append(self._depth[state] + 1)
            self._shorter.append(0)
            self._match.append(0)
            made.append((state, character, after))
        return after

    def _link(self, parent: int, character: str, state: int) -> None:
        shorter = self._after(self._shorter[parent], character) if parent else 0
        self._shorter[state] = shorter
        self._match[state] = self._match[state] or self._match[shorter]

    def _after(self, state: int, character: str) -> int:
        """Return the state after one more character of the text."""
        self.steps += 1
        while state and (state, character) not in self._next:
            self.steps += 1
            state = self._shorter[state]
        return self._next.get((state, character), 0)

    def spans(self, text: Unquoted, least: Mapping[int, int]) -> Iterator[Span]:
        """Yield the places of secrets, and of their beginnings that are long enough.

        `least` has the length that counts, by the place where a beginning ends.
        """
        state = 0
        for end, character in enumerate(text.text, start=1):
            state = self._after(state, character)
            start = self._longest(state, text, end)
            if start < end:
                yield start, end
            if state and self._depth[state] >= least.get(end, end + 1):
                yield end - self._depth[state], end

    def _longest(self, state: int, text: Unquoted, end: int) -> int:
        """Return the start of the longest secret that ends at `end`. A short one stands alone."""
        found = self._match[state]
        while found:
            start = end - self._depth[found]
            alone = not (text.is_word(start - 1) or text.is_word(end))
            if alone or self._depth[found] >= SHORT:
                return start
            found = self._match[self._shorter[found]]
        return end

"""Secrets are not shown: values whose names say that they are some, at any depth (J-11)."""

import json
import re
from collections.abc import Collection, Iterator
from typing import Final

from duetick.domain.schedule import Json

WITHHELD: Final = "[withheld]"
SHORT: Final = 4
"""A secret of fewer characters stands in many words that are none."""

MOST_WORK: Final = 20_000_000
"""Characters times secrets: what takes longer to look through is not shown at all."""

# Texts, which `re` compiles when they are first asked for: a tick's cold start needs none.
_PLAIN: Final = r"(?i)password|passwd|token|secret|authorization|cookie|credential"
_KEY_WORD: Final = r"(?:^|[^A-Za-z])[Kk]ey(?:$|[^a-z])|[a-z0-9]Key(?:$|[^a-z])|KEY"
_NAMED: Final = (
    r"(?i)\b([\w.-]*(?:password|passwd|token|secret|authorization|cookie|credential"
    r"|api[_-]?key|private[_-]?key|access[_-]?key)[\w.-]*['\"]?\s*[:=]\s*)"
    r"(?:Bearer\s+|Basic\s+)?(?:'[^']*'|\"[^\"]*\"|[^\s,;&}]+)"
)


def is_secret(name: str) -> bool:
    """Whether a field's name says that its value is a secret; `key` only as a word of its own."""
    return bool(re.search(_PLAIN, name) or re.search(_KEY_WORD, name))


def redact(value: Json, own: Collection[str] = ()) -> Json:
    """The value with its secrets withheld; `own` are the names that an action adds."""
    if isinstance(value, dict):
        return {
            name: WITHHELD if _withholds(name, own) and inner is not None else redact(inner, own)
            for name, inner in value.items()
        }
    if isinstance(value, list):
        return [redact(inner, own) for inner in value]
    return value


def is_redacted(value: Json) -> bool:
    """Whether something was withheld of it: written back, the mark would be in a secret's place."""
    return any(leaf == WITHHELD for leaf in _leaves(value))


def redact_text(text: str | None) -> str | None:
    """An error's text with what stands behind a secret's name withheld."""
    return text and re.sub(_NAMED, lambda found: found[1] + WITHHELD, text)


def secrets_in(value: Json, own: Collection[str] = ()) -> frozenset[str]:
    """The secrets of a value: each text and number that stands somewhere under such a name."""
    return frozenset(text for text in map(str, _secrets(value, own)) if text)


def without(text: str, secrets: Collection[str]) -> str:
    """The text, with each of the secrets in it withheld, and what stands behind a secret's name.

    However often it was quoted: an error may hold the repr of the JSON of a value.
    """
    if len(secrets) * len(text) > MOST_WORK:
        return WITHHELD
    if secrets:
        longest_first = sorted(secrets, key=len, reverse=True)
        text = re.sub("|".join(map(_quoted, longest_first)), WITHHELD, text)
    return redact_text(text) or ""


def _withholds(name: str, own: Collection[str]) -> bool:
    return name in own or is_secret(name)


def _secrets(value: Json, own: Collection[str]) -> Iterator[Json]:
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _leaves(inner) if _withholds(name, own) else _secrets(inner, own)
    elif isinstance(value, list):
        for inner in value:
            yield from _secrets(inner, own)


def _leaves(value: Json) -> Iterator[Json]:
    if isinstance(value, dict):
        for inner in value.values():
            yield from _leaves(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _leaves(inner)
    elif value is not None and not isinstance(value, bool):
        yield value


def _quoted(secret: str) -> str:
    """A pattern of the text, plain or quoted. A short one counts only where it stands alone."""
    found = "".join(_part(*each) for each in re.findall(r"(\\*)([^\\]?)", secret))
    if found.startswith("\\\\"):
        found = r"(?<!\\)" + found  # a run of backslashes is looked at once
    alone = len(secret) < SHORT
    return rf"(?:(?<!\w)|(?<=\\[nrt])){found}(?!\w)" if alone else found


def _part(backslashes: str, character: str) -> str:
    """Of a character and the backslashes before it: each quoting doubles those, and adds some."""
    run = r"\\++" if backslashes else ""
    if character in ("'", '"'):
        return (run or r"\\*+") + character
    plain = re.escape(character)
    if character.isascii() and (not character or character.isprintable()):
        return run + plain
    escapes = {json.dumps(character)[1:-1], ascii(character)[1:-1]}
    spelt = sorted(r"\\++".join(escape.split("\\")[1:]) for escape in escapes if "\\" in escape)
    more = "" if run else r"\\++"
    return f"{run}(?:{plain}|{more}(?:{'|'.join(spelt)}))"

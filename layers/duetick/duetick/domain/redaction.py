"""Secrets are not shown: values whose names say that they are some, at any depth (J-11)."""

import json
import re
from collections.abc import Collection, Iterator
from typing import Final

from duetick.domain.schedule import Json

WITHHELD: Final = "[withheld]"

_PLAIN: Final = re.compile(
    r"password|passwd|token|secret|authorization|cookie|credential", re.IGNORECASE
)
_KEY_WORD: Final = re.compile(r"(?:^|[^A-Za-z])[Kk]ey(?:$|[^a-z])|[a-z0-9]Key(?:$|[^a-z])|KEY")
_NAMED: Final = re.compile(
    r"(?i)\b([\w.-]*(?:password|passwd|token|secret|authorization|cookie|credential"
    r"|api[_-]?key|private[_-]?key|access[_-]?key)[\w.-]*['\"]?\s*[:=]\s*)"
    r"(?:Bearer\s+|Basic\s+)?(?:'[^']*'|\"[^\"]*\"|[^\s,;&}]+)"
)


def is_secret(name: str) -> bool:
    """Whether a field's name says that its value is a secret; `key` only as a word of its own."""
    return bool(_PLAIN.search(name) or _KEY_WORD.search(name))


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


def redact_text(text: str | None) -> str | None:
    """An error's text with what stands behind a secret's name withheld."""
    return text and _NAMED.sub(lambda found: found[1] + WITHHELD, text)


def secrets_in(value: Json, own: Collection[str] = ()) -> frozenset[str]:
    """The secrets of a value as a text might hold them: plain, and as Python or JSON quote them."""
    return frozenset(form for leaf in _secrets(value, own) for form in _forms(leaf) if form)


def without(text: str, secrets: Collection[str]) -> str:
    """The text, with each of the secrets in it withheld, and what stands behind a secret's name."""
    if secrets:
        longest_first = sorted(secrets, key=len, reverse=True)
        known = "|".join(map(re.escape, longest_first))
        text = re.sub(rf"(?<!\w)(?:{known})(?!\w)", WITHHELD, text)
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


def _forms(leaf: Json) -> Iterator[str]:
    yield str(leaf)
    if isinstance(leaf, str):
        yield repr(leaf)[1:-1]
        yield json.dumps(leaf)[1:-1]
        yield json.dumps(leaf, ensure_ascii=False)[1:-1]

"""Secrets are not shown: values whose names say that they are some, at any depth (J-11)."""

import re
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


def redact(value: Json) -> Json:
    """The value with its secrets withheld."""
    if isinstance(value, dict):
        return {
            name: WITHHELD if is_secret(name) and inner is not None else redact(inner)
            for name, inner in value.items()
        }
    if isinstance(value, list):
        return [redact(inner) for inner in value]
    return value


def redact_text(text: str | None) -> str | None:
    """An error's text with what stands behind a secret's name withheld."""
    return text and _NAMED.sub(lambda found: found[1] + WITHHELD, text)

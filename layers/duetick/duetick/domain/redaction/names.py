"""Secret names: names that say that their values are secret (J-11)."""

import re
from collections.abc import Collection
from typing import Final

_PARTS: Final = (
    "password", "passwd", "pwd", "passphrase", "token", "secret", "authorization", "cookie",
    "credential", "bearer", "jwt", "signature",
)  # fmt: skip
"""A name that contains one of these names a secret."""

KEYS: Final = frozenset({"key", "keys"})
"""A name with one of these among its words names a secret."""

KINDS_OF_KEY: Final = (
    "api", "access", "private", "auth", "signing", "encryption", "master", "session", "ssh",
    "account", "client", "deploy", "pass", "shared",
)  # fmt: skip
_RUN_TOGETHER: Final = tuple(f"{kind}key" for kind in KINDS_OF_KEY)

_NAMES: Final = frozenset({"name", "key", "header", "field", "label", "id"})
_VALUES: Final = frozenset({"value", "values", "val", "data", "default", "content"})
_HEADERS: Final = ("authorization", "cookie")
"""The parts of the names of secret headers. The value of a header is the rest of the line."""

_TITLE: Final = r"[\w./[\]-]++(?: [\w./[\]-]++){0,2}+:?"
"""A name has at most three words: a sentence is no name."""
_LONGEST_TITLE: Final = 256

_WORD: Final = r"KEYS?(?![A-Z])|[A-Z]+(?![a-z])|[A-Z]?[a-z]+"
_BETWEEN_LETTERS: Final = r"[\W_]++"


def is_secret(name: str, extra: Collection[str] = ()) -> bool:
    """Return True if the name is a secret name. `extra` are names that an action adds."""
    return (
        name in extra
        or contains_part(name)
        or not KEYS.isdisjoint(words(name))
        or _run_together(name) in KEYS
    )


def contains_part(name: str) -> bool:
    """Return True if the name is a secret name by more than the plain word `key`."""
    lower, bare = name.lower(), _run_together(name)
    return any(kind in lower for kind in _RUN_TOGETHER) or any(part in bare for part in _PARTS)


def _run_together(name: str) -> str:
    """Return the letters and digits of a name: `key` for k.e.y."""
    return re.sub(_BETWEEN_LETTERS, "", name).lower()


def is_title(text: str, extra: Collection[str] = ()) -> bool:
    """Return True if the text is a secret name as it stands in a list of names and values."""
    if len(text) > _LONGEST_TITLE:
        return False
    return text in extra or (re.fullmatch(_TITLE, text) is not None and is_secret(text, extra))


def is_header(name: str) -> bool:
    """Return True if a secret name is the name of a header. Its value is the rest of the line."""
    return any(part in name.lower() for part in _HEADERS)


def is_option(text: str, extra: Collection[str] = ()) -> bool:
    """Return True if the text is a secret option of a command line. The next word is its value."""
    return text.startswith("-") and len(text.split()) == 1 and is_title(text, extra)


def labels_name(name: str) -> bool:
    """Return True if the value of this name is a name itself: `name` in `{"name": …}`."""
    return not _NAMES.isdisjoint(words(name)[-1:])


def labels_value(name: str) -> bool:
    """Return True if the value's name is beside it: `value` in `{"name": …, "value": …}`."""
    return not _VALUES.isdisjoint(words(name)[-1:])


def words(name: str) -> list[str]:
    """Return the words of a name in lower case: of camelCase, snake_case or any other."""
    return [word.lower() for word in re.findall(_WORD, name)]

"""The address of a store without its secrets, to show on a screen."""

import re
import shlex
from pathlib import Path
from typing import Final
from urllib.parse import SplitResult, unquote, urlsplit

from duetick.cli.problem import CliProblem

NO_SECRETS: Final = frozenset({"host", "port", "dbname", "user", "sslmode", "region", "shards"})
"""The options whose values are shown. Any other option may hold a secret."""


_PLAIN: Final = r"[\w.,:/\[\]-]*"
"""A value with any other character may be several values, one of them a secret."""


def hide_secrets(address: str) -> str:
    """Return the address, with … in place of each possible secret."""
    scheme, _, _ = address.partition("://")
    if scheme == "sqlite":
        return address
    try:
        parts = urlsplit(address)
        options = "&".join(map(_option, parts.query.split("&"))) if parts.query else ""
        return f"{scheme}://{_place(parts)}{parts.path}{'?' if options else ''}{options}"
    except ValueError:
        return f"{scheme}://…"


def from_anywhere(address: str) -> str:
    """Return the address as it is from any folder: the path of a file is the whole path."""
    scheme, separator, path = address.partition("sqlite:///")
    return f"{separator}{Path(path).absolute()}" if path and not scheme else address


def check_is_there(address: str) -> None:
    """Raise CliProblem if the file of a SQLite store is missing.

    To open it would make an empty file, and the error would be that it has to be migrated.
    """
    scheme, _, path = address.partition(":///")
    file = Path(unquote(path.partition("?")[0]))
    if scheme == "sqlite" and path and path != ":memory:" and not file.exists():
        raise CliProblem(
            f"There is no file {file.absolute()}. Is the address right? `duetick migrate --store "
            f"{shlex.quote(address)}` makes a new, empty store there."
        )


def advice(address: str) -> str:
    """Return the things to look at if a store cannot be used."""
    if address.startswith("sqlite"):
        return (
            "Is its folder there, and may you write to it? Name another with "
            "--store sqlite:///path/to/file.db."
        )
    return "Is its server up, is the address right, and are its credentials set?"


def _place(parts: SplitResult) -> str:
    if parts.password is None:
        return parts.netloc
    return f"{parts.username or ''}:…@{parts.netloc.rpartition('@')[2]}"


def _option(text: str) -> str:
    name, equals, value = text.partition("=")
    if not equals:
        return "…"
    plain = re.fullmatch(_PLAIN, unquote(value)) is not None
    return text if plain and unquote(name) in NO_SECRETS else f"{name}=…"

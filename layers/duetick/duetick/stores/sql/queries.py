"""SQL by name, from the .sql files beside the code."""

from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Final

_MARK: Final = "-- name: "
_FRAGMENTS: Final = ("_columns", "on_page")


def _sections(text: str) -> dict[str, str]:
    """What stands below each `-- name:` line."""
    found = {}
    for part in text.split(_MARK)[1:]:
        name, _, sql = part.partition("\n")
        found[name.strip()] = sql.strip()
    return found


@cache
def load(backend: str) -> dict[str, str]:
    """The shared queries with a backend's own over them; `{name}` stands for another one."""
    found: dict[str, str] = {}
    for package in ("sql", backend):
        text = files("duetick.stores").joinpath(package, "queries.sql").read_text()
        found |= _sections(text)
    fragments = {name: sql for name, sql in found.items() if name.endswith(_FRAGMENTS)}
    return {name: _fill(sql, fragments) for name, sql in found.items()}


def _fill(sql: str, fragments: dict[str, str]) -> str:
    for name, fragment in fragments.items():
        sql = sql.replace("{" + name + "}", fragment)
    return sql


@dataclass(frozen=True, slots=True)
class Migration:
    """One step of a schema. `oldest_code` is the oldest version that may use what it leaves."""

    version: int
    oldest_code: int
    sql: str


@cache
def migrations(backend: str) -> tuple[Migration, ...]:
    """A backend's numbered steps, in order."""
    folder = files("duetick.stores").joinpath(backend, "migrations")
    names = sorted(entry.name for entry in folder.iterdir() if entry.name.endswith(".sql"))
    return tuple(_migration(int(name[:3]), folder.joinpath(name).read_text()) for name in names)


def _migration(version: int, text: str) -> Migration:
    header, _, sql = text.partition("\n")
    return Migration(version, int(header.removeprefix("-- oldest_code: ")), sql)

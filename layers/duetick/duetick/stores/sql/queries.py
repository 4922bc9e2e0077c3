"""Queries and migrations from the .sql files, by name."""

import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

_STORES: Final = Path(__file__).parents[1]
_MARK: Final = "-- name: "
FRAGMENTS: Final = (
    "_columns",
    "_write",
    "on_page",
    "place_of_another",
    "stands_beside",
    "is_job",
    "is_ended",
    "in_states",
    "skip_locked",
    "given_names",
    "given_identities",
    "within_limits",
    "full_users",
    "full_flows",
    "full_actions",
    "hook_named",
    "apart_users",
    "acting_flows",
    "names_of_rows",
)


def _sections(text: str) -> dict[str, str]:
    """Return the statement below each `-- name:` line."""
    found = {}
    for part in text.split(_MARK)[1:]:
        name, _, sql = part.partition("\n")
        found[name.strip()] = _strip_comments(sql).strip()
    return found


def _strip_comments(sql: str) -> str:
    """Remove the comments: they are for readers of the file, not for the database."""
    lines = sql.splitlines()
    return "\n".join(line for line in lines if not line.lstrip().startswith("--"))


@cache
def load(backend: str) -> dict[str, str]:
    """Load the shared queries; a backend's queries override them. `{name}` inserts a fragment."""
    found: dict[str, str] = {}
    for package in ("sql", backend):
        text = (_STORES / package / "queries.sql").read_text()
        found |= _sections(text)
    fragments = {name: sql for name, sql in found.items() if name.endswith(FRAGMENTS)}
    return {name: _fill(sql, fragments) for name, sql in found.items()}


SHARED: Final = ("now", "usual_lease_ms")
"""The parameters that are the same for all occurrences of a statement about many."""

_PARAMETER: Final = re.compile(r"(?<!:):([a-z_]+)")
_ALONE: Final = "FROM (SELECT 1) AS one"


def _of_many(sql: str) -> str:
    """Return a write of one occurrence as one of many: each row of `given` has the parameters."""

    def name(found: re.Match[str]) -> str:
        return found[0] if found[1] in SHARED else f"given.{found[1]}"

    many = _PARAMETER.sub(name, sql)
    if _ALONE in many:
        return many.replace(_ALONE, "FROM {given_write}")
    return many.replace("\nWHERE", "\nFROM {given_write}\nWHERE", 1)


_RETURNED: Final = {"o.": "", "s.": "schedules."}
_OF_TABLE: Final = re.compile(r"\b[os]\.")


def _returned(sql: str) -> str:
    """Return columns as RETURNING takes them: there, SQLite knows no alias of the table."""
    return _OF_TABLE.sub(lambda found: _RETURNED[found[0]], sql)


FORMS: Final[Mapping[str, Callable[[str], str]]] = {"of many": _of_many, "returned": _returned}
"""The forms of a fragment, each as `{name form}`."""

_INSERTED: Final = re.compile(r"\{(\w+)(?: ([a-z ]+))?\}")


def _fill(sql: str, fragments: dict[str, str]) -> str:
    """Insert the fragments, and the fragments that those name. Most statements have none."""

    def insert(found: re.Match[str]) -> str:
        name, form = found.groups()
        if name not in fragments:
            return found[0]
        whole = _fill(fragments[name], fragments)
        return _fill(FORMS[form](whole), fragments) if form else whole

    return _INSERTED.sub(insert, sql)


class Migration(NamedTuple):
    """One step of a schema. `oldest_code` is the oldest version of code that works after it."""

    version: int
    oldest_code: int
    sql: str


@cache
def migrations(backend: str) -> tuple[Migration, ...]:
    """Load the numbered steps in order: a backend's own, and the steps of all backends."""
    found = [step for package in ("sql", backend) for step in _steps(package)]
    steps = sorted(found, key=lambda step: step.name)
    return tuple(_migration(int(step.name[:3]), step.read_text()) for step in steps)


def _steps(package: str) -> Iterator[Path]:
    return (_STORES / package / "migrations").glob("*.sql")


def _migration(version: int, text: str) -> Migration:
    header, _, sql = text.partition("\n")
    return Migration(version, int(header.removeprefix("-- oldest_code: ")), sql)

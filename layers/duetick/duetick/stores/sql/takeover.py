"""The takeover of a flat schedule index that is older than our schema.

Such an index has five columns: user_id, key, cron, timezone and next_fire_at. Its rows stay. They
fire like rows that `index.upsert` wrote without a flow. Anything else that bears one of our names
raises SchemaBlocked.
"""

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from duetick.core.ids import new_id
from duetick.domain.book import Unreadable
from duetick.domain.errors import EffectsRefused, SchemaBlocked, StoreUnavailable
from duetick.domain.occurrence import poison
from duetick.domain.schedule import IndexRow
from duetick.stores.sql.claim import set_aside
from duetick.stores.sql.queries import Migration
from duetick.stores.sql.session import Row, Session

INDEX: Final = "schedule_index"
INDEX_OF_INDEX: Final = "idx_schedule_index_next_fire_at"
VERSION: Final = "schema_version"
COLUMNS: Final = {
    "user_id": "text", "key": "text", "cron": "text", "timezone": "text", "next_fire_at": "number",
}  # fmt: skip
OF_VERSION: Final = {"version": "number", "oldest_code": "number"}

_MADE: Final = re.compile(
    r"^CREATE (?:UNIQUE )?(?:TABLE|INDEX|FUNCTION) (?:IF NOT EXISTS )?(\w+)", re.MULTILINE
)
_NO_WORD: Final = re.compile(
    r"""'(?:[^']|'')*'|"(?:[^"]|"")*"|`[^`]*`|\[[^\]]*\]|--[^\n]*|/\*.*?\*/""", re.DOTALL
)
"""Parts of a statement that are no words: texts, quoted names and comments."""

_CLAUSE: Final = re.compile(r"\b(?:CHECK|COLLATE(?!\s+BINARY\b)|ON\s+CONFLICT)\b", re.IGNORECASE)
SHOWN: Final = 5

ANEW: Final = (
    "SQLite takes no {kind} off a table: make the table anew without it, and copy the rows."
)
REMEDIES: Final = {
    "row level security": f"ALTER TABLE {INDEX} DISABLE ROW LEVEL SECURITY shows the rows to all "
    "whom a GRANT lets in.",
    "deferrable constraint": "Make a deferrable constraint anew as NOT DEFERRABLE.",
    "child table": "Take a child or parent table away by ALTER TABLE … NO INHERIT.",
    "parent table": "Take a child or parent table away by ALTER TABLE … NO INHERIT.",
    "generated column": "Make a generated column a plain one, which is written.",
    "collation of": "Give the column a deterministic collation.",
    "default of": ANEW.format(kind="default"),
    "clause": ANEW.format(kind="clause"),
}
"""The advice for a thing that can be neither renamed nor dropped, by its kind."""


@dataclass(frozen=True, slots=True)
class Taken:
    """A thing of the database that has one of our names: its name, kind and table."""

    name: str
    kind: str
    table: str

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


@dataclass(frozen=True, slots=True)
class Takeover:
    """A table that is being taken over.

    `rows` counts its rows. `untimed` are those without a fire time: they become unreadable.
    `indexes` has the name and the SQL of each index that must be made again.
    """

    rows: int
    untimed: Sequence[Row] = ()
    indexes: Sequence[Row] = ()

    def finish(self, session: Session) -> None:
        """Put the rows into the new table."""
        session.script_of("take_over_end")
        for row in self.untimed:
            _poison(session, row)
        for name, sql in self.indexes:
            _make_index(session, str(name), str(sql))


def check_version_table(session: Session) -> None:
    """Raise SchemaBlocked if another program's table has the name of our table of versions."""
    for one in _find_names(session, [VERSION]):
        if one.kind != "table" or _columns(session, VERSION) != OF_VERSION:
            raise _describe_blocked(session, [one])


def make_way(session: Session, steps: Iterable[Migration]) -> Takeover | None:
    """Prepare an older index, if there is one. Raise SchemaBlocked, naming all other obstacles."""
    names = [name for step in steps for name in _MADE.findall(step.sql)]
    taken = _find_names(session, names)
    ours = [Taken(INDEX, "table", INDEX), Taken(INDEX_OF_INDEX, "index", INDEX)]
    found = ours[0] in taken and _columns(session, INDEX) == COLUMNS
    in_the_way = [one for one in taken if not found or one not in ours]
    if found:
        in_the_way += _read_taken(session.rows("take_over_bound", {}))
        in_the_way += _clauses(session)
    if in_the_way:
        raise _describe_blocked(session, in_the_way)
    return _take_over(session) if found else None


def _take_over(session: Session) -> Takeover:
    """Lock the table against other writers, check its rows, and set them aside or alter it."""
    session.script_of("take_over_lock")
    _check_rows(session)
    taken_over = Takeover(
        session.rows("take_over_count", {})[0][0],
        session.rows("take_over_untimed", {}),
        session.rows("take_over_indexes", {}),
    )
    try:
        session.script_of("take_over")
        for (statement,) in session.rows("take_over_key", {}):
            session.script(str(statement))
    except StoreUnavailable as problem:
        if type(problem) is not StoreUnavailable:
            raise
        raise SchemaBlocked(
            f"{INDEX} cannot be taken over, and stays as it was: {problem} Drop what depends on "
            "it, migrate, and make that again."
        ) from problem
    return taken_over


def _check_rows(session: Session) -> None:
    """Raise SchemaBlocked if a user or key is no text, or if two rows have the same ones."""
    unnamed = session.rows("take_over_unnamed", {"limit": SHOWN})
    if unnamed:
        shown = "; ".join(f"user_id {user!r}, key {key!r}" for user, key in unnamed)
        raise SchemaBlocked(
            f"Rows of {INDEX} have a user_id or key that is no text, or the same ones as another: "
            f"{shown}. "
            "Delete them, or give them names of their own, then migrate again."
        )


def _poison(session: Session, row: Row) -> None:
    user_id, key, cron, timezone, now = row
    zone = None if timezone is None else str(timezone)
    untimed = IndexRow(str(user_id), str(key), str(cron), zone, now)
    why = "next_fire_at: it was NULL, or no number, as the table was taken over"
    poisoned = replace(poison(untimed, ValueError(why), now), id=new_id())
    session.several([*set_aside([(Unreadable(untimed, why, now), poisoned)])])


def _make_index(session: Session, name: str, sql: str) -> None:
    try:
        session.run(sql, {})
    except EffectsRefused as problem:
        raise SchemaBlocked(
            f"{INDEX} cannot be taken over, and stays as it was: its index {name} cannot be made "
            f"again ({problem}). Drop it, and migrate."
        ) from problem


def _find_names(session: Session, names: Sequence[str]) -> list[Taken]:
    return _read_taken(session.rows("names_taken", {"names": json.dumps(names)}))


def _read_taken(rows: Sequence[Row]) -> list[Taken]:
    return [Taken(*map(str, row)) for row in rows]


def _columns(session: Session, table: str) -> dict[str, str]:
    rows = session.rows("table_columns", {"table": table})
    return {str(name): str(kind) for name, kind in rows}


def _describe(session: Session, one: Taken) -> str:
    columns = ", ".join(f"{name} {kind}" for name, kind in _columns(session, one.name).items())
    return f"{one} ({columns})" if columns else str(one)


def _clauses(session: Session) -> list[Taken]:
    """Return the clauses that the new SQLite table would lose. No pragma lists them."""
    found = [
        " ".join(clause.upper().split())
        for (sql,) in session.rows("take_over_sql", {})
        for clause in _CLAUSE.findall(_NO_WORD.sub(" ", str(sql)))
    ]
    return [Taken(name, "clause", INDEX) for name in dict.fromkeys(found)]


def _describe_blocked(session: Session, found: Sequence[Taken]) -> SchemaBlocked:
    listed = ", ".join(_describe(session, one) for one in found)
    remedies = dict.fromkeys(REMEDIES[one.kind] for one in found if one.kind in REMEDIES)
    return SchemaBlocked(
        f"The schema cannot be made: there is already {listed}. Rename or drop what you "
        "can spare, or give Duetick a place of its own: another file, or on Postgres another "
        f"database, or a user whose search_path begins with a schema for it. Of {INDEX}, a table "
        f"of exactly {', '.join(COLUMNS)} is taken over (texts, and a whole number), if nothing "
        "is bound to it but plain indexes, and unique ones of user_id and key. "
        f"{' '.join(remedies)}".rstrip()
    )

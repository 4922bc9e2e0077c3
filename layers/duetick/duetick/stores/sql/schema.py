"""The schema of a SQL database: its migrations, its check, and the erasure of a user."""

import re
from collections.abc import Iterator, Sequence
from typing import Final

from duetick.domain.standing import prefix_of_user
from duetick.ports import Migrated
from duetick.stores.sql.queries import Migration
from duetick.stores.sql.session import Params, Session, number
from duetick.stores.versions import check_tables, check_version

_MADE: Final = re.compile(r"^CREATE TABLE (?:IF NOT EXISTS )?(\w+)", re.MULTILINE)
_DROPPED: Final = re.compile(r"^DROP TABLE (\w+)", re.MULTILINE)

VERSION_TABLE: Final = """CREATE TABLE IF NOT EXISTS schema_version
(version integer NOT NULL, oldest_code integer NOT NULL)"""

MARKED_SINCE: Final = 2
"""The first version whose code marks that a schedule is done."""

OF_USERS: Final = (
    "schedules", "schedule_index", "unreadable", "marks", "definitions", "occurrences", "events",
    "caller_keys", "creations", "rates", "operations", "inbox", "bells",
)  # fmt: skip
"""The tables that hold data of users."""

OF_NOBODY: Final = ("zones", "notes", "standing_orders", "locks", "workers")
"""The tables that hold data of no user, or of some. The functions write them too."""


def migrate(session: Session, steps: Sequence[Migration]) -> Migrated:
    """Apply the missing steps."""
    from duetick.stores.sql.takeover import check_version_table, make_way

    check_version_table(session)
    session.script(VERSION_TABLE)
    applied, _ = _version(session)
    taken_over = None if applied else make_way(session, steps)
    for step in steps:
        if step.version > applied:
            session.script(step.sql)
            session.rows("schema_version_clear", {})
            version = {"version": step.version, "oldest_code": step.oldest_code}
            session.rows("schema_version_set", version)
    if taken_over:
        taken_over.finish(session)
    return Migrated(taken_over.rows if taken_over else 0, unmarked=0 < applied < MARKED_SINCE)


def check_schema(session: Session, steps: Sequence[Migration]) -> None:
    """Raise SchemaOutdated unless this code can use the schema as it is."""
    version, oldest_code = _version(session)
    there = {str(row[0]) for row in session.rows("tables", {})}
    check_version(steps[-1].version, version, oldest_code)
    check_tables(_tables(steps, version), there)


def erase(session: Session, user_id: str) -> int:
    """Delete all data of a user. Return the number of the user's schedules."""
    params: Params = {"user_id": user_id}
    count = number(session.rows("schedules_of", params))
    for table in OF_USERS:
        session.rows(f"erase_{table}", params)
    first = prefix_of_user(user_id)
    # `$` follows `#`, so that all names that begin with the prefix lie between the two
    session.rows("erase_standing_orders", {"first": first, "end": f"{first[:-1]}$"})
    return count


def _tables(steps: Sequence[Migration], version: int) -> Iterator[str]:
    """Yield the tables that exist after the steps up to a version."""
    done = [step.sql for step in steps if step.version <= version]
    dropped = {name for sql in done for name in _DROPPED.findall(sql)}
    yield from (name for sql in done for name in _MADE.findall(sql) if name not in dropped)


def _version(session: Session) -> tuple[int, int]:
    rows = session.rows("schema_version", {})
    return (rows[0][0], rows[0][1]) if rows else (0, 0)

"""Checks that this code can use the schema of a database."""

from collections.abc import Collection, Iterable
from typing import Final

from duetick.domain.errors import MIGRATE, SchemaOutdated

VERSION_TABLE: Final = "schema_version"
GONE: Final = (
    "Something that a migration made is gone, or was changed: restore the database from a backup. "
    "Only if the schema is older than this code, or was never made, run `duetick migrate`, or "
    "invoke the migrate function, then try again."
)


def unusable(said: str) -> SchemaOutdated:
    """Return the error for a missing table or column.

    The failed query broke its transaction, so the schema's version can no longer be read. The
    advice therefore names both cases: an old schema, and a damaged one.
    """
    advice = MIGRATE if VERSION_TABLE in said else GONE
    return SchemaOutdated(f"No usable schema is there: {said}. {advice}")


def check_version(code: int, version: int, oldest_code: int) -> None:
    """Raise SchemaOutdated unless code of version `code` can use a schema of version `version`."""
    if version < code:
        raise SchemaOutdated(
            f"The schema is at version {version}, this code needs {code}. {MIGRATE}"
        )
    if oldest_code > code:
        raise SchemaOutdated(
            f"The schema is at version {version} and serves code from version {oldest_code} "
            f"on; this code is of version {code}. Deploy a newer release."
        )


def check_tables(made: Iterable[str], there: Collection[str]) -> None:
    """Raise SchemaOutdated if a table that a migration made is gone: no migration runs twice."""
    gone = [table for table in made if table not in there]
    if gone:
        raise SchemaOutdated(
            f"Tables of the schema are gone: {', '.join(gone)}. Restore the database from a "
            "backup. To begin with an empty one, drop the tables that are left, `schema_version` "
            "too, then run `duetick migrate`, or invoke the migrate function."
        )

"""I-10: SQLite's tables are taken over by a copy, so the parts that a copy would lose are named."""

import re
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from duetick.domain.errors import SchemaBlocked
from duetick.stores import open_store
from duetick.stores.sqlite.database import SqliteDatabase

from tests.integration.theirs import LOOSE, PUT, REFERS, Database, refusal


@pytest.mark.parametrize(
    ("columns", "says"),
    [
        ("next_fire_at integer REFERENCES due", "foreign key to due"),
        ("next_fire_at integer, c text AS (cron)", "table schedule_index .*c text"),
        ("next_fire_at integer AS (9)", "generated column next_fire_at"),
        ("next_fire_at integer DEFAULT 0", "default of next_fire_at.* make the table anew"),
        ("next_fire_at integer, CHECK (next_fire_at > 0)", "clause CHECK.* make the table anew"),
        ("next_fire_at integer, PRIMARY KEY (user_id COLLATE nocase, key)", "clause COLLATE"),
        ("next_fire_at integer, UNIQUE (user_id, key) ON  conflict IGNORE", "clause ON CONFLICT"),
    ],
)
def test_i10_on_sqlite_what_a_copy_would_lose_is_named(
    tmp_path: Path, columns: str, says: str
) -> None:
    theirs = Database("sqlite", f"sqlite:///{tmp_path}/theirs.db")
    made = (
        f"CREATE TABLE schedule_index (user_id text, key text, cron text, timezone text, {columns})"
    )
    theirs.run(made)
    assert re.search(says, refusal(theirs))


def test_i10_on_sqlite_a_default_of_the_zone_is_named(tmp_path: Path) -> None:
    theirs = Database("sqlite", f"sqlite:///{tmp_path}/theirs.db")
    theirs.run(LOOSE.replace("timezone varchar(40)", "timezone text DEFAULT 'Europe/Berlin'"))
    assert "default of timezone" in refusal(theirs)


def test_i10_on_sqlite_what_says_nothing_is_taken_over(tmp_path: Path) -> None:
    """These are words in texts and comments, a default that is none, and clauses that say the
    usual.
    """
    theirs = Database("sqlite", f"sqlite:///{tmp_path}/theirs.db")
    theirs.run(
        "CREATE TABLE [schedule_index] (user_id text COLLATE BINARY, key text, -- CHECK\n"
        "cron text, timezone text DEFAULT '', next_fire_at integer DEFAULT NULL, /* COLLATE any */ "
        'CONSTRAINT "ON CONFLICT" UNIQUE (user_id, key))'
    )
    theirs.migrated().close()


@pytest.mark.parametrize("rule", ["ON DELETE CASCADE", "", "DEFERRABLE INITIALLY DEFERRED"])
def test_i10_on_sqlite_a_foreign_key_of_another_table_is_named(tmp_path: Path, rule: str) -> None:
    """With foreign keys on, the copy would take the other table's rows along, or fail."""
    file = tmp_path / "theirs.db"
    theirs = Database("sqlite", f"sqlite:///{file}")
    theirs.theirs()
    theirs.run(REFERS.format("Schedule_Index (user_id, key)", rule))
    theirs.run("INSERT INTO note VALUES ('ann', 'digest')")
    with closing(open_store(with_foreign_keys(file))) as store:
        with pytest.raises(SchemaBlocked, match="foreign key of note"):
            store.migrate()
        theirs.run("DELETE FROM note; DROP TABLE note")
        assert store.migrate() == 1


def with_foreign_keys(file: Path) -> Callable[[], sqlite3.Connection]:
    """Return a factory of a caller that lets SQLite keep foreign keys."""

    def connected() -> sqlite3.Connection:
        made = sqlite3.connect(file, check_same_thread=False)
        made.execute("PRAGMA foreign_keys = ON")
        return made

    return connected


@pytest.mark.parametrize("rule", ["", "DEFERRABLE INITIALLY DEFERRED"])
def test_i10_on_sqlite_a_constraint_that_a_migration_breaks_is_told(
    tmp_path: Path, rule: str
) -> None:
    theirs = Database("sqlite", f"sqlite:///{tmp_path}/theirs.db")
    theirs.theirs()
    theirs.run(REFERS.format("schedule_index", rule))
    database = SqliteDatabase(with_foreign_keys(tmp_path / "theirs.db"))
    with (
        pytest.raises(SchemaBlocked, match="FOREIGN KEY constraint failed"),
        database.migration() as session,
    ):
        session.script("INSERT INTO note VALUES ('eve', 'none')")
    with database.transaction() as session:
        assert session.run("SELECT count(*) FROM note", {}) == [(0,)]
    database.close()


@pytest.mark.parametrize(
    ("row", "says"),
    [
        ("(x'616e6e', 'k', '@daily', NULL, 0)", "user_id \"X'616E6E'\", key 'k'"),
        ("('ann', x'6b', '@daily', NULL, 0)", "user_id 'ann', key \"X'6B'\""),
    ],
)
def test_i10_on_sqlite_a_name_that_is_no_text_is_named(tmp_path: Path, row: str, says: str) -> None:
    theirs = Database("sqlite", f"sqlite:///{tmp_path}/theirs.db")
    theirs.run(LOOSE)
    theirs.run(PUT.format(row))
    assert says in refusal(theirs)

"""A schedule index of another's, as migrate finds it."""

import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest
from duetick.core.store import Store
from duetick.domain.errors import SchemaBlocked
from duetick.stores import open_store

from tests.integration.local_product import NINE
from tests.lab.postgres import connect

THEIRS = {
    "postgres": """CREATE TABLE IF NOT EXISTS schedule_index (
        user_id text NOT NULL, key text NOT NULL, cron text NOT NULL, timezone text,
        next_fire_at bigint NOT NULL, PRIMARY KEY (user_id, key));
        CREATE INDEX IF NOT EXISTS idx_schedule_index_next_fire_at
        ON schedule_index (next_fire_at)""",
    "sqlite": """CREATE TABLE IF NOT EXISTS schedule_index (
        user_id TEXT NOT NULL, key TEXT NOT NULL, cron TEXT NOT NULL, timezone TEXT,
        next_fire_at INTEGER NOT NULL, PRIMARY KEY (user_id, key)) WITHOUT ROWID;
        CREATE INDEX IF NOT EXISTS idx_schedule_index_next_fire_at
        ON schedule_index (next_fire_at)""",
}
"""As the source document has it."""

LOOSE = """CREATE TABLE schedule_index (next_fire_at integer, cron varchar(80), "key" varchar(64),
    user_id varchar(64), timezone varchar(40));
    CREATE INDEX due ON schedule_index (next_fire_at);
    CREATE INDEX idx_schedule_index_next_fire_at ON schedule_index (cron)"""
"""The same five without a key or a NOT NULL, in another order, with other indexes."""

PUT = "INSERT INTO schedule_index (user_id, key, cron, timezone, next_fire_at) VALUES {}"
DUE = PUT.format(f"('ann', 'digest', '0 9 * * *', NULL, {NINE})")
LATER = NINE + 86_400_000
REFERS = "CREATE TABLE note (u text, k text, CONSTRAINT of_row FOREIGN KEY (u, k) REFERENCES {} {})"
"""Another table of theirs."""


@dataclass(frozen=True, slots=True)
class Database:
    """One that another application had before us."""

    kind: str
    address: str

    def run(self, statements: str) -> list[tuple[object, ...]]:
        """Run statements as that application. Return the rows of a single statement."""
        if self.kind == "postgres":
            with connect(self.address) as connection:
                return [tuple(row) for row in connection.run(statements) or ()]
        with closing(sqlite3.connect(self.address.removeprefix("sqlite:///"))) as file:
            if ";" in statements:
                file.executescript(statements)
                return []
            rows = file.execute(statements).fetchall()
            file.commit()
            return rows

    def theirs(self) -> None:
        """Make the source document's own table, with a row that is due at nine."""
        self.run(THEIRS[self.kind])
        self.run(DUE)

    def opened(self) -> Store:
        return open_store(self.address, clock=lambda: NINE)

    def migrated(self) -> Store:
        store = self.opened()
        store.migrate()
        return store


def at(request: pytest.FixtureRequest, folder: Path) -> Database:
    """Return an empty table of the kind that a fixture asks for."""
    if request.param == "sqlite":
        return Database("sqlite", f"sqlite:///{folder}/theirs.db")
    return Database("postgres", str(request.getfixturevalue("postgres_url")))


def refusal(database: Database) -> str:
    """Return migrate's error for the table. Its rows stay as they were."""
    before = database.run("SELECT * FROM schedule_index")
    with closing(database.opened()) as store, pytest.raises(SchemaBlocked) as told:
        store.migrate()
    assert database.run("SELECT * FROM schedule_index") == before
    return str(told.value)

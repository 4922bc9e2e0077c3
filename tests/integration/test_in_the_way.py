"""I-10: migrate names a table that it cannot take over, says what to do, and leaves the table as it
is.
"""

import re
from contextlib import closing
from pathlib import Path

import pytest
from duetick.domain.errors import SchemaBlocked

from tests.integration.theirs import LOOSE, PUT, REFERS, THEIRS, Database, at, refusal


@pytest.fixture(params=["sqlite", "postgres"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Database:
    return at(request, tmp_path)


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        ("('ann', NULL, '@daily', NULL, 0)", "user_id 'ann', key None"),
        ("(NULL, 'k', '@daily', NULL, 0)", "user_id None, key 'k'"),
        ("('ann', 'k', '@daily', NULL, 0), ('ann', 'k', '@hourly', NULL, 0)", "same ones"),
    ],
)
def test_i10_rows_that_no_key_can_hold_are_named_and_nothing_is_changed(
    database: Database, rows: str, says: str
) -> None:
    database.run(LOOSE)
    database.run(PUT.format(rows))
    before = database.run("SELECT * FROM schedule_index")
    with closing(database.opened()) as store, pytest.raises(SchemaBlocked, match=says):
        store.migrate()
    assert database.run("SELECT * FROM schedule_index") == before
    database.run("DELETE FROM schedule_index")
    database.migrated().close()


IN_THE_WAY = [
    ("CREATE TABLE schedule_index (id integer, cron text)", "table schedule_index .*cron text"),
    ("CREATE TABLE occurrences (id integer)", r"table occurrences \(id number\)"),
    ("CREATE TABLE one (id integer); CREATE VIEW schedules AS SELECT id FROM one", "view schedule"),
    ("CREATE TABLE a (b text); CREATE INDEX idx_events_occurrence ON a (b)", "index idx_events_o"),
    ("CREATE TABLE schema_version (installed_rank integer)", "table schema_version .*installed"),
    (f"{THEIRS['sqlite'].replace(' WITHOUT ROWID', '')}; CREATE TABLE events (id text)", "events"),
]


@pytest.mark.parametrize(("there", "says"), IN_THE_WAY)
def test_i10_anything_else_in_the_way_is_named_with_what_to_do(
    database: Database, there: str, says: str
) -> None:
    database.run(there)
    with closing(database.opened()) as store, pytest.raises(SchemaBlocked, match=says) as told:
        store.migrate()
    assert "Rename or drop" in str(told.value)


@pytest.mark.parametrize(
    ("there", "says"),
    [
        (
            "CREATE FUNCTION rows_expected() RETURNS integer LANGUAGE sql AS 'SELECT 1'",
            "function rows_expected",
        ),
        ("CREATE TYPE events AS ENUM ('a')", "type events"),
        (
            "CREATE TABLE schedule_index (user_id text, key text, cron text, timezone text, "
            "next_fire_at timestamptz)",
            "next_fire_at timestamp with time zone",
        ),
    ],
)
def test_i10_on_postgres_a_function_or_a_type_is_named_too(
    postgres_url: str, there: str, says: str
) -> None:
    theirs = Database("postgres", postgres_url)
    theirs.run(there)
    with closing(theirs.opened()) as store, pytest.raises(SchemaBlocked, match=says):
        store.migrate()


def test_i10_on_postgres_a_view_of_the_table_is_told_of(postgres_url: str) -> None:
    theirs = Database("postgres", postgres_url)
    theirs.theirs()
    theirs.run("CREATE VIEW due AS SELECT user_id, key FROM schedule_index")
    with closing(theirs.opened()) as store, pytest.raises(SchemaBlocked, match=r"view.* Drop what"):
        store.migrate()
    theirs.run("DROP VIEW due")
    theirs.migrated().close()


TRIGGER = {
    "sqlite": "CREATE TRIGGER noted AFTER INSERT ON schedule_index BEGIN SELECT 1; END; SELECT 1",
    "postgres": """CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql
        AS 'BEGIN NEW.cron = 1; RETURN NEW; END'; CREATE TRIGGER noted
        BEFORE UPDATE ON schedule_index FOR EACH ROW EXECUTE FUNCTION note()""",
}


def test_i10_a_trigger_of_the_table_is_named(database: Database) -> None:
    database.theirs()
    database.run(TRIGGER[database.kind])
    assert "there is already trigger noted. Rename or drop" in refusal(database)
    database.run(
        "DROP TRIGGER noted"
        if database.kind == "sqlite"
        else "DROP TRIGGER noted ON schedule_index; DROP FUNCTION note()"
    )
    database.migrated().close()


def test_i10_a_trigger_that_is_made_later_is_in_nobodys_way(database: Database) -> None:
    database.migrated().close()
    database.run(TRIGGER[database.kind])
    database.migrated().close()


@pytest.mark.parametrize("columns", ["next_fire_at", "key", "user_id, key, cron", "lower(cron)"])
def test_i10_a_unique_index_that_no_claim_and_no_put_knows_is_named(
    database: Database, columns: str
) -> None:
    database.theirs()
    database.run(f"CREATE UNIQUE INDEX only_one ON schedule_index ({columns})")
    assert "unique index only_one" in refusal(database)


def test_i10_a_unique_index_of_user_and_key_is_kept(database: Database) -> None:
    database.run(LOOSE)
    database.run("CREATE UNIQUE INDEX only_one ON schedule_index (user_id, key)")
    database.migrated().close()


BOUND_ON_POSTGRES = [
    ("CREATE RULE kept AS ON DELETE TO schedule_index DO INSTEAD NOTHING", "rule kept"),
    ("CREATE POLICY own ON schedule_index USING (true)", "policy own"),
    ("ALTER TABLE schedule_index ENABLE ROW LEVEL SECURITY", "row level security of .* DISABLE"),
    (REFERS.format("schedule_index", ""), "foreign key of_row"),
    (
        "CREATE TABLE users (id text PRIMARY KEY); INSERT INTO users VALUES ('ann'); "
        "ALTER TABLE schedule_index ADD CONSTRAINT of_user FOREIGN KEY (user_id) REFERENCES users",
        "foreign key of_user",
    ),
    ("CREATE TABLE kid () INHERITS (schedule_index)", "child table kid .*NO INHERIT"),
    (
        "CREATE TABLE kin (cron text NOT NULL); ALTER TABLE schedule_index INHERIT kin",
        "parent table kin .*NO INHERIT",
    ),
    (
        "ALTER TABLE schedule_index DROP next_fire_at, "
        "ADD next_fire_at bigint GENERATED ALWAYS AS IDENTITY",
        "generated column next_fire_at.* plain one",
    ),
    (
        "ALTER TABLE schedule_index DROP timezone, "
        "ADD timezone text GENERATED ALWAYS AS (NULL::text) STORED",
        "generated column timezone",
    ),
    (
        "ALTER TABLE schedule_index ADD CONSTRAINT twice UNIQUE (user_id, key) DEFERRABLE",
        "deferrable constraint twice.* NOT DEFERRABLE",
    ),
    (
        "ALTER TABLE schedule_index DROP CONSTRAINT schedule_index_pkey, "
        "ADD CONSTRAINT late PRIMARY KEY (user_id, key) DEFERRABLE INITIALLY DEFERRED",
        "deferrable constraint late",
    ),
    (
        "ALTER TABLE schedule_index ADD CONSTRAINT apart EXCLUDE (next_fire_at WITH =)",
        "exclusion constraint apart",
    ),
    (
        "ALTER TABLE schedule_index ADD CONSTRAINT soon CHECK (next_fire_at < 9000000000000)",
        "check constraint soon",
    ),
    (
        # As ICU's may be, which not every build has.
        'CREATE COLLATION blind FROM "C"; SET allow_system_table_mods = on; '
        "ALTER TABLE schedule_index ALTER user_id TYPE text COLLATE blind; "
        "UPDATE pg_collation SET collisdeterministic = false WHERE collname = 'blind'",
        "collation of user_id.* deterministic",
    ),
]


@pytest.mark.parametrize(("bound", "says"), BOUND_ON_POSTGRES)
def test_i10_on_postgres_what_could_stop_a_claim_is_named(
    postgres_url: str, bound: str, says: str
) -> None:
    theirs = Database("postgres", postgres_url)
    theirs.theirs()
    theirs.run(bound)
    assert re.search(says, refusal(theirs), re.DOTALL)


def test_i10_an_index_of_theirs_with_a_name_of_ours_is_named(database: Database) -> None:
    database.theirs()
    database.run("CREATE INDEX idx_events_occurrence ON schedule_index (cron)")
    assert "index idx_events_occurrence" in refusal(database)


def test_i10_another_schemas_table_is_not_in_the_way(postgres_url: str) -> None:
    theirs = Database("postgres", postgres_url)
    theirs.run("CREATE SCHEMA other; CREATE TABLE other.occurrences (id integer)")
    theirs.migrated().close()

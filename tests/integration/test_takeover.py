"""I-09, I-10: migrate takes over a schedule index of five columns, and its rows fire."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from duetick import Context, Flow
from duetick.cli.main import main
from duetick.core.declarations import Transactional
from duetick.core.deployment import deploy
from duetick.core.flows import Flows
from duetick.domain.errors import ConfigurationError, NotPermitted, SchemaBlocked, SchemaOutdated
from duetick.domain.expression import next_fire
from duetick.domain.schedule import IndexRow, Schedule
from duetick.domain.states import Reason, State
from duetick.stores import open_store
from duetick.testing import FakeClock, Stage
from duetick.testing.conformance.concurrency import race

from tests.integration.local_product import NINE, Clock, product
from tests.integration.theirs import DUE, LATER, LOOSE, PUT, THEIRS, Database, at
from tests.lab.postgres import connect


@pytest.fixture(params=["sqlite", "postgres"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Database:
    return at(request, tmp_path)


def mail(ran: list[Context]) -> Flow:
    """Return a flow with one action, which notes its contexts."""
    flow = Flow("mail")
    flow.action("send")(lambda _given, ctx: ran.append(ctx))
    return flow


def fired(database: Database, flow: Flow, row_flow: str = "") -> list[tuple[State, Reason | None]]:
    """Return the end of ann's row, by a stage that migrates and ticks at nine."""
    with Stage(flow, clock=FakeClock(NINE), store=database.address, row_flow=row_flow) as stage:
        assert stage.tick().delivered == 1
        found = stage.store.ledger.find("ann", "digest")
        assert stage.store.index.get("ann", "digest") == IndexRow(
            "ann", "digest", "0 9 * * *", None, LATER
        )
        return [(one.state, one.reason) for one in found]


def test_i09_rows_of_a_table_that_was_there_fire_through_a_custom_resolver(
    database: Database,
) -> None:
    ran: list[Context] = []
    flow = mail(ran)

    @flow.resolver
    def find(schedule_id: str, _ctx: object) -> Schedule:
        user_id, _, key = schedule_id.partition("/")
        return Schedule(user_id, key, "0 9 * * *", "mail", "send", input={"from": "their table"})

    database.theirs()
    assert fired(database, flow) == [(State.SUCCEEDED, Reason.FIRED)]
    assert [ctx.principal.user_id for ctx in ran] == ["ann"]


def test_i09_rows_of_a_table_that_was_there_fire_as_the_action_that_is_set(
    database: Database,
) -> None:
    ran: list[Context] = []
    database.theirs()
    assert fired(database, mail(ran), "mail/send") == [(State.SUCCEEDED, Reason.FIRED)]
    assert [ctx.schedule_id for ctx in ran] == ["ann/digest"]


def test_i10_a_table_that_was_there_is_left_alone_until_it_is_migrated(database: Database) -> None:
    database.theirs()
    with closing(database.opened()) as store, pytest.raises(SchemaOutdated, match="migrate"):
        store.index.claim_due(NINE)
    assert database.run("SELECT count(*) FROM schedule_index") == [(1,)]


def test_i09_who_writes_five_columns_goes_on_writing_them(database: Database) -> None:
    database.theirs()
    with closing(database.migrated()) as store:
        database.run(
            PUT.format(f"('bob', 'k', '@daily', NULL, {NINE})")
            + " ON CONFLICT (user_id, key) DO UPDATE SET cron = excluded.cron"
        )
        database.run(f"{DUE} ON CONFLICT (user_id, key) DO UPDATE SET cron = '0 9 * * 1'")
        claimed = {one.user_id: one.cron for one in store.index.claim_due(NINE)}
    assert claimed == {"ann": "0 9 * * 1", "bob": "@daily"}


@pytest.mark.parametrize("table", ["theirs", "loose"])
def test_i09_what_was_taken_over_is_the_table_that_migrate_makes(
    database: Database, table: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    database.run(THEIRS[database.kind] if table == "theirs" else LOOSE)
    database.migrated().close()
    taken_over = catalog(database)
    if database.kind == "postgres":
        database.run("DROP SCHEMA public CASCADE; CREATE SCHEMA public")
        made = database
    else:
        made = Database("sqlite", f"sqlite:///{tmp_path}/made.db")
    made.migrated().close()
    assert catalog(made) <= taken_over
    assert {str(each[:2]) for each in taken_over - catalog(made)} <= {"('index', 'due')"}


def catalog(database: Database) -> set[tuple[object, ...]]:
    """Columns, indexes and settings of the table, however it came to be."""
    if database.kind == "sqlite":
        (made,) = database.run("SELECT sql FROM sqlite_master WHERE name = 'schedule_index'")
        indexes = database.run(
            "SELECT 'index', name, sql FROM sqlite_master WHERE tbl_name = 'schedule_index'"
        )
        return {made, *indexes}
    columns = database.run(
        "SELECT a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull, a.attcollation, "
        "pg_get_expr(d.adbin, d.adrelid) FROM pg_attribute a "
        "LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum "
        "WHERE a.attrelid = 'schedule_index'::regclass AND a.attnum > 0"
    )
    indexes = database.run(
        "SELECT 'index', indexname, CASE WHEN indexname LIKE 'idx%' OR indexname LIKE '%pkey' "
        "THEN indexdef END FROM pg_indexes WHERE tablename = 'schedule_index'"
    )
    kept = [row[:2] if row[2] is None else row for row in indexes]
    options = database.run("SELECT reloptions::text FROM pg_class WHERE relname = 'schedule_index'")
    return {*columns, *kept, *options}


def test_i13_rows_that_cannot_be_read_are_poisoned_and_delay_none(database: Database) -> None:
    bad = [
        ("null cron", "NULL", "NULL", NINE - 3),
        ("bad cron", "'whenever'", "NULL", NINE - 2),
        ("six fields", "'0 0 9 * * *'", "NULL", NINE - 2),
        ("bad zone", "'0 9 * * *'", "'Mars/Olympus'", NINE - 1),
        ("no time", "'0 9 * * *'", "NULL", "NULL"),
    ]
    database.run(LOOSE.replace(" integer,", " bigint,", 1))
    database.run(DUE.replace("NULL", "''"))
    for key, cron, zone, due in bad:
        database.run(PUT.format(f"('bob', '{key}', {cron}, {zone}, {due})"))
    with closing(database.migrated()) as store:
        (good,) = store.index.claim_due(NINE, limit=1)
        assert (good.user_id, good.timezone) == ("ann", None)
        assert not store.index.claim_due(NINE)
        assert {one.key for one in store.index.unreadable()} == {key for key, *_ in bad}
        dead = store.ledger.find("bob", state=State.DEAD)
        assert {(one.key, one.reason) for one in dead} == {
            (key, Reason.POISONED) for key, *_ in bad
        }
        assert all(one.id for one in dead)
        (taken_over_at,) = (o.nominal_at for o in store.index.unreadable() if o.key == "no time")
        assert store.index.restore("bob", "no time", now=NINE)
        due = next_fire("0 9 * * *", None, taken_over_at)
        assert store.index.get("bob", "no time") == IndexRow(
            "bob", "no time", "0 9 * * *", None, due or 0
        )


def test_i10_their_other_indexes_are_kept(database: Database) -> None:
    database.theirs()
    database.run("CREATE INDEX by_cron ON schedule_index (cron) WHERE cron <> ';'")
    database.migrated().close()
    (kept,) = database.run(
        "SELECT sql FROM sqlite_master WHERE name = 'by_cron'"
        if database.kind == "sqlite"
        else "SELECT indexdef FROM pg_indexes WHERE indexname = 'by_cron'"
    )
    assert "(cron) WHERE" in str(kept[0])


def test_i10_an_index_that_cannot_be_made_again_is_named(tmp_path: Path) -> None:
    theirs = Database("sqlite", f"sqlite:///{tmp_path}/theirs.db")
    theirs.theirs()
    with closing(sqlite3.connect(f"{tmp_path}/theirs.db")) as file:
        file.create_collation("THEIRS", lambda one, other: (one > other) - (one < other))
        file.execute("CREATE INDEX by_cron ON schedule_index (cron COLLATE THEIRS)")
    with closing(theirs.opened()) as store, pytest.raises(SchemaBlocked, match="index by_cron"):
        store.migrate()


def test_i10_migrate_says_how_many_rows_it_took_over(database: Database) -> None:
    database.theirs()
    database.run(PUT.format(f"('bob', 'k', 'whenever', NULL, {NINE})"))
    with closing(database.opened()) as store:
        assert [store.migrate(), store.migrate()] == [2, 0]


@pytest.mark.parametrize(
    ("row_flow", "says"), [("", "They have no home yet."), ("mail/send", "They go to mail/send.")]
)
def test_i10_a_deploy_says_where_the_rows_go(tmp_path: Path, row_flow: str, says: str) -> None:
    theirs = Database("sqlite", f"sqlite:///{tmp_path}/theirs.db")
    theirs.theirs()
    with closing(theirs.opened()) as store:
        flows = Flows({"mail": mail([])}, row_flow)
        told = str(deploy(store, lambda: flows)["rows"])
        assert told.startswith(f"Rows of schedule_index that were taken over: 1. {says}")
        assert "rows" not in deploy(store, lambda: flows)


@pytest.mark.parametrize(
    ("row_flow", "speaks", "says"), [("mail", False, "it has none"), ("", "dynamodb", "speaks")]
)
def test_i10_a_deploy_that_is_refused_takes_nothing_over(
    database: Database, row_flow: str, speaks: Transactional, says: str
) -> None:
    """The settings and the flows are checked before the database is changed."""
    database.theirs()
    flow = mail([])
    flow.action("pay", transactional=speaks)(lambda _given, _ctx: None)
    with closing(database.opened()) as store, pytest.raises(ConfigurationError, match=says):
        deploy(store, lambda: Flows({"mail": flow}, row_flow))
    assert [len(row) for row in database.run("SELECT * FROM schedule_index")] == [5]


def test_i10_a_local_stack_that_is_refused_takes_nothing_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    theirs = Database("sqlite", f"sqlite:///{tmp_path}/theirs.db")
    theirs.theirs()
    monkeypatch.setenv("DUETICK_ROW_FLOW", "nobodys")
    with (
        pytest.raises(ConfigurationError, match="names the flow 'nobodys'"),
        product(theirs.address, Clock(NINE), monkeypatch),
    ):
        pass
    assert [len(row) for row in theirs.run("SELECT * FROM schedule_index")] == [5]


def test_i10_the_command_says_how_many_rows_it_took_over(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    theirs = Database("sqlite", f"sqlite:///{tmp_path}/theirs.db")
    theirs.theirs()
    assert main(["migrate", "--store", theirs.address]) == 0
    assert "that were taken over: 1. They go to" in capsys.readouterr().out


def test_j01_two_that_migrate_at_once_take_it_over_once(database: Database) -> None:
    database.theirs()
    stores = [database.opened() for _ in range(4)]
    race([store.migrate for store in stores])
    for store in stores:
        store.check_schema()
        store.migrate()
        store.close()
    with closing(database.opened()) as store:
        assert [one.key for one in store.index.claim_due(NINE)] == ["digest"]


def test_i10_a_table_of_another_owner_is_left_to_them(postgres_url: str) -> None:
    theirs = Database("postgres", postgres_url)
    theirs.theirs()
    theirs.run("CREATE ROLE nobody_special; GRANT CREATE ON SCHEMA public TO nobody_special")

    def as_another() -> object:
        made = connect(postgres_url)
        made.run("SET SESSION AUTHORIZATION nobody_special")
        return made

    with (
        closing(open_store(as_another)) as store,
        pytest.raises(NotPermitted, match="schedule_index"),
    ):
        store.migrate()
    theirs.run("DROP OWNED BY nobody_special; DROP ROLE nobody_special")
    assert theirs.run("SELECT count(*) FROM schedule_index") == [(1,)]


def test_i10_rows_that_no_crash_may_take_are_logged_from_then_on(postgres_url: str) -> None:
    theirs = Database("postgres", postgres_url)
    theirs.run(LOOSE.replace("TABLE", "UNLOGGED TABLE", 1))
    theirs.migrated().close()
    kinds = theirs.run(
        "SELECT relpersistence FROM pg_class WHERE relname ~ 'schedule_index|^due$' AND relkind "
        "IN ('r', 'i')"
    )
    assert set(kinds) == {("p",)}


def test_i10_who_may_use_the_table_still_may(postgres_url: str) -> None:
    theirs = Database("postgres", postgres_url)
    theirs.theirs()
    theirs.run("CREATE ROLE their_app; GRANT INSERT ON schedule_index TO their_app")
    theirs.migrated().close()
    asked = "SELECT has_table_privilege('their_app', 'schedule_index', 'INSERT')"
    held = theirs.run(asked)
    theirs.run("DROP OWNED BY their_app; DROP ROLE their_app")
    assert held == [(True,)]

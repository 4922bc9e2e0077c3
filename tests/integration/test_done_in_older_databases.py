"""L-01 in a database of an older release: a schedule that fired long ago is done after the
migration.
"""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest
from duetick.core.purge import purge
from duetick.core.store import Store
from duetick.domain.attempts import SUCCEEDED
from duetick.domain.ending import KEPT_DONE_MS, KEPT_GONE_MS
from duetick.domain.errors import QuotaReached
from duetick.domain.pausing import pause
from duetick.domain.policies import Policies
from duetick.stores import open_store
from duetick.stores.dynamodb.schema import SCHEMA_KEY
from duetick.stores.dynamodb.table import key_attributes
from duetick.testing.conformance.done import AT_NOON
from duetick.testing.conformance.samples import DAY, EACH_MINUTE, NOON, SOON, schedule
from duetick.testing.conformance.suite import drain, must, only, start

from tests.lab.dynamodb import DynamoDB, table_name
from tests.lab.postgres import connect

SLOW: Final = pytest.mark.slow

BEFORE: Final = (
    "DROP TABLE bells",
    "ALTER TABLE occurrences DROP COLUMN body",
    "DROP TABLE inbox",
    "ALTER TABLE occurrences DROP COLUMN death",
    "DROP INDEX idx_occurrences_id",
    "ALTER TABLE definitions DROP COLUMN flow",
    "DROP TABLE operations",
    "DROP TABLE standing_orders",
    "DROP TABLE locks",
    "DROP TABLE workers",
    "DROP INDEX idx_rates_minute",
    "DROP INDEX idx_occurrences_ended",
    "DROP INDEX idx_occurrences_kept",
    "ALTER TABLE occurrences DROP COLUMN kept_until",
    "ALTER TABLE schedules DROP COLUMN last_run_at",
    """CREATE INDEX idx_occurrences_begun
    ON occurrences (user_id, key, begun_at) WHERE begun_at IS NOT NULL""",
    "DROP TABLE zones",
    "DROP TABLE notes",
    "ALTER TABLE definitions DROP COLUMN standing",
    "ALTER TABLE definitions DROP COLUMN paused_until",
    "ALTER TABLE definitions DROP COLUMN zone",
    "DROP INDEX idx_occurrences_place",
    "ALTER TABLE occurrences DROP COLUMN place",
    """CREATE UNIQUE INDEX idx_occurrences_alone ON occurrences (user_id, key)
    WHERE exclusive = 1 AND (state = 'processing' OR (state = 'queued' AND attempts > 0))""",
    """CREATE INDEX idx_occurrences_beside ON occurrences (user_id, key)
    WHERE (exclusive = 0 AND (state = 'processing' OR (state = 'queued' AND attempts > 0)))
        OR state = 'retrying'""",
    "DROP INDEX idx_schedules_counted",
    "DROP INDEX idx_schedules_purge_at",
    "DROP INDEX idx_definitions_kept_until",
    "DROP INDEX idx_creations_kept_until",
    "DROP INDEX idx_marks_mark",
    "ALTER TABLE schedules DROP COLUMN done_at",
    "ALTER TABLE schedules DROP COLUMN purge_at",
    "ALTER TABLE definitions DROP COLUMN kept_until",
    "UPDATE schema_version SET version = 1",
)
"""The statements that take back the steps of the schema after the first."""


@dataclass
class Database:
    """A database, and the way back to the schema and the data of the release before."""

    url: str
    age: Callable[[], None]

    def open(self) -> Store:
        return open_store(self.url, clock=lambda: NOON + DAY)


def aged_sqlite(folder: Path) -> Database:
    path = folder / "old.db"

    def age() -> None:
        with closing(sqlite3.connect(path)) as admin:
            for statement in BEFORE:
                admin.execute(statement)
            admin.commit()

    return Database(f"sqlite:///{path}", age)


def aged_postgres(url: str) -> Database:
    def age() -> None:
        with connect(url) as admin:
            for statement in BEFORE:
                admin.run(statement)

    return Database(url, age)


def aged_dynamodb(server: DynamoDB) -> Database:
    table = table_name()

    def age() -> None:
        client, records = server.client(), 0
        for item in client.scan(TableName=table)["Items"]:
            records += "v" in item
            if "dn" in item:
                del item["dn"], item["lat"]
                client.put_item(TableName=table, Item=item)
        of_ada = {"p": {"S": "C#ada"}, "s": {"S": "C"}}
        client.put_item(TableName=table, Item=of_ada | {"n": {"N": str(records)}})
        schema = must(client.get_item(TableName=table, Key=key_attributes(SCHEMA_KEY)).get("Item"))
        client.put_item(TableName=table, Item=schema | {"version": {"N": "1"}})

    return Database(server.table_url(table), age)


@pytest.fixture(
    params=[
        "sqlite",
        pytest.param("postgres", marks=SLOW),
        pytest.param("dynamodb", marks=SLOW),
        pytest.param("moto", marks=SLOW),
    ]
)
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Database:
    """Return a database of the release before.

    In it one schedule fired, one is used up, one is paused, one fires on, and one has lost its row.
    """
    if request.param == "sqlite":
        made = aged_sqlite(tmp_path)
    elif request.param == "postgres":
        made = aged_postgres(request.getfixturevalue("postgres_url"))
    else:
        name = "dynamodb_local" if request.param == "dynamodb" else "moto"
        made = aged_dynamodb(request.getfixturevalue(name))
    with closing(made.open()) as store:
        store.migrate()
        fill(store)
    made.age()
    return made


def fill(store: Store) -> None:
    once = schedule("once", cron=AT_NOON)
    store.schedules.put(once, now=NOON - 1)
    limited = schedule("limited", cron=EACH_MINUTE, policies=Policies(max_runs=1))
    store.schedules.put(limited, now=NOON - 1)
    for one in drain(store, SOON):
        store.ledger.settle(start(store, one, SOON), SUCCEEDED, now=SOON)
    store.schedules.put(pause(schedule("paused"), "", None, SOON), now=SOON)
    store.schedules.put(schedule("daily"), now=SOON)
    store.schedules.put(schedule("lost"), now=SOON)
    store.index.remove("ada", "lost")


def test_l01_a_migration_marks_what_fired_long_ago(database: Database) -> None:
    with closing(database.open()) as store:
        store.migrate()
        every = store.schedules.list("ada", state="all").schedules
        done = {one.key for one in every if one.done_at is not None}
        assert (done, len(every)) == ({"once", "limited"}, 5)
        assert must(store.schedules.get("ada", "limited")).runs == 1


def test_l01_after_a_migration_what_fired_locks_nobody_out(database: Database) -> None:
    with closing(database.open()) as store:
        store.migrate()
        store.schedules.put(schedule("new"), now=NOON + DAY, at_most=4)
        with pytest.raises(QuotaReached):
            store.schedules.put(schedule("newer"), now=NOON + DAY, at_most=4)
        store.schedules.delete("ada", "once", now=NOON + DAY)
        with pytest.raises(QuotaReached):
            store.schedules.put(schedule("newer"), now=NOON + DAY, at_most=4)


def test_t12_a_migration_hides_no_row_that_is_missing(database: Database) -> None:
    with closing(database.open()) as store:
        store.migrate()
        found = only(store.check(now=NOON + DAY))
        assert (found.key, found.problem) == ("lost", "unindexed")


def test_l01_a_second_migration_marks_nothing_more(database: Database) -> None:
    with closing(database.open()) as store:
        store.migrate()
        before = store.schedules.list("ada", state="all").schedules
        store.migrate()
        assert store.schedules.list("ada", state="all").schedules == before


def test_l01_what_was_marked_by_a_migration_leaves_thirty_days_later(database: Database) -> None:
    with closing(database.open()) as store:
        store.migrate()
        assert purge(store, NOON + DAY + KEPT_DONE_MS - 1).deleted == 0
        assert purge(store, NOON + DAY + KEPT_DONE_MS).deleted == 2


def test_l01_what_was_left_of_deleted_schedules_leaves_too(tmp_path: Path) -> None:
    database = aged_sqlite(tmp_path)
    with closing(database.open()) as store:
        store.migrate()
        store.schedules.put(schedule(), now=NOON)
        store.schedules.put(schedule(cron=EACH_MINUTE), now=NOON + 1)
        store.schedules.delete("ada", "digest", now=NOON + 2)
        store.schedules.put(schedule("kept"), now=NOON)
    database.age()
    with closing(database.open()) as store:
        store.migrate()
        assert purge(store, NOON + 1 + KEPT_GONE_MS).forgotten == 1
        assert purge(store, NOON + 2 + KEPT_GONE_MS).forgotten == 2
        assert purge(store, NOON + 9 * KEPT_GONE_MS).forgotten == 0

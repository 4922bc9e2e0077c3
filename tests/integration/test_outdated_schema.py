"""I-10: on a schema that is not theirs, a tick and a dispatch say what is wrong and what to do."""

import json
import re
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from duetick.core.dispatch import Dispatcher, Request
from duetick.core.flows import Flow, Flows
from duetick.core.store import Store
from duetick.core.tick import run_tick
from duetick.domain.errors import NotPermitted, SchemaOutdated
from duetick.stores import open_store
from duetick.stores.sql.queries import migrations

from tests.integration.test_postgres_round_trips import Nowhere
from tests.lab.postgres import connect

MIGRATE = r"Run `duetick migrate`, or invoke the migrate function, then try again\."
RESTORE = r"Something that a migration made is gone, or was changed: restore the database from a"
NEWEST = migrations("postgres")[-1].version
MIGRATE_IT = [
    ("DROP SCHEMA public CASCADE; CREATE SCHEMA public", "schema_version"),
    ("UPDATE schema_version SET version = 0", f"at version 0, this code needs {NEWEST}"),
]
RESTORE_IT = [
    ("DROP TABLE occurrences CASCADE", "occurrence"),
    ("ALTER TABLE occurrences RENAME COLUMN lease_until TO gone", "lease_until"),
]
DEPLOY_IT = [
    (
        "UPDATE schema_version SET oldest_code = version + 1, version = version + 2",
        f"at version {NEWEST + 2} and serves code from version {NEWEST + 1} on; "
        f"this code is of version {NEWEST}",
    )
]
NOT_OURS = [
    *((change, f"{wrong}.* {MIGRATE}") for change, wrong in MIGRATE_IT),
    *((change, f"{wrong}.* {RESTORE}") for change, wrong in RESTORE_IT),
    *((change, rf"{wrong}\. Deploy a newer release\.") for change, wrong in DEPLOY_IT),
]


def change(url: str, statements: str) -> None:
    """Change the schema as another migration does."""
    with connect(url) as admin:
        admin.run(statements)


@pytest.mark.parametrize(("changed", "said"), NOT_OURS)
def test_i10_a_tick_says_what_is_wrong_with_the_schema_and_what_to_do(
    store: Store, postgres_url: str, changed: str, said: str
) -> None:
    change(postgres_url, changed)
    with pytest.raises(SchemaOutdated, match=said):
        run_tick(store, Nowhere())


@pytest.mark.parametrize(("changed", "said"), NOT_OURS)
def test_i10_a_dispatch_says_what_is_wrong_with_the_schema_and_what_to_do(
    store: Store, postgres_url: str, changed: str, said: str
) -> None:
    flow = Flow("jobs")
    dispatch = Dispatcher(store, Flows({"jobs": flow}), lambda _request: True, store.now)
    body = json.dumps({"nominalFireTime": "2026-12-01T09:00:00Z", "fence": 1})
    change(postgres_url, changed)
    answer = dispatch(Request("jobs", "ann~2Fk", {}, body, "r-1"))
    assert (answer.status, answer.body["error"]) == (500, "dispatch_failed")
    assert re.search(said, str(answer.body["message"]))


def test_i10_code_that_the_schema_still_serves_goes_on(store: Store, postgres_url: str) -> None:
    change(postgres_url, "UPDATE schema_version SET version = 99, oldest_code = 1")
    assert run_tick(store, Nowhere()).claimed == 0


@pytest.mark.parametrize(("changed", "said"), [(change, RESTORE) for change, _ in RESTORE_IT])
def test_i10_a_file_whose_table_is_gone_is_not_sent_to_migrate_first(
    tmp_path: Path, changed: str, said: str
) -> None:
    store = open_store(f"sqlite:///{tmp_path}/file.db")
    store.migrate()
    with closing(sqlite3.connect(tmp_path / "file.db")) as admin:
        admin.execute(changed.removesuffix(" CASCADE"))
    with pytest.raises(SchemaOutdated, match=said):
        store.ledger.find("ann", "k")
    store.close()


def test_i10_a_file_that_was_never_migrated_is_sent_to_migrate(tmp_path: Path) -> None:
    store = open_store(f"sqlite:///{tmp_path}/file.db")
    with pytest.raises(SchemaOutdated, match=MIGRATE):
        store.check_schema()
    store.close()


def test_i10_migrating_where_no_table_can_be_made_says_what_is_missing(postgres_url: str) -> None:
    change(postgres_url, "DROP SCHEMA public CASCADE")
    store = open_store(postgres_url)
    with pytest.raises(NotPermitted, match=r"CREATE SCHEMA public.*then run `duetick migrate`"):
        store.migrate()
    store.close()

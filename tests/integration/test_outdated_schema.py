"""I-10: a tick and a dispatch on a schema that is not theirs say what is wrong, and what to do."""

import json
import re
from collections.abc import Iterator

import pytest
from duetick.core.calls import Request
from duetick.core.dispatch import Dispatcher
from duetick.core.flows import Flow, Flows
from duetick.core.tick import run_tick
from duetick.domain.errors import SchemaOutdated
from duetick.ports import Store
from duetick.stores import open_store

from tests.integration.test_postgres_round_trips import Nowhere
from tests.lab.postgres import connect

MIGRATE = r"Run `duetick migrate`, or invoke the migrate function, then try again\."
MIGRATE_IT = [
    ("DROP SCHEMA public CASCADE; CREATE SCHEMA public", "schema_version"),
    ("DROP TABLE occurrences CASCADE", "occurrence"),
    ("ALTER TABLE occurrences RENAME COLUMN lease_until TO gone", "lease_until"),
    ("UPDATE schema_version SET version = 0", "at version 0, this code needs 1"),
]
DEPLOY_IT = [
    (
        "UPDATE schema_version SET version = 9, oldest_code = 8",
        "at version 9 and serves code from version 8 on; this code is of version 1",
    )
]
NOT_OURS = [
    *((change, f"{wrong}.* {MIGRATE}") for change, wrong in MIGRATE_IT),
    *((change, rf"{wrong}\. Deploy a newer release\.") for change, wrong in DEPLOY_IT),
]


@pytest.fixture
def store(postgres_url: str) -> Iterator[Store]:
    store = open_store(postgres_url)
    store.migrate()
    yield store
    store.close()


def change(url: str, statements: str) -> None:
    """As somebody else's migration."""
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
    change(postgres_url, "UPDATE schema_version SET version = 9, oldest_code = 1")
    assert run_tick(store, Nowhere()).claimed == 0

"""The table is made out of band, by anyone. Its faults are said in words."""

import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from duetick.core.deployment import GRACE, deploy
from duetick.core.flows import Flows
from duetick.domain.errors import (
    MIGRATE,
    ClockSkewed,
    InvalidStoreUrl,
    NotAccepted,
    SchemaOutdated,
    StoreUnavailable,
)
from duetick.stores import open_store
from duetick.stores.dynamodb import clock
from duetick.stores.dynamodb.schema import SCHEMA_KEY, table_definition
from duetick.stores.dynamodb.table import key_attributes

from tests.integration.dynamodb_case import Case, schedule
from tests.lab.dynamodb import REGION, DynamoDB
from tests.lab.dynamodb_service import answer_with
from tests.lab.process import free_port


@pytest.fixture
def without_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the tries of a request follow one another without a sleep."""
    monkeypatch.setattr(time, "sleep", lambda _: None)


def test_i10_a_missing_table_names_the_command_that_mends_it(case: Case) -> None:
    store = case.open()
    for ask in (store.check_schema, lambda: store.index.claim_due(case.now)):
        with pytest.raises(SchemaOutdated, match="duetick migrate"):
            ask()
    with pytest.raises(SchemaOutdated, match="duetick migrate"):
        store.schedules.put(schedule())


def test_i10_opening_and_asking_make_no_table(case: Case) -> None:
    with pytest.raises(SchemaOutdated):
        case.open().check_schema()
    assert case.table not in case.endpoint.client().list_tables()["TableNames"]


def test_i10_a_table_that_is_gone_and_may_not_be_made_is_told_as_that_at_once(case: Case) -> None:
    """A stack's function `migrate` finds it so: it may make no table."""
    store, waited = case.migrated(), list[float]()
    case.endpoint.client().delete_table(TableName=case.table)
    denied = b'{"__type": "AccessDeniedException", "message": "dynamodb:CreateTable"}'
    answer_with(store.shelf, denied, "CreateTable")
    with pytest.raises(SchemaOutdated, match=r"There is no table .*CreateTable") as gone:
        deploy(store, lambda: Flows({}), patience=280.0, elapsed=lambda: 0.0, sleep=waited.append)
    assert waited == []
    for mends in ("aws dynamodb restore-table-from-backup", "migrate function", case.table):
        assert mends in str(gone.value)


def test_i10_a_table_that_is_gone_is_named_by_what_claims_and_by_what_counts(case: Case) -> None:
    store = case.migrated()
    case.endpoint.client().delete_table(TableName=case.table)
    for ask in (lambda: store.index.claim_due(case.now), lambda: store.check(now=case.now)):
        with pytest.raises(SchemaOutdated, match=f"no table {case.table}.*restore it") as gone:
            ask()
        assert f"restore-table-from-backup --target-table-name {case.table}" in str(gone.value)
        assert MIGRATE not in str(gone.value)


def test_i10_a_right_that_is_missing_is_waited_for_a_minute_at_most(case: Case) -> None:
    """A role that was only just made is not known everywhere at once."""
    store, at = case.migrated(), [0.0]
    answer_with(store.shelf, b'{"__type": "AccessDeniedException", "message": "dynamodb:GetItem"}')

    def sleep(seconds: float) -> None:
        at[0] += seconds

    with pytest.raises(NotAccepted, match=f"does not permit it.*{case.table}"):
        deploy(store, lambda: Flows({}), patience=280.0, elapsed=lambda: at[0], sleep=sleep)
    assert 0 < at[0] <= GRACE


def test_i10_a_table_that_a_template_made_needs_only_its_version(case: Case) -> None:
    case.endpoint.client().create_table(**table_definition(case.table))
    store = case.open()
    with pytest.raises(SchemaOutdated, match="duetick migrate"):
        store.check_schema()
    with pytest.raises(SchemaOutdated, match="duetick migrate"):
        store.schedules.put(schedule())
    store.migrate()
    store.check_schema()
    store.schedules.put(schedule())


def test_i10_an_index_that_is_missing_is_added(moto: DynamoDB) -> None:
    case = Case(moto)  # DynamoDB Local takes a minute to add an index
    definition = table_definition(case.table)
    kept = definition["GlobalSecondaryIndexes"][:1]
    names = {key["AttributeName"] for index in kept for key in index["KeySchema"]} | {"p", "s"}
    case.endpoint.client().create_table(
        TableName=case.table,
        BillingMode="PAY_PER_REQUEST",
        KeySchema=definition["KeySchema"],
        AttributeDefinitions=[
            each for each in definition["AttributeDefinitions"] if each["AttributeName"] in names
        ],
        GlobalSecondaryIndexes=kept,
    )
    case.migrated()
    table = case.endpoint.client().describe_table(TableName=case.table)["Table"]
    found = {each.get("IndexName") for each in table["GlobalSecondaryIndexes"]}
    assert found == {each["IndexName"] for each in definition["GlobalSecondaryIndexes"]}


def test_i10_old_code_keeps_off_a_newer_table(case: Case) -> None:
    store = case.migrated()
    case.endpoint.client().update_item(
        TableName=case.table,
        Key=key_attributes(SCHEMA_KEY),
        UpdateExpression="SET version = :v, oldest_code = :v",
        ExpressionAttributeValues={":v": {"N": "7"}},
    )
    for ask in (store.check_schema, store.migrate, lambda: store.index.claim_due(case.now)):
        with pytest.raises(SchemaOutdated, match="newer release"):
            ask()


def test_i10_a_tick_says_that_the_table_is_older_than_its_code(case: Case) -> None:
    store = case.migrated()
    case.endpoint.client().update_item(
        TableName=case.table,
        Key=key_attributes(SCHEMA_KEY),
        UpdateExpression="SET version = :v",
        ExpressionAttributeValues={":v": {"N": "0"}},
    )
    with pytest.raises(SchemaOutdated, match=r"at version 0.*duetick migrate"):
        store.index.claim_due(case.now)


def test_j01_migrations_at_once_make_one_table(case: Case) -> None:
    stores = [case.open() for _ in range(4)]
    with ThreadPoolExecutor(4) as pool:
        for done in [pool.submit(store.migrate) for store in stores]:
            done.result()
    stores[0].check_schema()


def test_j10_what_has_ended_leaves_by_the_expiry_that_migrate_turns_on(case: Case) -> None:
    case.migrated()
    found = case.endpoint.client().describe_time_to_live(TableName=case.table)
    described = found["TimeToLiveDescription"]
    assert described["TimeToLiveStatus"] == "ENABLED"
    assert described["AttributeName"] == "ttl"


def test_j03_a_host_whose_clock_is_wrong_claims_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    skew = clock.Skew(checked=True)
    service = clock.host_clock()
    skew.check(service)
    monkeypatch.setattr(clock, "host_clock", lambda: service + 61_000)
    with pytest.raises(ClockSkewed, match="Nothing was claimed"):
        skew.check(service)


def test_j03_a_clock_that_was_given_is_not_held_against_the_service() -> None:
    clock.Skew(checked=False).check(0)


@pytest.mark.parametrize(
    "url",
    [
        "dynamodb://",
        "dynamodb:///t",
        "dynamodb://t?shards=0",
        "dynamodb://t?shards=x",
        "dynamodb://t?shrads=4",
        "dynamodb://t/more",
    ],
)
def test_i10_an_address_that_cannot_be_meant_is_refused(url: str) -> None:
    with pytest.raises(InvalidStoreUrl):
        open_store(url)


@pytest.mark.usefixtures("without_waiting")
def test_i10_a_service_that_does_not_answer_is_an_error_that_says_so() -> None:
    store = open_store(f"dynamodb://t?region={REGION}&endpoint=http://127.0.0.1:{free_port()}")
    with pytest.raises(StoreUnavailable, match="DynamoDB") as raised:
        store.check_schema()
    assert raised.value.__cause__ is not None
    store.close()


@pytest.mark.usefixtures("without_waiting")
def test_i10_throttling_is_tried_again_and_then_surfaces(case: Case) -> None:
    store = case.migrated()
    said = b'{"__type": "ProvisionedThroughputExceededException", "message": "exceeded"}'
    tries = answer_with(store.shelf, said)
    with pytest.raises(StoreUnavailable, match="exceeded"):
        store.check_schema()
    assert len(tries) > 3

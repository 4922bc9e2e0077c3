"""L-01: create and delete in a loop leaves nothing for ever."""

import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from duetick.core.purge import purge, purge_within
from duetick.core.store import Store
from duetick.domain.creation import Repeatable
from duetick.domain.ending import KEPT_GONE_MS
from duetick.domain.operating import Operator
from duetick.domain.policies import Policies
from duetick.domain.retention import Days, Retention
from duetick.stores import open_store
from duetick.stores.dynamodb.shelf import open_dynamodb
from duetick.testing.conformance.done import AT_NOON
from duetick.testing.conformance.samples import DAY, MINUTE, NOON, SOON, schedule
from duetick.testing.conformance.suite import drain

from tests.integration.dynamodb_case import Case
from tests.lab.dynamodb import DynamoDB
from tests.lab.postgres import connect

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.type_defs import AttributeValueTypeDef

LOOPS = 12
TABLES = {
    "schedules": "SELECT count(*) FROM schedules",
    "schedule_index": "SELECT count(*) FROM schedule_index",
    "unreadable": "SELECT count(*) FROM unreadable",
    "marks": "SELECT count(*) FROM marks",
    "definitions": "SELECT count(*) FROM definitions",
    "creations": "SELECT count(*) FROM creations",
}

Count = Callable[[], Counter[str]]


def create_and_delete(store: Store) -> None:
    """Create and delete under names of their own, and under one name; half of them fire before."""
    for number in range(LOOPS):
        for key in (f"k{number}", "again"):
            asked = Repeatable(f"{key}-{number}", "d", NOON + DAY)
            at = NOON + number * MINUTE
            made = schedule(key, cron="* * * * *")
            store.schedules.put(made, now=at, if_version=0, repeatable=asked)
            drain(store, at + (number % 2) * MINUTE)
            store.schedules.delete("ada", key, now=at + MINUTE + 1)


def count_sqlite(path: Path) -> Counter[str]:
    with closing(sqlite3.connect(path)) as database:
        return Counter(
            {name: database.execute(query).fetchone()[0] for name, query in TABLES.items()}
        )


def count_postgres(url: str) -> Counter[str]:
    with connect(url) as database:
        return Counter({name: database.run(query)[0][0] for name, query in TABLES.items()})


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.slow)])
def counted(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Store, Count]]:
    if request.param == "sqlite":
        path = tmp_path / "loop.db"
        url = f"sqlite:///{path}"
        count: Count = partial(count_sqlite, path)
    else:
        url = request.getfixturevalue("postgres_url")
        count = partial(count_postgres, url)
    with closing(open_store(url)) as store:
        store.migrate()
        yield store, count


def test_l01_a_loop_leaves_nothing_after_400_days(counted: tuple[Store, Count]) -> None:
    store, count = counted
    create_and_delete(store)
    assert count()["definitions"] == 4 * LOOPS
    assert count()["creations"] == 2 * LOOPS
    purge(store, NOON + 2 * DAY)
    assert (count()["creations"], count()["definitions"]) == (0, 4 * LOOPS)
    store.now = lambda: NOON + DAY + KEPT_GONE_MS
    purge_within(60.0, store, 5)
    assert not +count()


def test_l01_a_schedule_keeps_its_definition_and_loses_older_ones(
    counted: tuple[Store, Count],
) -> None:
    store, count = counted
    for number in range(3):
        store.schedules.put(schedule(cron=f"{number} 6 * * *"), now=NOON + number)
    assert count()["definitions"] == 3
    purge(store, NOON + 9 * KEPT_GONE_MS)
    assert count()["definitions"] == 1


@pytest.fixture
def case(dynamodb: DynamoDB) -> Iterator[Case]:
    case = Case(dynamodb)
    yield case
    case.close()


def test_l01_on_dynamodb_whatever_a_loop_leaves_expires(case: Case) -> None:
    store = case.migrated()
    create_and_delete(store)
    left = [item for item in case.items() if item["p"]["S"] not in ("J", "C#ada")]
    assert {item["p"]["S"][:2] for item in left} == {"U#", "V#", "R#", "O#"}
    assert [item["p"]["S"] for item in left if "ttl" not in item] == []
    latest = (NOON + DAY + KEPT_GONE_MS) // 1_000
    assert all(int(item["ttl"]["N"]) <= latest for item in left)
    marks = [item for item in left if "thru" in item]
    assert all(int(one["ttl"]["N"]) >= KEPT_GONE_MS // 1_000 for one in marks)


def test_l01_on_dynamodb_a_definition_that_holds_does_not_expire(case: Case) -> None:
    store = case.migrated()
    for number in range(3):
        store.schedules.put(schedule(cron=f"{number} 6 * * *"), now=NOON + number)
    found = sorted((item for item in case.items() if item["p"]["S"][:2] == "V#"), key=_since)
    assert ["ttl" in item for item in found] == [True, True, False]


def test_j10_on_dynamodb_a_job_leaves_by_the_retention_of_its_store(case: Case) -> None:
    retention, far = Retention(Days(3, 7)), NOON + 300 * DAY
    store = Store(open_dynamodb(case.url, checks_clock=False, retention=retention), lambda: NOON)
    store.migrate()
    with closing(store):
        made = store.jobs.enqueue(schedule(), due_at=far).job
        store.ledger.cancel(made.occurrence, Operator("op"), now=SOON)
        purge(store, SOON + 3 * DAY - 1, retention=retention)
        assert store.jobs.get("ada", made.id)
        purge(store, SOON + 3 * DAY, retention=retention)
        assert store.jobs.get("ada", made.id) is None
        left = [item for item in case.items() if item["p"]["S"][:2] in ("U#", "O#")]
        assert [int(item["ttl"]["N"]) for item in left] == [(SOON + 3 * DAY) // 1_000] * 2


def _since(item: "dict[str, AttributeValueTypeDef]") -> str:
    return item["s"]["S"]


def test_l01_on_dynamodb_a_done_schedule_is_in_no_index_but_that_of_the_purge(case: Case) -> None:
    store = case.migrated()
    once = schedule(cron=AT_NOON, policies=Policies(after_completion="delete"))
    store.schedules.put(once, now=NOON - 1)
    assert case.due() == ["active"]
    drain(store, SOON)
    assert case.due() == []
    assert store.shelf.leaving(SOON, 10) == [("ada", "digest")]
    assert store.shelf.leaving(SOON - 1, 10) == []

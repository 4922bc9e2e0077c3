"""The reads of a forecast on DynamoDB: as many units as it said before, in bounded parts."""

from collections.abc import Iterator

import pytest
from duetick.domain.alike import AlikePage, Selection
from duetick.domain.schedule import Schedule
from duetick.stores.dynamodb import alike

from tests.benchmarks.dynamodb_units import Meter
from tests.integration.dynamodb_case import HOUR, NOON, Case, DynamoStore, schedule
from tests.lab.dynamodb import DynamoDB

pytestmark = pytest.mark.slow

ANYTHING = Selection()
A_DAY = NOON + 24 * HOUR


@pytest.fixture
def case(dynamodb_local: DynamoDB) -> Iterator[Case]:
    """On DynamoDB Local: an imitation says other units."""
    made = Case(dynamodb_local)
    yield made
    made.close()


def parts(store: DynamoStore, selection: Selection = ANYTHING) -> Iterator[AlikePage]:
    place: str | None = ""
    while place is not None:
        part = store.shelf.read_alike(selection, NOON, A_DAY, place)
        yield part
        place = part.place


def test_a_forecast_reads_the_units_that_were_told(case: Case) -> None:
    store = case.migrated()
    for number in range(240):
        store.schedules.put(schedule(f"k{number % 12}", user_id=f"u{number // 12}"), now=NOON)
    told = store.shelf.walk_units(240)
    meter = Meter(store.shelf)
    found = [one for part in parts(store) for one in part.rows]
    assert sum(one.number for one in found) == 240
    assert told is not None
    assert told * 0.7 <= meter.reads <= told * 1.1 + 40, "each directory is asked once"
    assert meter.writes == 0


def test_a_user_of_a_large_table_pays_for_the_own_items_alone(case: Case) -> None:
    store = case.migrated()
    for number in range(60):
        store.schedules.put(schedule(user_id=f"u{number}"), now=NOON)
    meter = Meter(store.shelf)
    (part,) = parts(store, Selection(user_id="u7"))
    assert sum(one.number for one in part.rows) == 1
    assert meter.reads <= 1


def test_a_forecast_comes_in_parts_none_of_which_is_long(
    case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(alike, "AT_ONCE", 10)
    store = case.migrated()
    for number in range(45):
        store.schedules.put(schedule(user_id=f"u{number}"), now=NOON)
    sizes = [sum(one.number for one in part.rows) for part in parts(store)]
    assert sum(sizes) == 45
    assert max(sizes) == 10


def test_more_jobs_than_are_read_are_told_only_partly(
    case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = case.migrated()
    wanted = Schedule("ada", "job", "@daily", "reminders", "send_digest")
    for number in range(7):
        store.jobs.enqueue(wanted, now=NOON, due_at=NOON + number * HOUR)
    assert [part.partly for part in parts(store)] == [False, False]
    monkeypatch.setattr(alike, "MOST_UNDER_WAY", 5)
    *_, last = parts(store)
    assert last.partly
    assert sum(one.number for one in last.waiting) == 5

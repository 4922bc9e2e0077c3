"""A rebuild mends a row as it is when its turn comes, not as it was at the look."""

from collections.abc import Iterator
from dataclasses import replace

import pytest
from duetick.core.store import Store
from duetick.domain.schedule import IndexRow, Schedule
from duetick.stores import open_store

NOON = 1_800_014_400_000
HOUR = 3_600_000
DAILY = Schedule("ada", "digest", "0 12 * * *", "reminders", "send")


@pytest.fixture
def store() -> Iterator[Store]:
    store = open_store("sqlite://")
    store.migrate()
    yield store
    store.close()


def test_i16_what_was_put_right_meanwhile_is_left_alone(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = store.schedules.put(DAILY, now=NOON)
    store.index.upsert(IndexRow("ada", "digest", "not an expression", None, NOON))
    store.index.claim_due(NOON)
    found = store.check(now=NOON)
    assert [one.problem for one in found] == ["unreadable"]
    again = store.schedules.put(replace(made, cron="0 13 * * *"), now=NOON)
    monkeypatch.setattr(store, "check", lambda **_: found)
    assert store.rebuild(now=NOON) == 0
    row = store.index.get("ada", "digest")
    assert row is not None
    assert row.next_fire_at == again.next_fire_at == NOON + HOUR

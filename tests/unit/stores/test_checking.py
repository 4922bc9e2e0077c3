"""I-16 where much is amiss: a check reads pages, not one record after another."""

from collections import Counter
from collections.abc import Sequence

import pytest
from duetick.domain.schedule import Schedule
from duetick.stores import open_store
from duetick.stores.sql import shelf as sql_shelf
from duetick.stores.sql.session import Params, Row
from duetick.stores.sqlite.database import SqliteSession

NOON = 1_803_902_400_000


def test_i16_records_without_a_row_are_read_by_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: Counter[str] = Counter()
    plain = SqliteSession.rows

    def counted(session: SqliteSession, name: str, params: Params) -> Sequence[Row]:
        asked[name] += 1
        return plain(session, name, params)

    monkeypatch.setattr(sql_shelf, "LISTED_AT_ONCE", 2)
    store = open_store("sqlite://")
    store.migrate()
    for number in range(5):
        store.schedules.put(Schedule("ada", f"k{number}", "* * * * *", "flow", "act"), now=NOON)
        store.index.remove("ada", f"k{number}")
    monkeypatch.setattr(SqliteSession, "rows", counted)
    found = store.check(now=NOON)
    assert [(one.key, one.problem) for one in found] == [(f"k{n}", "unindexed") for n in range(5)]
    assert asked == {"books": 4}
    store.close()

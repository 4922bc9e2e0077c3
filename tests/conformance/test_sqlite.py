"""SQLite, as a file and in memory, is a store as the contract wants it."""

import gc
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from duetick.core.store import Store
from duetick.domain.errors import StoreUnavailable
from duetick.domain.schedule import Schedule
from duetick.stores import open_store
from duetick.stores.sqlite import database
from duetick.testing import Capability, StoreConformance

from tests.lab.ready import sqlite_image

FULL_DISK = """CREATE TRIGGER full_disk BEFORE INSERT ON occurrences
BEGIN SELECT RAISE(ABORT, 'the disk is full'); END"""


class TestSqliteFile(StoreConformance):
    """Each store of a test has a connection of its own to one file."""

    capabilities = frozenset(Capability)

    @pytest.fixture(autouse=True)
    def _path(self, tmp_path: Path) -> Iterator[None]:
        self._file = tmp_path / "duetick.db"
        self._open: list[Store] = []
        yield
        for store in self._open:
            store.close()

    @pytest.fixture
    def store(self) -> Store:
        self._file.write_bytes(sqlite_image())
        return self._opened()

    def _opened(self) -> Store:
        self._open.append(open_store(f"sqlite:///{self._file}"))
        return self._open[-1]

    def another(self, store: Store) -> Store:
        return self._opened()

    def reopened(self, store: Store) -> Store:
        return self._opened()

    def unmigrated(self, store: Store) -> Store:
        return open_store(f"sqlite:///{self._file}.empty")

    def unreachable(self, store: Store) -> Store:
        return open_store(f"sqlite:///{self._file}.no-folder/duetick.db")

    @contextmanager
    def failing_writes(self, store: Store) -> Iterator[type[Exception]]:
        with closing(sqlite3.connect(self._file)) as connection:
            connection.execute(FULL_DISK)
            yield sqlite3.IntegrityError
            connection.execute("DROP TRIGGER full_disk")


@pytest.mark.slow
class TestSqliteMemory(StoreConformance):
    """One connection, shared by threads. Its data is gone when it closes."""

    capabilities = frozenset(Capability) - {
        Capability.LASTING,
        Capability.FAILING_WRITES,
        Capability.UNREACHABLE,
    }

    @pytest.fixture
    def store(self) -> Iterator[Store]:
        store = open_store("sqlite://")
        store.migrate()
        yield store
        store.close()

    def unmigrated(self, store: Store) -> Store:
        return open_store("sqlite://")


def test_c05_where_ticks_look_ahead_a_rate_below_a_minute_is_put() -> None:
    store = open_store("sqlite://", look_ahead=True)
    store.migrate()
    often = Schedule("ada", "often", "rate(10 seconds)", "reminders", "send")
    assert store.schedules.put(often, now=60_000).next_fire_at == 70_000
    store.close()


def test_a_file_that_was_opened_for_reading_is_opened_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file's volume comes back between the two ways in which SQLite opens a file."""
    store = open_store(f"sqlite:///{tmp_path}/file.db")
    store.migrate()
    store.close()
    connect = sqlite3.connect

    def for_reading(path: str, **_options: object) -> sqlite3.Connection:
        monkeypatch.undo()
        uri, factory = f"file:{path}?mode=ro", database.FileConnection
        return connect(uri, uri=True, factory=factory)

    monkeypatch.setattr("sqlite3.connect", for_reading)
    daily = Schedule("ada", "daily", "0 9 * * *", "reminders", "send")
    with pytest.raises(StoreUnavailable, match="readonly"):
        store.schedules.put(daily, now=60_000)
    store.schedules.put(daily, now=60_000)
    store.close()


def test_a_read_waits_for_no_writer_of_another_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "BUSY_SECONDS", 0)
    file = tmp_path / "file.db"
    with closing(open_store(f"sqlite:///{file}")) as store, closing(sqlite3.connect(file)) as other:
        store.migrate()
        daily = Schedule("ada", "daily", "0 9 * * *", "reminders", "send")
        store.schedules.put(daily, now=60_000)
        other.execute("BEGIN IMMEDIATE")
        store.check_schema()
        assert store.schedules.get("ada", "daily") is not None
        assert [one.key for one in store.shelf.records("ada", "", 2).found] == ["daily"]
        assert store.ledger.find("ada") == []
        assert [one.key for one in store.shelf.accounts(0, 120_000)] == ["daily"]
        with pytest.raises(StoreUnavailable, match="locked"):
            store.schedules.delete("ada", "daily", now=60_000)


def test_c05_a_connection_of_ones_own_can_look_ahead_too() -> None:
    connection = sqlite3.connect(":memory:", check_same_thread=False)
    store = open_store(lambda: connection, look_ahead=True)
    store.migrate()
    often = Schedule("ada", "often", "rate(10 seconds)", "reminders", "send")
    assert store.schedules.put(often, now=60_000).cron == "rate(10 seconds)"
    store.close()


def test_a_file_that_is_no_database_leaves_no_connection_open(tmp_path: Path) -> None:
    file = tmp_path / "notes.db"
    file.write_text("no database\n" * 1_000)
    store = open_store(f"sqlite:///{file}")
    with pytest.raises(StoreUnavailable, match="no SQLite database"):
        store.check_schema()
    store.close()
    gc.collect()

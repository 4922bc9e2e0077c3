"""Broken ledgers: those of the SQLite store with one method replaced."""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager

from duetick.domain.schedule import Occurrence
from duetick.ports import Begun, CallerKey, Clock, OnLost, Outcome, Refused
from duetick.stores.ids import new_id
from duetick.stores.sql.ledger import CountRun, SqlLedger
from duetick.stores.sql.session import Database, Params, Row, Session

from tests.conformance.broken import AlteredStore
from tests.conformance.broken_stores import Breaks
from tests.conformance.meddled import Meddled


def hands_out_early(store: AlteredStore) -> None:
    """What waits is due an hour before its time."""
    for name in ("anything_waits", "occurrences_due"):
        store.database.alter(name, "<= :until", "<= :until + 3600000")


def ledger(kind: type[SqlLedger]) -> Breaks:
    """The ledger has one method of another kind."""

    def breaks(store: AlteredStore) -> None:
        store.ledger = kind(store.database, store.now, new_id, store.schedules.count_run)

    return breaks


class LetsAnybodySettle(SqlLedger):
    """A settle does not look at the fence."""

    def settle(
        self, occurrence: Occurrence, outcome: Outcome, *, now: int | None = None
    ) -> Occurrence | None:
        held = self.get(*occurrence.identity)
        return super().settle(held, outcome, now=now) if held else None


class LetsAnybodyBegin(SqlLedger):
    """A begin does not look at the fence."""

    def begin(
        self,
        occurrence: Occurrence,
        *,
        now: int | None = None,
        key: CallerKey | None = None,
        on_lost: OnLost | None = None,
    ) -> Begun | Refused:
        held = self.get(*occurrence.identity) if occurrence.fence else None
        return super().begin(held or occurrence, now=now, key=key, on_lost=on_lost)


class LetsAnybodyRelease(SqlLedger):
    """A release does not look at the fence."""

    def release(
        self, occurrence: Occurrence, *, now: int | None = None, on_lost: OnLost | None = None
    ) -> bool:
        held = self.get(*occurrence.identity)
        return super().release(held, now=now, on_lost=on_lost) if held else False


class Meeting:
    """Where the first who comes in a thread of its own waits until another one has come too."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._came = 0

    def come(self) -> None:
        """Alone it goes on after a while, in which a machine that stands still is one moment."""
        if threading.current_thread() is threading.main_thread():
            return
        with self._lock:
            self._came += 1
        for _ in range(200):
            if self._came > 1:
                break
            time.sleep(0.01)


class ChecksThenActs(SqlLedger):
    """Whether another one runs is looked up in one transaction, and trusted in the next."""

    def __init__(
        self, database: Database, now: Clock, new_id: Callable[[], str], count_run: CountRun
    ) -> None:
        super().__init__(database, now, new_id, count_run)
        self._looked = Meeting()

    def begin(
        self,
        occurrence: Occurrence,
        *,
        now: int | None = None,
        key: CallerKey | None = None,
        on_lost: OnLost | None = None,
    ) -> Begun | Refused:
        name: Params = {"user_id": occurrence.user_id, "key": occurrence.key}
        with self._database.transaction() as session:
            session.script("DROP INDEX IF EXISTS idx_occurrences_running")
            seen = session.rows("occurrence_running", name)
        self._looked.come()  # on the way to a database and back
        trusted = _Remembering(self._database, "occurrence_running", seen)
        ledger = SqlLedger(trusted, self._now, self._new_id, self._count_run)
        return ledger.begin(occurrence, now=now, key=key, on_lost=on_lost)


class _Remembering:
    """A database in which one query is answered from memory."""

    def __init__(self, database: Database, name: str, seen: Sequence[Row]) -> None:
        self._database = database
        self._name = name
        self._seen = seen

    @contextmanager
    def transaction(self) -> Iterator[Session]:
        with self._database.transaction() as session:
            yield Meddled(session, self._name, self._seen)

    def claiming(self) -> AbstractContextManager[Session]:
        return self._database.claiming()

    def migration(self) -> AbstractContextManager[Session]:
        return self._database.migration()

    def check_transactions(self) -> None:
        self._database.check_transactions()

    def now(self) -> int:
        return self._database.now()

    def close(self) -> None:
        self._database.close()

"""Broken ledgers: those of the SQLite store with one method replaced."""

import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from duetick.core.ids import new_id
from duetick.core.store import Ledger
from duetick.core.store.within import FindAction
from duetick.domain.attempts import Begun, OnLost, Outcome, Refused
from duetick.domain.book import Book
from duetick.domain.identity import is_failure_hook
from duetick.domain.schedule import Leased, Occurrence
from duetick.ports import Clock, Shelf

from tests.conformance.broken import AlteredShelf, AlteredStore
from tests.conformance.broken_stores import Breaks
from tests.conformance.meddled import Meddled, MeddledDatabase

if TYPE_CHECKING:
    from duetick.stores.sql.session import Params


def hands_out_early(store: AlteredStore) -> None:
    """Occurrences that wait are due an hour before their time."""
    for name in ("anything_waits", "occurrences_due"):
        store.database.alter(name, "<= :until", "<= :until + 3600000")


def ledger(kind: type[Ledger]) -> Breaks:
    """Give the ledger one method of another kind."""

    def breaks(store: AlteredStore) -> None:
        store.ledger = kind(store.shelf, store.now, new_id)

    return breaks


class LetsAnybodySettle(Ledger):
    """A settle does not look at the fence."""

    def settle(
        self, held: Leased, outcome: Outcome, *, now: int | None = None
    ) -> Occurrence | None:
        found = self.get(*held.identity)
        return super().settle(found, outcome, now=now) if found else None


class LetsAnybodyBegin(Ledger):
    """A begin does not look at the fence."""

    def begin(
        self,
        held: Leased,
        *,
        now: int | None = None,
        on_lost: OnLost | None = None,
        find_action: FindAction | None = None,
        needs_place: bool = True,
    ) -> Begun | Refused:
        found = self.get(*held.identity)
        return super().begin(found or held, now=now, on_lost=on_lost, find_action=find_action)


class LetsAnybodyRelease(Ledger):
    """A release does not look at the fence."""

    def release(
        self, held: Leased, *, now: int | None = None, on_lost: OnLost | None = None
    ) -> bool:
        found = self.get(*held.identity)
        return super().release(found, now=now, on_lost=on_lost) if found else False


class TellsNobody(Ledger):
    """The end of an attempt is written without the failure hook of a death."""

    def settle(
        self, held: Leased, outcome: Outcome, *, now: int | None = None
    ) -> Occurrence | None:
        at = self._at(now)

        def alter(book: Book) -> Occurrence | None:
            ended = book.settle(held, outcome, at)
            book.made = [one for one in book.made if not is_failure_hook(one.origin)]
            return ended

        ended = self._shelf.change(held.user_id, held.key, at, alter, about=held)
        if ended:
            self._look_after([ended], at)
        return ended


class Meeting:
    """A meeting point: the first thread to come waits for the second."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._came = 0

    def come(self) -> None:
        """Wait for another thread to come. Alone it goes on after a while, which is one moment on a
        machine that stands still.
        """
        if threading.current_thread() is threading.main_thread():
            return
        with self._lock:
            self._came += 1
        for _ in range(200):
            if self._came > 1:
                break
            time.sleep(0.01)


class ChecksThenActs(Ledger):
    """A begin reads the place in one transaction, and trusts that in the next."""

    def __init__(self, shelf: Shelf, clock: Clock, new_id: Callable[[], str]) -> None:
        super().__init__(shelf, clock, new_id)
        self._looked = Meeting()

    def begin(
        self,
        held: Leased,
        *,
        now: int | None = None,
        on_lost: OnLost | None = None,
        find_action: FindAction | None = None,
        needs_place: bool = True,
    ) -> Begun | Refused:
        assert isinstance(self._shelf, AlteredShelf)
        database = self._shelf._database
        name: Params = {"user_id": held.user_id, "key": held.key}
        with database.transaction() as session:
            session.script("DROP INDEX IF EXISTS idx_occurrences_place")
            seen = session.rows("occurrences_in_place", name)
        self._looked.come()  # on the way to a database and back
        trusting = AlteredShelf(
            MeddledDatabase(database, lambda one: Meddled(one, "occurrences_in_place", seen))
        )
        meddled = Ledger(trusting, self._clock, self._new_id)
        del needs_place  # it asks for it, and begins
        return meddled.begin(held, now=now, on_lost=on_lost, find_action=find_action)

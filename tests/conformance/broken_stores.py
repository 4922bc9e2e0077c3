"""Broken shelves: the SQLite one with one method replaced, or one line of its SQL changed.

Each names the tests that have to fail; all others have to pass. If every test failed for every
defect, the suite would not tell what is wrong.
"""

import sqlite3
import time
from collections.abc import Callable, Sequence
from dataclasses import replace

from duetick.core.store import Listing, Page, Schedules, Sift
from duetick.domain.creation import Repeatable
from duetick.domain.errors import VersionConflict
from duetick.domain.firing import Times
from duetick.domain.rows import fresh_row
from duetick.domain.schedule import IndexRow, Record, Schedule
from duetick.domain.versions import Expected
from duetick.ports import Chunk, Fair
from duetick.stores.sql.claim import ClaimChunk, leave_out_param
from duetick.stores.sql.rows import read_index
from duetick.stores.sql.session import Params, QueryCall, Row, Session
from duetick.stores.sqlite.database import SqliteSession
from duetick.stores.sqlite.shelf import SqliteClaim
from duetick.testing.conformance.samples import SOON

from tests.conformance.broken import AlteredShelf, AlteredStore
from tests.conformance.meddled import Meddled

Breaks = Callable[[AlteredStore], None]

claim = SqliteClaim()


def sql(name: str, part: str, instead: str) -> Breaks:
    """Alter one line of SQL."""
    return lambda store: store.database.alter(name, part, instead)


def sql_of(names: Sequence[str], part: str, instead: str) -> Breaks:
    """Alter the same line of several queries."""

    def breaks(store: AlteredStore) -> None:
        for name in names:
            store.database.alter(name, part, instead)

    return breaks


def erasing_all_but(*tables: str) -> Breaks:
    """Something of an erased user stays."""

    def breaks(store: AlteredStore) -> None:
        for table in tables:
            store.database.alter(f"erase_{table}", ":user_id", ":user_id AND 1 = 0")

    return breaks


def shelf(kind: type[AlteredShelf]) -> Breaks:
    """Give the shelf one method of another kind."""
    return lambda store: store.use(kind(store.database))


def claiming(how: ClaimChunk) -> Breaks:
    """Let the shelf claim another way."""
    return lambda store: store.use(AlteredShelf(store.database, how))


def session(kind: type[SqliteSession]) -> Breaks:
    """Give the database sessions of another kind."""

    def breaks(store: AlteredStore) -> None:
        store.database.session = kind

    return breaks


def schedules(kind: type[Schedules]) -> Breaks:
    """Give the schedules one method of another kind."""

    def breaks(store: AlteredStore) -> None:
        store.schedules = kind(store.shelf, store.now, look_ahead=False)

    return breaks


class CommitsBetween(Meddled):
    """A session that commits its work so far before it runs the query of that name."""

    def rows(self, name: str, params: Params) -> Sequence[Row]:
        if name == self._name:
            self.script("COMMIT; BEGIN IMMEDIATE")
        return self._session.rows(name, params)

    def each(self, name: str, params: Sequence[Params]) -> Sequence[int]:
        if name == self._name:
            self.script("COMMIT; BEGIN IMMEDIATE")
        return self._session.each(name, params)


class Trusting(Meddled):
    """A session that answers a read from memory, and says that every write was done."""

    def each(self, name: str, params: Sequence[Params]) -> Sequence[int]:
        self._session.each(name, params)
        return [1 for _ in params]


def _due(until: int, limit: int, fair: Fair) -> Params:
    return {"until": until - fair.late, "limit": limit, "leave_out": leave_out_param(fair)}


class ReadsThenTakes(AlteredShelf):
    """Due rows are read in one transaction and taken in the next, without looking again."""

    def claim(self, now: int, limit: int, ahead: int, fair: Fair) -> Chunk:
        with self._database.transaction() as session:
            seen = session.rows("claim_select", _due(now + ahead, limit, fair))
        time.sleep(0.001)  # the way to a database and back
        with self._database.transaction() as session:
            return claim(Trusting(session, "claim_select", seen), now, limit, ahead, fair)


class LosesAdvances(Meddled):
    """A session that says it advanced the rows, and did not."""

    lost = 0

    def each(self, name: str, params: Sequence[Params]) -> Sequence[int]:
        """Run it, unless it advances."""
        if name == "claim_advance":
            self.lost += len(params)
            return [1 for _ in params]
        return self._session.each(name, params)


def loses_the_advance(session: Session, now: int, limit: int, ahead: int, fair: Fair) -> Chunk:
    """The occurrences are recorded, and the rows stay where they were."""
    forgetful = LosesAdvances(session)
    found = claim(forgetful, now, limit, ahead, fair)
    return found._replace(due=found.due - forgetful.lost)


def ends_early(session: Session, now: int, limit: int, ahead: int, fair: Fair) -> Chunk:
    """A chunk that yields nothing is taken for the end."""
    return claim(session, now, limit, ahead, fair)._replace(due=0)


class KeepsPoison(Meddled):
    """A session in which a poison row stays in the index."""

    kept = 0

    def rows(self, name: str, params: Params) -> Sequence[Row]:
        """Run it, unless it would put poison aside."""
        if name == "unreadable_put":
            self.kept += 1
            return self._session.rows("index_put", {**params, "mark": None})
        return self._session.rows(name, params)


def starves_behind_poison(session: Session, now: int, limit: int, ahead: int, fair: Fair) -> Chunk:
    """A poison row is seen, and stays where it is."""
    keeping = KeepsPoison(session)
    found = claim(keeping, now, limit, ahead, fair)
    return found._replace(due=found.due - keeping.kept)


def records_later(session: Session, now: int, limit: int, ahead: int, fair: Fair) -> Chunk:
    """The advance is committed before the record is written."""
    return claim(CommitsBetween(session, "occurrence_claimed"), now, limit, ahead, fair)


def fires_twice(session: Session, now: int, limit: int, ahead: int, fair: Fair) -> Chunk:
    """A claim neither reads the mark nor looks up recorded occurrences."""
    rows = session.rows("claim_select", _due(now + ahead, limit, fair))
    forgetful = [(*row[:9], None) for row in rows]
    return claim(Trusting(session, "claim_select", forgetful), now, limit, ahead, fair)


class OwnClock(Meddled):
    """A session that computes next times by a clock that is ahead of the time that was passed."""

    def each(self, name: str, params: Sequence[Params]) -> Sequence[int]:
        if name == "claim_advance":
            params = [{**one, "next_at": self._next(one)} for one in params]
        return self._session.each(name, params)

    def _next(self, advance: Params) -> int | None:
        row = read_index(self.rows("index_get", advance)[0])
        return max(int(str(advance["next_at"])), Times.of(row).after(SOON) or 0)


def reads_the_wall_clock(session: Session, now: int, limit: int, ahead: int, fair: Fair) -> Chunk:
    """Claim by a clock of its own, which is right on the day of most tests."""
    return claim(OwnClock(session), now, limit, ahead, fair)


class EmptyTimezone(AlteredShelf):
    """No timezone comes back as an empty one."""

    def row(self, user_id: str, key: str) -> IndexRow | None:
        found = super().row(user_id, key)
        return replace(found, timezone=found.timezone or "") if found else None


class CommitsTheRowFirst(SqliteSession):
    """A change moves the index row in a transaction of its own."""

    def several(self, calls: Sequence[QueryCall]) -> Sequence[Sequence[Row]]:
        rows = [call for call in calls if call[0] == "index_put"]
        if not rows:
            return super().several(calls)
        super().several(rows)
        self.script("COMMIT; BEGIN IMMEDIATE")
        return super().several([call for call in calls if call not in rows])


class ForgetsWhatWasDue(Schedules):
    """A delete does not account for the times that were due."""

    def delete(
        self, user_id: str, key: str, *, now: int | None = None, if_version: Expected | None = None
    ) -> bool:
        return super().delete(user_id, key, now=0, if_version=if_version)


class MovesTheUnchanged(Schedules):
    """Declaring a schedule again computes its time anew."""

    def put(
        self,
        schedule: Schedule,
        *,
        now: int | None = None,
        if_version: Expected | None = None,
        at_most: int | None = None,
        repeatable: Repeatable | None = None,
    ) -> Record:
        made = super().put(
            schedule, now=now, if_version=if_version, at_most=at_most, repeatable=repeatable
        )
        at = self._clock() if now is None else now
        row = fresh_row(made, at)
        if row and made.enabled:
            self._shelf.change(made.user_id, made.key, at, lambda book: book.put_row(row, at))
        return made


class AsksForTheRepeatFirst(Schedules):
    """A creation that is repeated is refused as a repeat, even if the user has no room."""

    def put(
        self,
        schedule: Schedule,
        *,
        now: int | None = None,
        if_version: Expected | None = None,
        at_most: int | None = None,
        repeatable: Repeatable | None = None,
    ) -> Record:
        at = self._clock() if now is None else now
        if repeatable and self.creation(schedule.user_id, repeatable.name, now=at):
            raise VersionConflict(0, 1)
        return super().put(
            schedule, now=now, if_version=if_version, at_most=at_most, repeatable=repeatable
        )


class ReadsAsEmpty(SqliteSession):
    """A store that finds nothing due if its table is missing."""

    def rows(self, name: str, params: Params) -> Sequence[Row]:
        try:
            return super().rows(name, params)
        except sqlite3.OperationalError:
            if name == "claim_select":
                return ()
            raise


def works_from_memory(store: AlteredStore) -> None:
    """Open an empty database instead of one that cannot be reached."""

    def instead() -> sqlite3.Connection:
        made = AlteredStore()
        made.migrate()
        return made.database.connection

    store.database.in_an_outage = instead


class OnePageOnly(Schedules):
    """The second page is never mentioned."""

    def list(
        self,
        user_id: str,
        *,
        limit: int = 100,
        cursor: str | None = None,
        state: Listing = None,
        now: int | None = None,
        takes: Sift | None = None,
    ) -> Page:
        page = super().list(user_id, limit=limit, cursor=cursor, state=state, now=now, takes=takes)
        return page._replace(cursor=None)

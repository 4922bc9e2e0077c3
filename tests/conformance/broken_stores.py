"""Broken stores: the SQLite store with one method replaced, or one line of its SQL changed.

Each names the tests that have to fail; all others have to pass. A suite in which every test fails
for every defect would tell nobody what is wrong.
"""

import sqlite3
import time
from collections.abc import Callable, Sequence
from dataclasses import replace

from duetick.domain.creation import Repeatable
from duetick.domain.firing import Times
from duetick.domain.mirror import Change, fresh_row
from duetick.domain.schedule import IndexRow, Occurrence, Schedule
from duetick.domain.versions import Expected
from duetick.ports import OnPoisoned, Page
from duetick.stores.ids import new_id
from duetick.stores.sql.index import Claim, Claimed, SqlIndex, put_row
from duetick.stores.sql.rows import index_params, read_index
from duetick.stores.sql.schedules import SqlSchedules
from duetick.stores.sql.session import Params, Row, Session
from duetick.stores.sqlite.database import SqliteSession
from duetick.stores.sqlite.store import SqliteClaim
from duetick.testing.conformance.samples import SOON

from tests.conformance.broken import AlteredStore
from tests.conformance.meddled import Meddled

Breaks = Callable[[AlteredStore], None]

claim = SqliteClaim()


def sql(name: str, part: str, instead: str) -> Breaks:
    """One line of SQL says something else."""
    return lambda store: store.database.alter(name, part, instead)


def erasing_all_but(*tables: str) -> Breaks:
    """Something of an erased user stays."""

    def breaks(store: AlteredStore) -> None:
        for table in tables:
            store.database.alter(f"erase_{table}", ":user_id", ":user_id AND 1 = 0")

    return breaks


def index(kind: type[SqlIndex]) -> Breaks:
    """The index has one method of another kind."""

    def breaks(store: AlteredStore) -> None:
        store.index = kind(store.database, store.now, new_id, claim)

    return breaks


def claiming(how: Claim) -> Breaks:
    """The index claims another way."""

    def breaks(store: AlteredStore) -> None:
        store.index = SqlIndex(store.database, store.now, new_id, how)

    return breaks


def schedules(kind: type[SqlSchedules]) -> Breaks:
    """The schedules have one method of another kind."""

    def breaks(store: AlteredStore) -> None:
        store.schedules = kind(store.database, store.now, new_id)

    return breaks


class CommitsBetween(Meddled):
    """A session that commits what was done so far before it runs the query of that name."""

    def each(self, name: str, params: Sequence[Params]) -> Sequence[int]:
        if name == self._name:
            self.script("COMMIT; BEGIN IMMEDIATE")
        return self._session.each(name, params)


class Trusting(Meddled):
    """A session that answers a read from memory, and says that every write was done."""

    def each(self, name: str, params: Sequence[Params]) -> Sequence[int]:
        self._session.each(name, params)
        return [1 for _ in params]


class ReadsThenTakes(SqlIndex):
    """What is due is read in one transaction and taken in the next, without looking again."""

    def claim_due(
        self, now: int, limit: int = 100, *, ahead: int = 0, on_poisoned: OnPoisoned | None = None
    ) -> Sequence[Occurrence]:
        while True:
            with self._database.transaction() as session:
                seen = session.rows("claim_select", {"until": now + ahead, "limit": limit})
            time.sleep(0.001)  # the way to a database and back
            with self._database.transaction() as session:
                found = claim(Trusting(session, "claim_select", seen), now, limit, ahead)
            for one in found.poisoned:
                (on_poisoned or _nobody)(one)
            if found.occurrences or not found.due:
                return found.occurrences


def _nobody(_: Occurrence) -> None:
    """Is told."""


class LosesAdvances(Meddled):
    """A session that says it advanced the rows, and did not."""

    lost = 0

    def each(self, name: str, params: Sequence[Params]) -> Sequence[int]:
        """Run it, unless it advances."""
        if name == "claim_advance":
            self.lost += len(params)
            return [1 for _ in params]
        return self._session.each(name, params)


def loses_the_advance(session: Session, now: int, limit: int, ahead: int) -> Claimed:
    """The occurrences are recorded, and the rows stay where they were."""
    forgetful = LosesAdvances(session)
    found = claim(forgetful, now, limit, ahead)
    return replace(found, due=found.due - forgetful.lost)


def ends_early(session: Session, now: int, limit: int, ahead: int) -> Claimed:
    """A chunk that yields nothing is taken for the end."""
    return replace(claim(session, now, limit, ahead), due=0)


class KeepsPoison(Meddled):
    """A session in which a poison row stays in the index."""

    kept = 0

    def rows(self, name: str, params: Params) -> Sequence[Row]:
        """Run it, unless it would put poison aside."""
        if name == "poison_put":
            self.kept += 1
            return self._session.rows("index_upsert", params)
        return self._session.rows(name, params)


def starves_behind_poison(session: Session, now: int, limit: int, ahead: int) -> Claimed:
    """A poison row is seen, and stays where it is."""
    keeping = KeepsPoison(session)
    found = claim(keeping, now, limit, ahead)
    return replace(found, due=found.due - keeping.kept)


def records_later(session: Session, now: int, limit: int, ahead: int) -> Claimed:
    """The advance is committed before the record is written."""
    return claim(CommitsBetween(session, "occurrence_insert"), now, limit, ahead)


def fires_twice(session: Session, now: int, limit: int, ahead: int) -> Claimed:
    """What has been fired is neither remembered nor looked up."""
    rows = session.rows("claim_select", {"until": now + ahead, "limit": limit})
    forgetful = [(*row[:9], None) for row in rows]
    return claim(Trusting(session, "claim_select", forgetful), now, limit, ahead)


class OwnClock(Meddled):
    """A session that computes next times by a clock that is ahead of the time that was passed."""

    def each(self, name: str, params: Sequence[Params]) -> Sequence[int]:
        if name == "claim_advance":
            params = [{**one, "next_at": self._next(one)} for one in params]
        return self._session.each(name, params)

    def _next(self, advance: Params) -> int | None:
        row = read_index(self.rows("index_get", advance)[0])
        return max(int(str(advance["next_at"])), Times.of(row).after(SOON) or 0)


def reads_the_wall_clock(session: Session, now: int, limit: int, ahead: int) -> Claimed:
    """The next time follows a clock of its own, which is right on the day of most tests."""
    return claim(OwnClock(session), now, limit, ahead)


class EmptyTimezone(SqlIndex):
    """No timezone comes back as an empty one."""

    def get(self, user_id: str, key: str) -> IndexRow | None:
        row = super().get(user_id, key)
        return replace(row, timezone=row.timezone or "") if row else None


class CommitsTheRowFirst(SqlSchedules):
    """A put moves the index row in a transaction of its own."""

    def write(self, session: Session, change: Change) -> None:
        if change.row:
            put_row(session, change.row)
            session.script("COMMIT; BEGIN IMMEDIATE")
        super().write(session, change)


class ForgetsWhatWasDue(SqlSchedules):
    """A delete does not account for what was due."""

    def delete(
        self, user_id: str, key: str, *, now: int | None = None, if_version: Expected | None = None
    ) -> bool:
        return super().delete(user_id, key, now=0, if_version=if_version)


class MovesTheUnchanged(SqlSchedules):
    """Declaring a schedule again computes its time anew."""

    def put(
        self,
        schedule: Schedule,
        *,
        now: int | None = None,
        if_version: Expected | None = None,
        at_most: int | None = None,
        repeatable: Repeatable | None = None,
    ) -> Schedule:
        made = super().put(
            schedule, now=now, if_version=if_version, at_most=at_most, repeatable=repeatable
        )
        row = fresh_row(made, self._now() if now is None else now)
        if row and made.enabled:
            with self._database.transaction() as session:
                session.rows("index_upsert", index_params(row))
        return made


class ReadsAsEmpty(SqliteSession):
    """Where there is no table, nothing is due."""

    def rows(self, name: str, params: Params) -> Sequence[Row]:
        try:
            return super().rows(name, params)
        except sqlite3.OperationalError:
            if name == "claim_select":
                return ()
            raise


def reads_as_empty(store: AlteredStore) -> None:
    """A tick takes a schema that is missing for an empty one."""
    store.database.session = ReadsAsEmpty


def works_from_memory(store: AlteredStore) -> None:
    """Where the database cannot be reached, an empty one is made and used in its place."""

    def instead() -> sqlite3.Connection:
        made = AlteredStore()
        made.migrate()
        return made.database.connection

    store.database.in_an_outage = instead


class OnePageOnly(SqlSchedules):
    """The second page is never mentioned."""

    def list(self, user_id: str, *, limit: int = 100, cursor: str | None = None) -> Page:
        return replace(super().list(user_id, limit=limit, cursor=cursor), cursor=None)

"""The index on SQL. Claiming is one transaction for each chunk of rows."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Protocol

from duetick.domain.errors import PoisonedRow
from duetick.domain.firing import Missed, Times
from duetick.domain.occurrences import ranged
from duetick.domain.schedule import IndexRow, Occurrence
from duetick.domain.states import Reason
from duetick.stores.sql.rows import (
    index_params,
    occurrence_params,
    read_index,
    read_number,
    read_poisoned,
    storable,
)
from duetick.stores.sql.session import Database, Session, retried


class Claim(Protocol):
    """How a backend claims: the one part in which they differ."""

    def __call__(
        self, session: Session, now: int, limit: int, ahead: int
    ) -> tuple[int, Sequence[Occurrence]]:
        """How many rows were due, and what they yielded."""


def put_row(session: Session, row: IndexRow) -> None:
    """Index the row; a poisoned one of that name is mended by it."""
    session.rows("index_upsert", index_params(row))
    drop_poison(session, row.user_id, row.key)


def drop_row(session: Session, user_id: str, key: str) -> None:
    """Take the row away and keep how far it was fired."""
    name = {"user_id": user_id, "key": key}
    session.rows("watermark_keep", name)
    session.rows("index_remove", name)


def drop_poison(session: Session, user_id: str, key: str) -> None:
    """Forget that the row was poisoned."""
    session.rows("poison_remove", {"user_id": user_id, "key": key})


def poison(session: Session, broken: Sequence[tuple[IndexRow, Occurrence]], now: int) -> None:
    """Take rows that cannot be read out of the due range, and record why."""
    for row, occurrence in broken:
        drop_row(session, row.user_id, row.key)
        error = {"error": storable(occurrence.error), "now": now}
        session.rows("poison_put", index_params(row) | error)
    session.each("occurrence_insert", [occurrence_params(record) for _, record in broken])


class SqlIndex:
    """`ports.Index` on any SQL database."""

    def __init__(
        self, database: Database, now: Callable[[], int], new_id: Callable[[], str], claim: Claim
    ) -> None:
        self._database = database
        self._now = now
        self._new_id = new_id
        self._claim = claim

    @retried
    def upsert(self, row: IndexRow) -> None:
        """See `ports.Index`."""
        with self._database.transaction() as session:
            put_row(session, row)

    @retried
    def remove(self, user_id: str, key: str) -> None:
        """See `ports.Index`."""
        with self._database.transaction() as session:
            drop_row(session, user_id, key)
            drop_poison(session, user_id, key)

    @retried
    def get(self, user_id: str, key: str) -> IndexRow | None:
        """See `ports.Index`."""
        with self._database.transaction() as session:
            rows = session.rows("index_get", {"user_id": user_id, "key": key})
        return read_index(rows[0]) if rows else None

    @retried
    def claim_due(self, now: int, limit: int = 100, *, ahead: int = 0) -> Sequence[Occurrence]:
        """See `ports.Index`."""
        while True:
            with self._database.claiming() as session:
                due, claimed = self._claim(session, now, limit, ahead)
            if claimed or not due:
                return claimed

    @retried
    def poisoned(self, limit: int = 100, *, since: int = 0) -> Sequence[Occurrence]:
        """See `ports.Index`."""
        with self._database.transaction() as session:
            rows = session.rows("poison_list", {"since": since, "limit": limit})
        return [read_poisoned(row) for row in rows]

    @retried
    def backlog(self, now: int, limit: int = 10_000) -> int:
        """See `ports.Index`."""
        with self._database.transaction() as session:
            return read_number(session.rows("backlog", {"now": now, "limit": limit})[0][0])

    @retried
    def restore(self, user_id: str, key: str, *, now: int | None = None) -> bool:
        """See `ports.Index`."""
        at = self._now() if now is None else now
        with self._database.transaction() as session:
            rows = session.rows("poison_get", {"user_id": user_id, "key": key})
            if not rows:
                return False
            self._mend(session, read_index(rows[0]), at)
        return True

    def _mend(self, session: Session, row: IndexRow, now: int) -> None:
        times = Times.of(row)
        try:
            fresh, first = times.after(now), times.after(row.next_fire_at)
        except ValueError as error:
            raise PoisonedRow(f"{row.user_id}/{row.key} still cannot be read: {error}") from error
        if first is not None and first <= now:
            last = times.newest(row.next_fire_at, now)
            count = times.count(row.next_fire_at, now)
            held = ranged(row, Missed(first, last or first, count), Reason.MISSED, now)
            session.rows("occurrence_insert", occurrence_params(replace(held, id=self._new_id())))
        drop_poison(session, row.user_id, row.key)
        if fresh is not None:
            put_row(session, replace(row, next_fire_at=fresh))

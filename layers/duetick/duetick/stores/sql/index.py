"""The index on SQL. Claiming is one transaction for each chunk of rows."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from duetick.domain.mirror import restored
from duetick.domain.occurrences import apart
from duetick.domain.schedule import IndexRow, Occurrence
from duetick.ports import OnPoisoned
from duetick.stores.sql.rows import (
    index_params,
    occurrence_params,
    read_index,
    read_number,
    read_poisoned,
    storable,
)
from duetick.stores.sql.session import Database, Params, Session, retried


@dataclass(frozen=True, slots=True)
class Claimed:
    """How many rows were due, what they yielded, and those that could not be read."""

    due: int
    occurrences: Sequence[Occurrence] = ()
    poisoned: Sequence[Occurrence] = ()


class Claim(Protocol):
    """How a backend claims: the one part in which they differ."""

    def __call__(self, session: Session, now: int, limit: int, ahead: int) -> Claimed:
        """One chunk."""


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


def record_ranges(
    session: Session, ranges: Sequence[Occurrence], new_id: Callable[[], str]
) -> None:
    """Account for times that do not fire, and see that no row makes them again."""
    for held in ranges:
        for part in apart(held, known_within(session, held)):
            session.rows("occurrence_insert", occurrence_params(replace(part, id=new_id())))
        through = held.nominal_at if held.range_end is None else held.range_end
        mark: Params = {"user_id": held.user_id, "key": held.key, "fired_through": through}
        session.rows("watermark_raise", mark)
        session.rows("index_mark_raise", mark)


def known_within(session: Session, held: Occurrence) -> list[int]:
    """The times of a range that have an occurrence of their own."""
    within: Params = {
        "user_id": held.user_id,
        "key": held.key,
        "first": held.nominal_at,
        "last": held.range_end,
    }
    return [read_number(at) for (at,) in session.rows("occurrences_within", within)]


def poison(session: Session, broken: Sequence[tuple[IndexRow, Occurrence]], now: int) -> None:
    """Take rows that cannot be read out of the due range, and record why."""
    for row, occurrence in broken:
        drop_row(session, row.user_id, row.key)
        name: Params = {"user_id": row.user_id, "key": row.key}
        session.rows("watermark_raise", {**name, "fired_through": row.next_fire_at})
        error = {"error": storable(occurrence.error), "now": now}
        session.rows("poison_put", index_params(row) | error)
    session.each("occurrence_insert", [occurrence_params(record) for _, record in broken])


class SqlIndex:
    """`ports.Index` on any SQL database."""

    def __init__(
        self,
        database: Database,
        now: Callable[[], int],
        new_id: Callable[[], str],
        claim: Claim,
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
    def claim_due(
        self, now: int, limit: int = 100, *, ahead: int = 0, on_poisoned: OnPoisoned | None = None
    ) -> Sequence[Occurrence]:
        """See `ports.Index`."""
        while True:
            with self._database.claiming() as session:
                claimed = self._claim(session, now, limit, ahead)
            if on_poisoned:
                for one in claimed.poisoned:
                    on_poisoned(one)
            if claimed.occurrences or not claimed.due:
                return claimed.occurrences

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
            row, missed = restored(read_index(rows[0]), at)
            record_ranges(session, missed, self._new_id)
            drop_poison(session, user_id, key)
            if row is not None:
                put_row(session, row)
        return True

"""The embedded store: a file, or memory."""

from collections.abc import Sequence
from typing import cast

from duetick.domain.schedule import Occurrence
from duetick.ports import Clock
from duetick.stores.ids import new_id
from duetick.stores.sql.claim import ClaimPlan, DueRow, Shapes, on_hand
from duetick.stores.sql.index import drop_row, poison
from duetick.stores.sql.queries import migrations
from duetick.stores.sql.rows import occurrence_params
from duetick.stores.sql.session import Params, Row, Session
from duetick.stores.sql.store import SqlStore
from duetick.stores.sqlite.database import Connect, SqliteDatabase


class SqliteClaim:
    """See `Claim`: the transaction keeps every other writer out."""

    def __init__(self) -> None:
        self._shapes = Shapes()

    def __call__(
        self, session: Session, now: int, limit: int, ahead: int
    ) -> tuple[int, Sequence[Occurrence]]:
        """See `Claim`."""
        rows = session.rows("claim_select", {"until": now + ahead, "limit": limit})
        plan = ClaimPlan(now, ahead, new_id, self._shapes)
        plan.add(cast("Sequence[DueRow]", rows))
        made = plan.result
        session.each("claim_advance", [_advance(rows[p], *to) for p, *to in made.advanced])
        for place, through in made.done:
            row = rows[place]
            session.rows("claim_advance", _advance(row, through, through))
            drop_row(session, str(row[0]), str(row[1]))
        poison(session, made.broken, now)
        params = [occurrence_params(o) for o in made.occurrences]
        written = session.each("occurrence_insert", params)
        new = [o for o, count in zip(made.occurrences, written, strict=True) if count]
        return len(rows), [occurrence for occurrence in new if on_hand(occurrence)]


def _advance(row: Row, next_at: int, through: int) -> Params:
    return {
        "user_id": str(row[0]),
        "key": str(row[1]),
        "next_at": next_at,
        "fired_through": through,
    }


def open_sqlite(connect: Connect, clock: Clock | None = None) -> SqlStore:
    """A store on connections of that factory."""
    return SqlStore(SqliteDatabase(connect), SqliteClaim(), migrations("sqlite"), clock)

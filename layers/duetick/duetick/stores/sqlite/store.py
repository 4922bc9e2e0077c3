"""The embedded store: a file, or memory."""

from collections.abc import Sequence
from dataclasses import replace
from typing import cast

from duetick.domain.schedule import Occurrence
from duetick.ports import Clock
from duetick.stores.ids import new_id
from duetick.stores.sql.claim import ClaimPlan, DueRow, Remembered, Yield, on_hand
from duetick.stores.sql.index import Claimed, drop_row, known_within, poison
from duetick.stores.sql.queries import migrations
from duetick.stores.sql.rows import occurrence_params
from duetick.stores.sql.session import Params, Row, Session
from duetick.stores.sql.store import SqlStore
from duetick.stores.sqlite.database import Connect, SqliteDatabase


class SqliteClaim:
    """See `Claim`: the transaction keeps every other writer out."""

    def __init__(self) -> None:
        self._remembered = Remembered()

    def __call__(self, session: Session, now: int, limit: int, ahead: int) -> Claimed:
        """See `Claim`."""
        rows = session.rows("claim_select", {"until": now + ahead, "limit": limit})
        plan = ClaimPlan(new_id, self._remembered.at(now, ahead))
        plan.add(cast("Sequence[DueRow]", rows))
        _leave_out_known(session, plan)
        made = plan.result
        session.each("claim_advance", [_advance(rows[p], *to) for p, *to in made.advanced])
        for place, through in made.done:
            row = rows[place]
            session.rows("claim_advance", _advance(row, through, through))
            drop_row(session, str(row[0]), str(row[1]))
        poison(session, made.broken, now)
        occurrences = plan.occurrences()
        written = session.each("occurrence_insert", _records(made, occurrences))
        new = [o for o, count in zip(occurrences, written, strict=True) if count]
        broken = [record for _, record in made.broken]
        return Claimed(len(rows), [occurrence for occurrence in new if on_hand(occurrence)], broken)


def _leave_out_known(session: Session, plan: ClaimPlan) -> None:
    found: dict[int, list[int]] = {}
    for n in plan.ranges():
        held, row = plan.result.shapes[n], plan.result.rows[n]
        known = known_within(session, replace(held, user_id=row[0], key=row[1]))
        if known:
            found[n] = known
    if found:
        plan.leave_out(found)


def _records(made: Yield, occurrences: Sequence[Occurrence]) -> list[Params]:
    """Their parameters: those of a shape once, and over them what is each one's own."""
    shapes = {id(shape): shape for shape in made.shapes}
    told = {place: occurrence_params(shape) for place, shape in shapes.items()}
    return [
        {
            **told[id(shape)],
            "user_id": one.user_id,
            "key": one.key,
            "cron": one.cron,
            "timezone": one.timezone,
            "id": one.id,
            "flow": one.flow,
            "timing": one.timing,
        }
        for shape, one in zip(made.shapes, occurrences, strict=True)
    ]


def _advance(row: Row, next_at: int, through: int) -> Params:
    return {
        "user_id": str(row[0]),
        "key": str(row[1]),
        "next_at": next_at,
        "fired_through": through,
    }


def open_sqlite(
    connect: Connect, clock: Clock | None = None, *, look_ahead: bool = False
) -> SqlStore:
    """A store on connections of that factory."""
    steps = migrations("sqlite")
    return SqlStore(SqliteDatabase(connect), SqliteClaim(), steps, clock, look_ahead=look_ahead)

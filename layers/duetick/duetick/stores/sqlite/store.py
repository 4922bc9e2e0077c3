"""The embedded store: a file, or memory."""

from collections.abc import Sequence

from duetick.domain.schedule import IndexRow, Occurrence
from duetick.ports import Clock
from duetick.stores.sql.claim import ClaimPlan
from duetick.stores.sql.index import drop_row
from duetick.stores.sql.queries import migrations
from duetick.stores.sql.rows import index_params, occurrence_params, read_index, read_mark
from duetick.stores.sql.session import Params, Session
from duetick.stores.sql.store import SqlStore, new_id
from duetick.stores.sqlite.database import Connect, SqliteDatabase


def claim(session: Session, now: int, limit: int, ahead: int) -> tuple[int, Sequence[Occurrence]]:
    """See `Claim`: the transaction keeps every other writer out."""
    rows = session.rows("claim_select", {"until": now + ahead, "limit": limit})
    plan = ClaimPlan(now, ahead, new_id)
    for row in rows:
        plan.add(read_index(row), read_mark(row[9]))
    made = plan.result
    session.each("claim_advance", [_advance(*advanced) for advanced in made.advanced])
    for done, through in made.done:
        session.rows("claim_advance", _advance(done, done.next_fire_at, through))
        drop_row(session, done.user_id, done.key)
    for broken, error in made.broken:
        drop_row(session, broken.user_id, broken.key)
        session.rows("poison_put", index_params(broken) | {"error": error, "now": now})
    written = session.each("occurrence_insert", [occurrence_params(o) for o in made.occurrences])
    new = [o for o, count in zip(made.occurrences, written, strict=True) if count]
    return len(rows), [occurrence for occurrence in new if occurrence.fence]


def _advance(row: IndexRow, next_at: int, through: int) -> Params:
    return {
        "user_id": row.user_id,
        "key": row.key,
        "next_at": next_at,
        "fired_through": through,
    }


def open_sqlite(connect: Connect, clock: Clock | None = None) -> SqlStore:
    """A store on connections of that factory."""
    return SqlStore(SqliteDatabase(connect), claim, migrations("sqlite"), clock)

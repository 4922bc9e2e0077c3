"""The shelf on SQLite: a file, or memory."""

from collections.abc import Iterator, Sequence
from typing import Final, cast

from duetick.domain.attempts import Begun, Settled
from duetick.domain.claims import DueRow, LastTick
from duetick.domain.failures import Event
from duetick.domain.occurrence import Leased, Occurrence
from duetick.ports import Chunk, Fair
from duetick.stores.sql.claim import (
    ChunkPlan,
    endings,
    leave_out_param,
    rows_within,
    set_aside,
    tell_of,
)
from duetick.stores.sql.queries import migrations
from duetick.stores.sql.quick import begin_call, params_of_lease
from duetick.stores.sql.rows import ATTEMPTS, event_params, occurrence_params, read_begun
from duetick.stores.sql.session import Params, Session, Value
from duetick.stores.sql.shelf import SqlShelf
from duetick.stores.sqlite.database import ConnectSqlite, SqliteDatabase

ADVANCED: Final = ("next_at", "mark", "user_id", "key")
"""The parameters of `claim_advance`."""

CLAIMED: Final = (
    *("nominal_at", "fence", "state", "reason", "due_at", "priority", "lease_until", "exclusive"),
    *("policies", "range_end", "count", "created_at", "updated_at"),
)
"""The columns of an occurrence that a claim gives, and that its row does not have."""

RECORDED: Final = ("user_id", "key", "cron", "timezone", "flow", "redefined_at", "id", *CLAIMED)
"""The parameters of `occurrence_claimed`."""


class SqliteClaim:
    """See `ClaimChunk`. The transaction keeps every other writer out."""

    def __init__(self) -> None:
        self._tick = LastTick()

    def __call__(self, session: Session, now: int, limit: int, ahead: int, fair: Fair) -> Chunk:
        """See `ClaimChunk`."""
        if fair.part and fair.part.number:  # one writer claims for all parts
            return Chunk(0)
        params: Params = {
            "until": now + ahead - fair.late,
            "limit": limit,
            "leave_out": leave_out_param(fair),
        }
        found = session.rows("claim_select", params)
        if not found:
            return Chunk(0)
        rows = [found[place] for place in rows_within(fair, found, limit)]
        plan = ChunkPlan(cast("Sequence[DueRow]", rows), now)
        plan.decide(self._tick.at(now, ahead, fair.pauses, fair.limits))
        _leave_out_known(session, plan)
        session.every("claim_advance", ADVANCED, _advances(plan))
        for place, _ in plan.done:
            name = {"user_id": plan.rows[place][0], "key": plan.rows[place][1]}
            session.several([("mark_keep", name), ("index_remove", name)])
        told = [*tell_of(session, plan.find_poisoned())]
        session.several([*endings(session, plan), *told, *set_aside(plan.broken)])
        leased = [*plan.occurrences()]
        if session.every("occurrence_claimed", RECORDED, _records(plan)) < len(plan.made):
            new = {row[0] for row in session.rows("occurrences_of_chunk", {"stem": plan.stem})}
            leased = [one for one in leased if one.id in new]
        return Chunk(len(found), leased, plan.find_poisoned())


def _leave_out_known(session: Session, plan: ChunkPlan) -> None:
    known: dict[int, list[int]] = {}
    for n in plan.ranges():
        user_id, key, *_ = plan.rows[plan.of[n]]
        whole = {"first": plan.made[n].nominal_at, "last": plan.made[n].range_end}
        rows = session.rows("occurrences_within", {"user_id": user_id, "key": key, **whole})
        if rows:
            known[n] = [row[0] for row in rows]
    if known:
        plan.leave_out(known)


def _advances(plan: ChunkPlan) -> Iterator[tuple[Value, ...]]:
    """Yield the values of `ADVANCED`. A row that is done gets its mark, then goes."""
    done = ((place, mark, mark) for place, mark in plan.done)
    for place, next_at, mark in (*plan.advanced, *done):
        row = plan.rows[place]
        yield next_at, mark, row[0], row[1]


def _records(plan: ChunkPlan) -> Iterator[tuple[Value, ...]]:
    """Yield the values of `RECORDED`. The values of `CLAIMED` are computed once for a template."""
    different = {id(made): made for made in plan.made}
    claimed = {place: _claimed(made) for place, made in different.items()}
    for made, place, name in zip(plan.made, plan.of, plan.ids(), strict=True):
        user_id, key, cron, timezone, _, flow, _, redefined_at, _, _ = plan.rows[place]
        row = user_id, key, cron, timezone, flow, redefined_at, name
        yield row + claimed[id(made)]


def _claimed(made: Occurrence) -> tuple[Value, ...]:
    every = occurrence_params(made)
    return (*(every[name] for name in CLAIMED),)


class SqliteShelf(SqlShelf):
    """`ports.Shelf` on SQLite."""

    def __init__(self, database: SqliteDatabase) -> None:
        super().__init__(database, SqliteClaim(), migrations("sqlite"))
        self._file = database

    def begin(self, leases: Sequence[Leased], now: int) -> Sequence[Begun | None]:
        """See `ports.Shelf`."""
        with self._database.transaction() as session:
            return [_begin(session, lease, now) for lease in leases]

    def settle(self, settled: Sequence[Settled], now: int) -> Sequence[Occurrence | None]:
        """See `ports.Shelf`."""
        del now
        with self._database.transaction() as session:
            return [_move_leased(session, *one) for one in settled]

    def write_lease(
        self, before: Occurrence, after: Occurrence, event: Event | None = None
    ) -> Occurrence | None:
        """See `ports.Shelf`."""
        with self._database.transaction() as session:
            return _move_leased(session, before, after, event)

    def erase(self, user_id: str) -> int:
        """See `ports.Shelf`. The data is overwritten in the file and in its log, too."""
        count = super().erase(user_id)
        self._file.forget_deleted()
        return count


def _begin(session: Session, lease: Leased, now: int) -> Begun | None:
    rows = session.rows(*begin_call(lease, now))
    if not rows:
        return None
    run: Params = {
        "user_id": lease.user_id,
        "key": lease.key,
        "first": int(rows[0][ATTEMPTS] == 1),
        "now": now,
    }
    return read_begun(rows[0], session.rows("run_note", run))


def _move_leased(
    session: Session, before: Occurrence, after: Occurrence, event: Event | None
) -> Occurrence | None:
    if session.each("occurrence_move_leased", [params_of_lease(before, after)]) == [0]:
        return None
    if event:
        session.rows("event_put", event_params(before.identity, event))
    return after


def open_sqlite(connect: ConnectSqlite) -> SqliteShelf:
    """Open a shelf on the connections of a factory."""
    return SqliteShelf(SqliteDatabase(connect))

"""The claim on Postgres: two statements for a chunk, whatever its size."""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from typing import Final, cast

from duetick.domain.claims import DueRow, LastTick
from duetick.domain.occurrence import Occurrence
from duetick.domain.policies import Overlap
from duetick.ports import Chunk, Fair
from duetick.stores.sql.claim import (
    NEXT_FIRE_AT,
    ChunkPlan,
    endings,
    is_leased,
    left_out,
    rows_within,
    set_aside,
    tell_of,
)
from duetick.stores.sql.session import Params, Row, Session, Value

SENT: Final[Mapping[str, Callable[[Occurrence], Value]]] = {
    "nominal_at": attrgetter("nominal_at"),
    "due_at": attrgetter("due_at"),
    "lease_until": attrgetter("lease_until"),
    "state": attrgetter("state"),
    "reason": attrgetter("reason"),
    "fence": attrgetter("fence"),
    "priority": attrgetter("priority"),
    "exclusive": lambda one: int(one.policies.overlap is not Overlap.ALLOW),
    "range_end": attrgetter("range_end"),
    "count": attrgetter("count"),
}
"""The columns of an occurrence that its row does not have. They are numbers and our own words, not
texts of users, so they can travel as joined texts."""

LOWEST: Final = -(2**63)


class PostgresClaim:
    """See `ClaimChunk`. Rows are locked as they are read; rows with another's lock are skipped."""

    def __init__(self) -> None:
        self._tick = LastTick()
        self._reached = ((0, 0), LOWEST)

    def __call__(self, session: Session, now: int, limit: int, ahead: int, fair: Fair) -> Chunk:
        """See `ClaimChunk`."""
        found = self._select(session, now, limit, ahead, fair)
        if found is None:
            return Chunk(0)
        places = str(found[0]).split(";")
        rows = cast("Sequence[DueRow]", [*zip(*found[1:], strict=True)])
        taken = rows_within(fair, rows, limit)
        if not fair.leave_out and fair.share is None:
            self._reached = ((now, ahead), rows[-1][NEXT_FIRE_AT])
        if len(taken) < len(rows):
            places, rows = [places[n] for n in taken], [rows[n] for n in taken]
        plan = ChunkPlan(rows, now)
        plan.decide(self._tick.at(now, ahead, fair.pauses, fair.limits))
        _leave_out_known(session, plan, places)
        claimed = _write(session, plan, places)
        return Chunk(len(places), claimed, plan.poisoned())

    def _select(self, session: Session, now: int, limit: int, ahead: int, fair: Fair) -> Row | None:
        """Select due rows behind this tick's last chunk; if there are none, from the start.

        The index keeps the old entries of claimed rows as long as a snapshot can see them. A chunk
        that begins at the end of the last one need not skip them. The second read misses nothing.
        """
        tick, start = self._reached
        params: dict[str, Value] = {"until": now + ahead - fair.late, "limit": limit}
        params["leave_out"] = left_out(fair)
        for lowest in (start, LOWEST) if tick == (now, ahead) else (LOWEST,):
            (chunk,) = session.rows("claim_select", params | {"from": lowest})
            if chunk[0] is not None:
                return chunk
        return None


def _leave_out_known(session: Session, plan: ChunkPlan, places: Sequence[str]) -> None:
    """Leave known times out of all ranges of the chunk, by one query. Most chunks have no range."""
    ranges = plan.ranges()
    if not ranges:
        return
    known = defaultdict[int, list[int]](list)
    params: Params = {
        "places": ";".join([places[plan.of[n]] for n in ranges]),
        "first": ",".join([str(plan.made[n].nominal_at) for n in ranges]),
        "last": ",".join([str(plan.made[n].range_end) for n in ranges]),
    }
    for serial, nominal_at in session.rows("claim_known", params):
        known[ranges[serial - 1]].append(nominal_at)
    if known:
        plan.leave_out(known)


def _write(session: Session, plan: ChunkPlan, places: Sequence[str]) -> Sequence[Occurrence]:
    """Send all writes, and make the occurrences while the database works."""
    told = [*tell_of(session, plan.poisoned())]
    session.several([*endings(session, plan), *told, *set_aside(plan.broken)])
    answer = session.last([("claim_write", _params(plan, places))])
    made = [occurrence for occurrence in plan.occurrences() if is_leased(occurrence)]
    ((ids, *_),) = answer()[0]
    if ids is None:
        return made
    new = frozenset(str(ids).split(","))
    return [occurrence for occurrence in made if occurrence.id in new]


def _params(plan: ChunkPlan, places: Sequence[str]) -> Params:
    return _columns_of(plan.made) | {
        "now": plan.now,
        "stem": plan.stem,
        "places": ";".join([places[place] for place in plan.of]),
        "advanced": ";".join([places[place] for place, _, _ in plan.advanced]),
        "next_at": ",".join([str(next_at) for _, next_at, _ in plan.advanced]),
        "marks": ",".join([str(mark) for _, _, mark in plan.advanced]),
        "done": ";".join([places[place] for place, _ in plan.done]),
        "done_marks": ",".join([str(mark) for _, mark in plan.done]),
    }


def _columns_of(made: Sequence[Occurrence]) -> dict[str, Value]:
    """Return each column of `SENT`: once if all values are alike, as most are; else in full."""
    different = {id(one): one for one in made}.values()
    params: dict[str, Value] = {}
    for name, read in SENT.items():
        alike = {read(one) for one in different}
        in_full = [_text(read(one)) for one in made] if len(alike) > 1 else ()
        params[name] = ",".join(in_full)
        params[f"{name}_of_all"] = alike.pop() if len(alike) == 1 else None
    return params


def _text(value: Value) -> str:
    return "" if value is None else str(value)

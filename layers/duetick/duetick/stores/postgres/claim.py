"""The claim on Postgres that locks what it reads: two statements for a chunk of any size.

It decides every chunk. `fast_claim` writes the everyday ones without locks.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import attrgetter
from typing import Final, cast

from duetick.domain.claims import DueRow, LastTick, Templates
from duetick.domain.occurrence import Occurrence
from duetick.domain.policies import Overlap
from duetick.ports import Chunk, Fair
from duetick.stores.sql.claim import (
    NEXT_FIRE_AT,
    ChunkPlan,
    endings,
    leave_out_param,
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
texts of users, so they can travel as arrays in text."""

LOWEST: Final = -(2**63)
EMPTY: Final = "{}"


class LockingClaim:
    """See `ClaimChunk`. Rows are locked as they are read; rows with another's lock are skipped."""

    def __init__(self) -> None:
        self._tick = LastTick()
        self._reached = ((0, 0), LOWEST)

    def __call__(self, session: Session, now: int, limit: int, ahead: int, fair: Fair) -> Chunk:
        """See `ClaimChunk`."""
        found = self._select(session, now, limit, ahead, fair)
        if found is None:
            return Chunk(0)
        places, rows = read_chunk(found)
        taken = rows_within(fair, rows, limit)
        if not fair.leave_out and fair.share is None:
            self._reached = ((now, ahead), rows[-1][NEXT_FIRE_AT])
        if len(taken) < len(rows):
            places, rows = [places[n] for n in taken], [rows[n] for n in taken]
        return claim_locked(session, places, rows, self.templates(now, ahead, fair))

    def templates(self, now: int, ahead: int, fair: Fair) -> Templates:
        """Return the templates of the current tick."""
        return self._tick.at(now, ahead, fair.pauses, fair.limits)

    def _select(self, session: Session, now: int, limit: int, ahead: int, fair: Fair) -> Row | None:
        """Select due rows behind this tick's last chunk; if there are none, from the start.

        The index keeps the old entries of claimed rows as long as a snapshot can see them. A chunk
        that begins at the end of the last one need not skip them. The second read misses nothing.
        """
        tick, start = self._reached
        params: dict[str, Value] = {"until": now + ahead - fair.late, "limit": limit}
        params["leave_out"] = leave_out_param(fair)
        query = "claim_select"
        if fair.part:
            query, params = "claim_select_part", params | fair.part._asdict()
        for lowest in (start, LOWEST) if tick == (now, ahead) else (LOWEST,):
            (chunk,) = session.rows(query, params | {"from": lowest})
            if chunk[0] is not None:
                return chunk
        return None


def read_chunk(found: Row) -> tuple[Sequence[str], Sequence[DueRow]]:
    """Return the places and the rows of a chunk. It travels as one JSON array for each column."""
    places, *columns = found
    return str(places).split(";"), cast("Sequence[DueRow]", [*zip(*columns, strict=True)])


def claim_locked(
    session: Session, places: Sequence[str], rows: Sequence[DueRow], templates: Templates
) -> Chunk:
    """Claim rows that the transaction has locked, and commit it."""
    plan = ChunkPlan(rows, templates.now)
    plan.decide(templates)
    _leave_out_known(session, plan, places)
    claimed = _write(session, plan, places)
    return Chunk(len(places), claimed, plan.find_poisoned())


def _leave_out_known(session: Session, plan: ChunkPlan, places: Sequence[str]) -> None:
    """Leave known times out of all ranges of the chunk, by one query. Most chunks have no range."""
    ranges = plan.ranges()
    if not ranges:
        return
    known = defaultdict[int, list[int]](list)
    params: Params = {
        "places": tids(places[plan.of[n]] for n in ranges),
        "first": array(plan.made[n].nominal_at for n in ranges),
        "last": array(plan.made[n].range_end for n in ranges),
    }
    for serial, nominal_at in session.rows("claim_known", params):
        known[ranges[serial - 1]].append(nominal_at)
    if known:
        plan.leave_out(known)


def _write(session: Session, plan: ChunkPlan, places: Sequence[str]) -> Sequence[Occurrence]:
    """Send all writes, and make the occurrences while the database works."""
    told = [*tell_of(session, plan.find_poisoned())]
    session.several([*endings(session, plan), *told, *set_aside(plan.broken)])
    answer = session.last([("claim_write", _params(plan, places))])
    made = [*plan.occurrences()]
    ((ids, *_),) = answer()[0]
    if ids is None:
        return made
    new = frozenset(str(ids).split(","))
    return [occurrence for occurrence in made if occurrence.id in new]


def _params(plan: ChunkPlan, places: Sequence[str]) -> Params:
    return _columns(plan.made) | {
        "now": plan.now,
        "stem": plan.stem,
        "places": tids(places[place] for place in plan.of),
        "advanced": tids(places[place] for place, _, _ in plan.advanced),
        "next_at": array(next_at for _, next_at, _ in plan.advanced),
        "marks": array(mark for _, _, mark in plan.advanced),
        "done": tids(places[place] for place, _ in plan.done),
        "done_marks": array(mark for _, mark in plan.done),
    }


def _columns(made: Sequence[Occurrence]) -> dict[str, Value]:
    """Return each column of `SENT`: one value if all are alike, as mostly; else all values."""
    params: dict[str, Value] = {}
    for name, values, alike in columns_of(made):
        params[name] = EMPTY if alike else array(values)
        params[f"{name}_of_all"] = values[0] if alike else None
    return params


def columns_of(made: Sequence[Occurrence]) -> Iterator[tuple[str, Sequence[Value], bool]]:
    """Yield the name and the values of each column of `SENT`: one value, if all are alike."""
    different = [*{id(one): one for one in made}.values()]
    for name, read in SENT.items():
        values = [*map(read, different)]
        alike = len({*values}) < 2
        yield name, (values or [None]) if alike else [*map(read, made)], alike


def array(values: Iterable[Value]) -> str:
    """Return an array of numbers, or of our own words."""
    return f"{{{','.join(map(str, values))}}}".replace("None", "NULL")


def tids(places: Iterable[str]) -> str:
    """Return an array of places."""
    joined = '","'.join(places)
    return f'{{"{joined}"}}' if joined else EMPTY

"""The claim on Postgres: two statements for a chunk, whatever its size."""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from typing import Final, cast

from duetick.domain.policies import Overlap
from duetick.domain.schedule import Occurrence
from duetick.stores.ids import new_id
from duetick.stores.sql.claim import ClaimPlan, DueRow, Remembered, on_hand
from duetick.stores.sql.index import Claimed, poison
from duetick.stores.sql.rows import read_number
from duetick.stores.sql.session import Params, Row, Session, Value

SENT: Final[Mapping[str, Callable[[Occurrence], Value]]] = {
    "nominal_at": attrgetter("nominal_at"),
    "due_at": attrgetter("due_at"),
    "lease_until": attrgetter("lease_until"),
    "state": attrgetter("state"),
    "reason": attrgetter("reason"),
    "fence": attrgetter("fence"),
    "priority": attrgetter("priority"),
    "exclusive": lambda shape: int(shape.policies.overlap is not Overlap.ALLOW),
    "range_end": attrgetter("range_end"),
    "count": attrgetter("count"),
}
"""What a claim says of an occurrence that its row does not. Numbers and our own words: they can
travel as joined texts. What users wrote is not among them."""


LOWEST: Final = -(2**63)
NEXT_FIRE_AT: Final = 4


class PostgresClaim:
    """See `Claim`: rows are locked as they are read; those that others hold are left to them."""

    def __init__(self) -> None:
        self._remembered = Remembered()
        self._reached = ((0, 0), LOWEST)

    def __call__(self, session: Session, now: int, limit: int, ahead: int) -> Claimed:
        """See `Claim`."""
        chunk = self._select(session, now, limit, ahead)
        if chunk is None:
            return Claimed(0)
        places = str(chunk[0]).split(";")
        rows = cast("Sequence[DueRow]", [*zip(*_columns(chunk), strict=True)])
        plan = ClaimPlan(new_id, self._remembered.at(now, ahead))
        plan.add(rows)
        _leave_out_known(session, plan, places)
        claimed = _write(session, plan, places, now)
        self._reached = ((now, ahead), rows[-1][NEXT_FIRE_AT])
        broken = [record for _, record in plan.result.broken]
        return Claimed(len(places), claimed, broken)

    def _select(self, session: Session, now: int, limit: int, ahead: int) -> Row | None:
        """Rows from where the last chunk of this tick ended, and where there are none, any.

        What a tick has claimed stays in the index until no snapshot can see it any more: reading on
        from there spares each chunk all that an old snapshot holds. The last look misses nothing.
        """
        tick, start = self._reached
        params = {"until": now + ahead, "limit": limit}
        for lowest in (start, LOWEST) if tick == (now, ahead) else (LOWEST,):
            (chunk,) = session.rows("claim_select", params | {"from": lowest})
            if chunk[0] is not None:
                return chunk
        return None


def _columns(chunk: Sequence[object]) -> list[Sequence[object]]:
    return [column for column in chunk[1:] if isinstance(column, list)]


def _leave_out_known(session: Session, plan: ClaimPlan, places: Sequence[str]) -> None:
    """All ranges of the chunk in one question; most chunks have none."""
    ranges = plan.ranges()
    if not ranges:
        return
    made, known = plan.result, defaultdict[int, list[int]](list)
    asked: Params = {
        "places": ";".join([places[made.places[n]] for n in ranges]),
        "first": ",".join([str(made.shapes[n].nominal_at) for n in ranges]),
        "last": ",".join([_text(made.shapes[n].range_end) for n in ranges]),
    }
    for serial, nominal_at in session.rows("claim_known", asked):
        known[ranges[read_number(serial) - 1]].append(read_number(nominal_at))
    if known:
        plan.leave_out(known)


def _write(
    session: Session, plan: ClaimPlan, places: Sequence[str], now: int
) -> Sequence[Occurrence]:
    """Send it all, and make the occurrences while the database works."""
    poison(session, plan.result.broken, now)
    answer = session.last("claim_write", _params(plan, places, now))
    made = [occurrence for occurrence in plan.occurrences() if on_hand(occurrence)]
    ids = answer()[0][0]
    if ids is None:
        return made
    new = frozenset(str(ids).split(","))
    return [occurrence for occurrence in made if occurrence.id in new]


def _params(plan: ClaimPlan, places: Sequence[str], now: int) -> Params:
    made = plan.result
    return _columns_of(made.shapes) | {
        "now": now,
        "stem": plan.stem,
        "places": ";".join([places[place] for place in made.places]),
        "advanced": ";".join([places[place] for place, _, _ in made.advanced]),
        "next_at": ",".join([str(next_at) for _, next_at, _ in made.advanced]),
        "through": ",".join([str(through) for _, _, through in made.advanced]),
        "done": ";".join([places[place] for place, _ in made.done]),
        "done_through": ",".join([str(through) for _, through in made.done]),
    }


def _columns_of(shapes: Sequence[Occurrence]) -> dict[str, Value]:
    """Each column of `SENT`: said once where all are alike, and most of them are; else in full."""
    different = {id(shape): shape for shape in shapes}.values()
    params: dict[str, Value] = {}
    for name, read in SENT.items():
        alike = {read(shape) for shape in different}
        in_full = [_text(read(shape)) for shape in shapes] if len(alike) > 1 else ()
        params[name] = ",".join(in_full)
        params[f"{name}_of_all"] = alike.pop() if len(alike) == 1 else None
    return params


def _text(value: Value) -> str:
    return "" if value is None else str(value)

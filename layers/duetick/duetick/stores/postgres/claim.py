"""The claim on Postgres: two statements for a chunk, whatever its size."""

from collections.abc import Iterable, Sequence
from typing import Final, TypeAlias, cast

from duetick.domain.policies import Overlap
from duetick.domain.schedule import Occurrence
from duetick.stores.sql.claim import ClaimPlan, DueRow, Shapes, Yield, on_hand
from duetick.stores.sql.index import poison
from duetick.stores.sql.rows import read_number
from duetick.stores.sql.session import Params, Session, Undone
from duetick.stores.sql.store import new_id

Texts: TypeAlias = tuple[str, ...]

SENT: Final = (
    "nominal_at",
    "due_at",
    "lease_until",
    "state",
    "reason",
    "fence",
    "priority",
    "exclusive",
    "range_end",
    "count",
)
"""What a claim says of an occurrence that its row does not. Numbers and our own words: they can
travel as joined texts. What users wrote is not among them."""


class PostgresClaim:
    """See `Claim`: rows are locked as they are read; those that others hold are left to them."""

    def __init__(self) -> None:
        self._shapes = Shapes()

    def __call__(
        self, session: Session, now: int, limit: int, ahead: int
    ) -> tuple[int, Sequence[Occurrence]]:
        """See `Claim`."""
        chunk = session.rows("claim_select", {"until": now + ahead, "limit": limit})[0]
        if chunk[0] is None:
            return 0, ()
        places = str(chunk[0]).split(";")
        plan = ClaimPlan(now, ahead, new_id, self._shapes)
        plan.add(cast("Iterable[DueRow]", zip(*_columns(chunk), strict=True)))
        return len(places), _write(session, plan.result, places, now)


def _columns(chunk: Sequence[object]) -> list[Sequence[object]]:
    return [column for column in chunk[1:] if isinstance(column, list)]


def _write(session: Session, made: Yield, places: Sequence[str], now: int) -> Sequence[Occurrence]:
    poison(session, made.broken, now)
    ids, moved = session.rows("claim_write", _params(made, places, now))[0]
    if read_number(moved) != len(made.advanced) + len(made.done):
        raise Undone("Rows that were locked are not where they were; nothing was claimed.")
    new = frozenset(str(ids).split(",")) if ids else frozenset[str]()
    return [made_now for made_now in made.occurrences if made_now.id in new and on_hand(made_now)]


def _params(made: Yield, places: Sequence[str], now: int) -> Params:
    told = {id(shape): shape for shape in made.shapes}
    texts = {key: _texts(shape) for key, shape in told.items()}
    columns = zip(*(texts[id(shape)] for shape in made.shapes), strict=True)
    params = dict(zip(SENT, map(",".join, columns), strict=False)) or dict.fromkeys(SENT, "")
    return params | {
        "now": now,
        "places": ";".join(places[place] for place in made.places),
        "ids": ",".join(occurrence.id for occurrence in made.occurrences),
        "advanced": ";".join(places[place] for place, _, _ in made.advanced),
        "next_at": ",".join(str(next_at) for _, next_at, _ in made.advanced),
        "through": ",".join(str(through) for _, _, through in made.advanced),
        "done": ";".join(places[place] for place, _ in made.done),
        "done_through": ",".join(str(through) for _, through in made.done),
    }


def _texts(shape: Occurrence) -> Texts:
    return (
        str(shape.nominal_at),
        str(shape.due_at),
        _or_empty(shape.lease_until),
        shape.state,
        shape.reason or "",
        str(shape.fence),
        str(shape.priority),
        "0" if shape.policies.overlap is Overlap.ALLOW else "1",
        _or_empty(shape.range_end),
        str(shape.count),
    )


def _or_empty(number: int | None) -> str:
    return "" if number is None else str(number)

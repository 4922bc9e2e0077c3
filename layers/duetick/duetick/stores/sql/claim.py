"""What a chunk of due rows yields: decided once for rows that are alike, then told row by row."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from duetick.domain.firing import decide, unfired
from duetick.domain.occurrences import fired, poisoned, ranged
from duetick.domain.schedule import IndexRow, Occurrence
from duetick.domain.states import Reason, State
from duetick.stores.sql.rows import read_index

MOST_REMEMBERED: Final = 20_000


@dataclass(frozen=True, slots=True, eq=False)
class Shape:
    """What all rows that are alike yield: occurrences that lack a name, and the time that follows.

    `next_at` is None where there is none, `error` says why a row cannot be read.
    """

    made: tuple[Occurrence, ...]
    next_at: int | None
    through: int
    error: str | None = None


@dataclass(slots=True)
class Yield:
    """What a claim has to write, each with the place of its row in the chunk.

    `advanced` holds the next time and how far the row is fired, `done` rows that never fire again.
    """

    occurrences: list[Occurrence] = field(default_factory=list)
    shapes: list[Occurrence] = field(default_factory=list)
    places: list[int] = field(default_factory=list)
    advanced: list[tuple[int, int, int]] = field(default_factory=list)
    done: list[tuple[int, int]] = field(default_factory=list)
    broken: list[tuple[IndexRow, Occurrence]] = field(default_factory=list)


DueRow: TypeAlias = tuple[str, str, str, str | None, int, str, int, int, str | None, int | None]
"""A row of `index_columns` and `fired_through`."""


class Shapes:
    """Remembers them from chunk to chunk of one tick."""

    def __init__(self) -> None:
        self._tick: tuple[int, int] = (0, 0)
        self._known: dict[tuple[object, ...], Shape] = {}

    def of(self, now: int, ahead: int) -> dict[tuple[object, ...], Shape]:
        """What is known for that tick."""
        if self._tick != (now, ahead) or len(self._known) > MOST_REMEMBERED:
            self._tick, self._known = (now, ahead), {}
        return self._known


class ClaimPlan:
    """Collects what one chunk yields, of rows of `index_columns` and `fired_through`."""

    def __init__(self, now: int, ahead: int, new_id: Callable[[], str], shapes: Shapes) -> None:
        self._now = now
        self._ahead = ahead
        self._ids = _ids(new_id)
        self._shapes = shapes.of(now, ahead)
        self.result = Yield()

    def add(self, rows: Iterable[DueRow]) -> None:
        """Decide what becomes of rows that are due."""
        for place, row in enumerate(rows):
            shape = self._shape(row)
            if shape.error is None:
                self._tell(place, row, shape)
            else:
                broken = self._named(shape.made[0], row)
                self.result.broken.append((read_index(row), broken))

    def _tell(self, place: int, row: DueRow, shape: Shape) -> None:
        result = self.result
        for made in shape.made:
            result.occurrences.append(self._named(made, row))
            result.shapes.append(made)
            result.places.append(place)
        if shape.next_at is None:
            result.done.append((place, shape.through))
        else:
            result.advanced.append((place, shape.next_at, shape.through))

    def _shape(self, row: DueRow) -> Shape:
        """What this row yields. Of what is its own, only what matters to that tells it apart."""
        _, _, cron, timezone, next_fire_at, _, _, _, policies, mark = row
        back = mark is not None and mark >= next_fire_at
        own = _own(row) if policies or back or "rate" in cron.lower() else None
        group = (cron, timezone, next_fire_at, policies, own)
        shape = self._shapes.get(group)
        if shape is None:
            shape = shape_of(read_index(row), mark, self._now, self._ahead)
            self._shapes[group] = shape
        return shape

    def _named(self, made: Occurrence, row: DueRow) -> Occurrence:
        """The occurrence of a shape as this row's. By place: names would cost a third more."""
        return Occurrence(
            row[0],
            row[1],
            made.cron,
            made.timezone,
            made.nominal_at,
            made.fence,
            made.origin,
            next(self._ids),
            row[5],
            made.state,
            made.reason,
            made.due_at,
            0,
            made.priority,
            made.lease_until,
            row[7],
            made.policies,
            made.range_end,
            made.count,
            made.error,
            None,
            None,
            made.labels,
            made.created_at,
            None,
            made.updated_at,
        )


def _own(row: DueRow) -> tuple[object, ...]:
    """What else the times of a row may follow from: its anchor, its spread, what it fired."""
    user_id, key, cron, _, next_fire_at, _, anchor, _, policies, mark = row
    return (
        anchor if "rate" in cron.lower() else None,
        (user_id, key) if policies and "spread" in policies else None,
        mark if mark is not None and mark >= next_fire_at else None,
    )


def shape_of(row: IndexRow, fired_through: int | None, now: int, ahead: int) -> Shape:
    """Decide what a row yields, and all that are like it."""
    try:
        fresh = unfired(row, fired_through)
        if fresh is None or fresh.next_fire_at > now + ahead:
            next_at = None if fresh is None else fresh.next_fire_at
            return Shape((), next_at, fired_through or row.next_fire_at)
        return _decided(fresh, now, ahead)
    except ValueError as error:
        return Shape((poisoned(row, error, now),), None, row.next_fire_at, str(error))


def _decided(row: IndexRow, now: int, ahead: int) -> Shape:
    decision = decide(row, now, ahead)
    missed = [ranged(row, part, Reason.MISSED, now) for part in decision.missed]
    through = max(row.next_fire_at, *decision.fires, *(m.last for m in decision.missed))
    return Shape((*missed, *fired(row, decision, now, ahead)), decision.next_at, through)


def _ids(new_id: Callable[[], str]) -> Iterator[str]:
    """Ids of one chunk: one random one, and its last six digits counted on."""
    stem, last = new_id()[:-6], 0
    while True:
        yield f"{stem}{last:06x}"
        last += 1


def on_hand(occurrence: Occurrence) -> bool:
    """Whether a claim hands it on now: it is leased."""
    return occurrence.state is State.QUEUED

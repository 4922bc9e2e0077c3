"""What a chunk of due rows yields: decided once for rows that are alike, then told row by row."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from duetick.domain.firing import Decision, decide, may_count_from_anchor, unfired
from duetick.domain.occurrences import apart, fired, poisoned, ranged
from duetick.domain.schedule import IndexRow, Occurrence
from duetick.domain.states import Reason, State
from duetick.stores.sql.rows import read_index

MOST_REMEMBERED: Final = 20_000
SERIAL: Final = 6
"""Hexadecimal digits of an id that number the occurrences of one chunk."""

DueRow: TypeAlias = tuple[str, str, str, str | None, int, str, int, int, str | None, int | None]
"""A row of `index_columns` and `fired_through`."""


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

    `shapes` are occurrences that lack a name, `rows` say theirs. `advanced` holds the next time and
    how far the row is fired, `done` rows that never fire again.
    """

    shapes: list[Occurrence] = field(default_factory=list)
    rows: list[DueRow] = field(default_factory=list)
    places: list[int] = field(default_factory=list)
    advanced: list[tuple[int, int, int]] = field(default_factory=list)
    done: list[tuple[int, int]] = field(default_factory=list)
    broken: list[tuple[IndexRow, Occurrence]] = field(default_factory=list)


class Shapes:
    """What rows yield at one tick; rows that are alike are decided about once."""

    def __init__(self, now: int, ahead: int) -> None:
        self.now = now
        self.ahead = ahead
        self._known: dict[tuple[object, ...], Shape] = {}
        self._made: dict[tuple[object, ...], tuple[Occurrence, ...]] = {}

    @property
    def full(self) -> bool:
        """Whether it is time to begin anew."""
        return len(self._known) > MOST_REMEMBERED

    def of(self, row: DueRow) -> Shape:
        """What this row yields. Of what is its own, only what matters to that tells it apart."""
        _, _, cron, timezone, next_fire_at, _, _, _, policies, mark = row
        back = mark is not None and mark >= next_fire_at
        own = _own(row) if policies or back or may_count_from_anchor(cron) else None
        group = (cron, timezone, next_fire_at, policies, own)
        shape = self._known.get(group)
        if shape is None:
            shape = self._known[group] = self._shape(read_index(row), mark)
        return shape

    def _shape(self, row: IndexRow, fired_through: int | None) -> Shape:
        try:
            fresh = unfired(row, fired_through)
            if fresh is None or fresh.next_fire_at > self.now + self.ahead:
                next_at = None if fresh is None else fresh.next_fire_at
                return Shape((), next_at, fired_through or row.next_fire_at)
            decision = decide(fresh, self.now, self.ahead)
        except ValueError as error:
            made = (poisoned(row, error, self.now),)
            return Shape(made, None, row.next_fire_at, str(error))
        through = max(fresh.next_fire_at, *decision.fires, *(m.last for m in decision.missed))
        return Shape(self._occurrences(fresh, decision), decision.next_at, through)

    def _occurrences(self, row: IndexRow, decision: Decision) -> tuple[Occurrence, ...]:
        """The same ones for every expression that fires at the same times."""
        spread = (row.user_id, row.key) if row.policies.spread else None
        alike = (decision.fires, decision.missed, row.policies, spread)
        made = self._made.get(alike)
        if made is None:
            missed = [ranged(row, part, Reason.MISSED, self.now) for part in decision.missed]
            made = (*missed, *fired(row, decision, self.now, self.ahead))
            self._made[alike] = made
        return made


class Remembered:
    """The shapes of the tick at hand, from chunk to chunk."""

    def __init__(self) -> None:
        self._shapes = Shapes(0, 0)

    def at(self, now: int, ahead: int) -> Shapes:
        """What is known at that tick."""
        shapes = self._shapes
        if (shapes.now, shapes.ahead) != (now, ahead) or shapes.full:
            shapes = self._shapes = Shapes(now, ahead)
        return shapes


class ClaimPlan:
    """Collects what one chunk yields, of rows of `index_columns` and `fired_through`."""

    def __init__(self, new_id: Callable[[], str], shapes: Shapes) -> None:
        self._new_id = new_id
        self._shapes = shapes
        self.stem = new_id()[:-SERIAL]
        self.result = Yield()

    def add(self, rows: Iterable[DueRow]) -> None:
        """Decide what becomes of rows that are due."""
        for place, row in enumerate(rows):
            shape = self._shapes.of(row)
            if shape.error is None:
                self._tell(place, row, shape)
            else:
                broken = _named(shape.made[0], row, self._new_id())
                self.result.broken.append((read_index(row), broken))

    def ranges(self) -> list[int]:
        """The serial numbers of what is a range."""
        return [n for n, made in enumerate(self.result.shapes) if made.range_end is not None]

    def leave_out(self, known: Mapping[int, Sequence[int]]) -> None:
        """Times of ranges, by their serial numbers, that have an occurrence of their own already.

        They were claimed ahead of a change, or a caller brought them.
        """
        told = list(zip(self.result.shapes, self.result.rows, self.result.places, strict=True))
        self.result.shapes, self.result.rows, self.result.places = [], [], []
        for n, (made, row, place) in enumerate(told):
            parts = apart(_named(made, row, ""), known[n]) if n in known else [made]
            self.result.shapes += parts
            self.result.rows += [row] * len(parts)
            self.result.places += [place] * len(parts)

    def occurrences(self) -> list[Occurrence]:
        """What is to be recorded. Their ids: one random stem, and a serial number of the chunk."""
        stem, pairs = self.stem, zip(self.result.shapes, self.result.rows, strict=True)
        return [_named(made, row, f"{stem}{n:06x}") for n, (made, row) in enumerate(pairs)]

    def _tell(self, place: int, row: DueRow, shape: Shape) -> None:
        result = self.result
        for made in shape.made:
            result.shapes.append(made)
            result.rows.append(row)
            result.places.append(place)
        if shape.next_at is None:
            result.done.append((place, shape.through))
        else:
            result.advanced.append((place, shape.next_at, shape.through))


def _named(made: Occurrence, row: DueRow, name: str) -> Occurrence:
    """The occurrence of a shape as this row's. By place: names would cost a third more."""
    return Occurrence(
        row[0],
        row[1],
        row[2],
        row[3],
        made.nominal_at,
        made.fence,
        made.origin,
        name,
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
        anchor if may_count_from_anchor(cron) else None,
        (user_id, key) if policies and "spread" in policies else None,
        mark if mark is not None and mark >= next_fire_at else None,
    )


def on_hand(occurrence: Occurrence) -> bool:
    """Whether a claim hands it on now: it is leased."""
    return occurrence.state is State.QUEUED

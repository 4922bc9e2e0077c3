"""What a chunk of due rows yields: decided once for each (expression, zone, policies, time)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from duetick.domain.firing import Decision, decide, unfired
from duetick.domain.occurrences import fired, poisoned, ranged
from duetick.domain.schedule import IndexRow, Occurrence
from duetick.domain.states import Reason, State


@dataclass(slots=True)
class Yield:
    """What a claim has to write. `advanced` holds each row with its next time, `done` those
    that never fire again, `broken` those that cannot be read, with the error.
    """

    occurrences: list[Occurrence] = field(default_factory=list)
    advanced: list[tuple[IndexRow, int, int]] = field(default_factory=list)
    done: list[tuple[IndexRow, int]] = field(default_factory=list)
    broken: list[tuple[IndexRow, str]] = field(default_factory=list)

    @property
    def leased(self) -> list[Occurrence]:
        """Those to hand on now."""
        return [occurrence for occurrence in self.occurrences if occurrence.state is State.QUEUED]


class ClaimPlan:
    """Collects what one chunk yields."""

    def __init__(self, now: int, ahead: int, new_id: Callable[[], str]) -> None:
        self._now = now
        self._ahead = ahead
        self._new_id = new_id
        self._decisions: dict[tuple[object, ...], Decision] = {}
        self.result = Yield()

    def add(self, row: IndexRow, fired_through: int | None) -> None:
        """Decide what becomes of a row that is due."""
        try:
            fresh = unfired(row, fired_through)
            due = fresh is not None and fresh.next_fire_at <= self._now + self._ahead
            decision = self._decide(fresh) if fresh and due else None
        except ValueError as error:
            self.result.broken.append((row, str(error)))
            self._record(poisoned(row, error, self._now))
            return
        if fresh is None or decision is None:
            next_at = fresh.next_fire_at if fresh else None
            self._advance(row, next_at, fired_through or row.next_fire_at)
            return
        for occurrence in self._made(fresh, decision):
            self._record(occurrence)
        through = max(fresh.next_fire_at, *decision.fires, *(m.last for m in decision.missed))
        self._advance(row, decision.next_at, through)

    def _advance(self, row: IndexRow, next_at: int | None, through: int) -> None:
        if next_at is None:
            self.result.done.append((row, through))
        else:
            self.result.advanced.append((row, next_at, through))

    def _made(self, row: IndexRow, decision: Decision) -> Sequence[Occurrence]:
        missed = [ranged(row, part, Reason.MISSED, self._now) for part in decision.missed]
        return [*missed, *fired(row, decision, self._now, self._ahead)]

    def _record(self, occurrence: Occurrence) -> None:
        self.result.occurrences.append(replace(occurrence, id=self._new_id()))

    def _decide(self, row: IndexRow) -> Decision:
        group = (row.cron, row.timezone, row.next_fire_at, row.anchor, row.policies)
        decision = self._decisions.get(group)
        if decision is None:
            decision = self._decisions[group] = decide(row, self._now, self._ahead)
        return decision

"""What a chunk of due rows yields: decided once for each (expression, zone, policies, time)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from duetick.domain.firing import Decision, decide, unfired
from duetick.domain.occurrences import fired, poisoned, ranged, stamped
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


@dataclass(frozen=True, slots=True)
class Group:
    """What the rows have in common that share expression, zone, policies and time."""

    decision: Decision
    through: int
    drafts: Sequence[Occurrence]
    first: IndexRow


class ClaimPlan:
    """Collects what one chunk yields."""

    def __init__(self, now: int, ahead: int, new_id: Callable[[], str]) -> None:
        self._now = now
        self._ahead = ahead
        self._new_id = new_id
        self._groups: dict[tuple[object, ...], Group] = {}
        self.result = Yield()

    def add(self, row: IndexRow, fired_through: int | None) -> None:
        """Decide what becomes of a row that is due."""
        try:
            fresh = unfired(row, fired_through)
            due = fresh is not None and fresh.next_fire_at <= self._now + self._ahead
            group = self._group(fresh) if fresh and due else None
        except ValueError as error:
            self.result.broken.append((row, str(error)))
            self._record(row, [poisoned(row, error, self._now)])
            return
        if fresh is None or group is None:
            next_at = fresh.next_fire_at if fresh else None
            self._advance(row, next_at, fired_through or row.next_fire_at)
            return
        spread = row.policies.spread
        self._record(row, self._made(fresh, group.decision) if spread else group.drafts)
        self._advance(row, group.decision.next_at, group.through)

    def _advance(self, row: IndexRow, next_at: int | None, through: int) -> None:
        if next_at is None:
            self.result.done.append((row, through))
        else:
            self.result.advanced.append((row, next_at, through))

    def _record(self, row: IndexRow, drafts: Sequence[Occurrence]) -> None:
        for draft in drafts:
            self.result.occurrences.append(stamped(draft, row, self._new_id()))

    def _made(self, row: IndexRow, decision: Decision) -> Sequence[Occurrence]:
        missed = [ranged(row, part, Reason.MISSED, self._now) for part in decision.missed]
        return [*missed, *fired(row, decision, self._now, self._ahead)]

    def _group(self, row: IndexRow) -> Group:
        """Policies count as equal when they are one object, which its first row keeps alive."""
        name = (row.cron, row.timezone, row.next_fire_at, row.anchor, id(row.policies))
        group = self._groups.get(name)
        if group is None:
            decision = decide(row, self._now, self._ahead)
            through = max(row.next_fire_at, *decision.fires, *(m.last for m in decision.missed))
            drafts = self._made(row, decision)
            group = self._groups[name] = Group(decision, through, drafts, row)
        return group

"""One chunk of a claim: what each row that is due yields, and the write that makes it so."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from duetick.domain.firing import Decision, Decisions, Missed, unfired
from duetick.domain.occurrences import apart, fired, poisoned, ranged
from duetick.domain.schedule import IndexRow, Occurrence
from duetick.domain.states import Reason, State
from duetick.ports import OnPoisoned
from duetick.stores.dynamodb.entities import Entities, pause, tell_too_large
from duetick.stores.dynamodb.errors import Conflict, ItemTooLarge
from duetick.stores.dynamodb.items import Entity, Poison
from duetick.stores.dynamodb.occurrences import slot_of

MOST_OPEN: Final = 500
"""How many occurrences of one schedule may be under way; what comes then is over its quota."""

TRIES: Final = 5


class Plan:
    """What became of one row: its item, altered but not yet written."""

    __slots__ = ("claimed", "entity", "poisoned", "seen")

    def __init__(
        self,
        entity: Entity,
        seen: int,
        claimed: list[Occurrence],
        poisoned: Occurrence | None = None,
    ) -> None:
        self.poisoned = poisoned
        self.entity = entity
        self.seen = seen
        self.claimed = claimed


class Claim:
    """The rows of one chunk are decided alike where they are alike."""

    def __init__(
        self,
        entities: Entities,
        now: int,
        ahead: int,
        new_id: Callable[[], str],
        on_poisoned: OnPoisoned | None,
    ) -> None:
        self._on_poisoned = on_poisoned
        self._entities = entities
        self._now = now
        self._ahead = ahead
        self._new_id = new_id
        self._decisions = Decisions(now, ahead)
        self.contended = False

    def plan(self, entity: Entity) -> Plan | None:
        """Advance the row in its item; None where it is not due.

        What the index showed may be late: the item itself decides.
        """
        row, until = entity.indexed, self._now + self._ahead
        if row is None or row.next_fire_at > until:
            return None
        try:
            fresh = unfired(row, entity.fired_through)
            if fresh is None or fresh.next_fire_at > until:
                entity.row = fresh
                return Plan(entity, row.next_fire_at, [])
            decision = self._decisions.of(fresh)
        except ValueError as error:
            entity.poison = Poison(str(error), self._now)
            entity.mark(row.next_fire_at)
            broken = poisoned(row, error, self._now)
            return Plan(entity, row.next_fire_at, self._hold(entity, [broken]), broken)
        return Plan(entity, row.next_fire_at, self._advance(entity, fresh, decision))

    def _advance(self, entity: Entity, row: IndexRow, decision: Decision) -> list[Occurrence]:
        missed = [ranged(row, part, Reason.MISSED, self._now) for part in decision.missed]
        fires = self._within_quota(entity, row, [*fired(row, decision, self._now, self._ahead)])
        entity.mark(max(row.next_fire_at, *decision.fires, *(m.last for m in decision.missed)))
        next_at = decision.next_at
        entity.row = None if next_at is None else replace(row, next_fire_at=next_at)
        return self._hold(entity, [*missed, *fires])

    def _within_quota(
        self, entity: Entity, row: IndexRow, fires: Sequence[Occurrence]
    ) -> Sequence[Occurrence]:
        """As many as the item may hold; the rest is one range, or the item would grow too large."""
        room = max(0, MOST_OPEN - len(entity.open))
        over = fires[room:]
        if not over:
            return fires
        beyond = Missed(over[0].nominal_at, over[-1].nominal_at, len(over))
        return [*fires[:room], ranged(row, beyond, Reason.QUOTA, self._now)]

    def _hold(self, entity: Entity, made: Sequence[Occurrence]) -> list[Occurrence]:
        """Record them in the item; those that it holds already are not made again."""
        known = entity.known
        named = [replace(part, id=self._new_id()) for one in made for part in apart(one, known)]
        new = [one for one in named if entity.keep(one)]
        return [occurrence for occurrence in new if occurrence.state is State.QUEUED]

    def write(self, plan: Plan) -> list[Occurrence]:
        """Make it so; nothing where another claimed it first."""
        current: Plan | None = plan
        for attempt in range(TRIES):
            if current is None:
                return []
            if current.seen != plan.seen:
                break
            try:
                self._entities.save(current.entity, self._now)
            except Conflict:
                pause(attempt)
            except ItemTooLarge as error:  # it stays due, and keeps nobody else waiting
                tell_too_large(current.entity, error)
                return []
            else:
                if current.poisoned and self._on_poisoned:
                    self._on_poisoned(current.poisoned)
                return current.claimed
            entity = self._entities.load(plan.entity.user_id, plan.entity.key)
            if _holds(entity, current.claimed):
                return current.claimed
            current = self.plan(entity)
        self.contended = True
        return []


def _holds(entity: Entity, claimed: Sequence[Occurrence]) -> bool:
    """Whether a write that seemed to fail was ours after all: its answer was lost on the way."""
    held = [entity.open.get(slot_of(occurrence)) for occurrence in claimed]
    ids = [entry.occurrence.id if entry else None for entry in held]
    return bool(claimed) and ids == [occurrence.id for occurrence in claimed]

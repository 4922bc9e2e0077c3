"""The ledger: what is under way stands in the schedule's item, what ended in the history."""

import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from duetick.domain.attempts import (
    brought,
    not_begun,
    recorded_already,
    refuse,
    renewed,
    settled_with_effects,
    tell_lost,
)
from duetick.domain.lifecycle import same_outcome
from duetick.domain.schedule import Identity, Occurrence
from duetick.domain.states import State
from duetick.ports import (
    Begun,
    CallerKey,
    Clock,
    Event,
    OnLost,
    Outcome,
    Refused,
    Transaction,
)
from duetick.stores.dynamodb import attempts, quick
from duetick.stores.dynamodb.caller_keys import CallerKeys
from duetick.stores.dynamodb.entities import Entities
from duetick.stores.dynamodb.errors import Conflict
from duetick.stores.dynamodb.history import History
from duetick.stores.dynamodb.items import Entity, item_key, read
from duetick.stores.dynamodb.journal import Journal, Line
from duetick.stores.dynamodb.occurrences import slot_of
from duetick.stores.dynamodb.transaction import DynamoTransaction, told_as_own
from duetick.stores.dynamodb.waiting import Waiting

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.type_defs import TransactWriteItemTypeDef


class DynamoLedger:
    """`ports.Ledger` on one table."""

    def __init__(
        self,
        entities: Entities,
        journal: Journal,
        now: Callable[[], int],
        new_id: Callable[[], str],
    ) -> None:
        self._entities = entities
        self._journal = journal
        self._now = now
        self._new_id = new_id
        self._history = History(entities, journal)
        self._waiting = Waiting(entities, journal)
        self._keys = CallerKeys(entities.table, self.get)

    def begin(
        self,
        occurrence: Occurrence,
        *,
        now: int | None = None,
        key: CallerKey | None = None,
        on_lost: OnLost | None = None,
    ) -> Begun | Refused:
        """See `ports.Ledger`."""
        at = self._now() if now is None else now
        token = secrets.token_hex(6)
        if occurrence.fence:
            try:
                place = item_key(occurrence.user_id, occurrence.key)
                item = self._entities.table.update(place, quick.begin(occurrence, at, token))
            except Conflict:
                pass
            else:
                return self._begun(read(item), occurrence)
        if key is None or occurrence.fence:
            return self._begin(occurrence, at, token, on_lost)
        return self._keys.take(
            key, occurrence, at, lambda write: self._begin(occurrence, at, token, on_lost, [write])
        )

    def _begun(self, entity: Entity, occurrence: Occurrence) -> Begun:
        begun = entity.open[slot_of(occurrence)].occurrence
        return Begun(begun, self._entities.with_input(entity.schedule, apart=entity.apart))

    def _begin(
        self,
        occurrence: Occurrence,
        now: int,
        token: str,
        on_lost: OnLost | None,
        together: "Sequence[TransactWriteItemTypeDef]" = (),
    ) -> Begun | Refused:
        """Read, decide and write. A caller that is not the tick brings its occurrence along."""
        name, noted, ended = self._new_id(), False, list[Occurrence]()

        def alter(entity: Entity) -> tuple[Begun | Refused, bool]:
            nonlocal noted
            ended.clear()
            entry, asked = entity.open.get(slot_of(occurrence)), occurrence
            if entry and entry.token == token:
                return self._begun(entity, occurrence), False
            held = self._known(entity, occurrence)
            if held is None and occurrence.fence == 0:
                held = asked = brought(occurrence, name, now)
                entity.keep(held)
                noted = noted or self._note(held, held.lease_until or now)
            if held is None:
                return Refused("unknown"), False
            refused = refuse(held, asked, now)
            if refused:
                return refused, False
            after = attempts.begin(entity, held, now, token, new_id=self._new_id, ended=ended)
            return not_begun(after) or self._begun(entity, after), True

        answer = self._entities.change(occurrence.user_id, occurrence.key, now, alter, together)
        tell_lost(on_lost, ended)
        if isinstance(answer, Refused) and answer.state is State.QUEUED and answer.reason:
            self._note(occurrence, now + 1)
        return answer

    def bring(
        self, occurrence: Occurrence, *, now: int | None = None, key: CallerKey | None = None
    ) -> Occurrence | Refused:
        """See `ports.Ledger`."""
        at = self._now() if now is None else now
        if key is None:
            return self._bring(occurrence, at)
        return self._keys.take(
            key, occurrence, at, lambda write: self._bring(occurrence, at, [write])
        )

    def _bring(
        self,
        occurrence: Occurrence,
        now: int,
        together: "Sequence[TransactWriteItemTypeDef]" = (),
    ) -> Occurrence | Refused:
        name, noted = self._new_id(), False

        def alter(entity: Entity) -> tuple[Occurrence | Refused, bool]:
            nonlocal noted
            held = self._known(entity, occurrence)
            if held:
                ours = held.id == name
                return held if ours else recorded_already(held, occurrence, now), False
            made = brought(occurrence, name, now)
            entity.keep(made)
            noted = noted or self._note(made, made.lease_until or now)
            return made, True

        return self._entities.change(occurrence.user_id, occurrence.key, now, alter, together)

    def _known(self, entity: Entity, occurrence: Occurrence) -> Occurrence | None:
        """The occurrence as it stands, under way or ended."""
        entry = entity.open.get(slot_of(occurrence))
        return entry.occurrence if entry else self._history.standing(entity, occurrence)

    def _note(self, occurrence: Occurrence, wake: int) -> bool:
        self._journal.write([Line(occurrence.user_id, occurrence.key, wake)])
        return True

    def holds(self, key: CallerKey, *, now: int | None = None) -> Refused | None:
        """See `ports.Ledger`."""
        return self._keys.holds(key, self._now() if now is None else now)

    def settle(
        self, occurrence: Occurrence, outcome: Outcome, *, now: int | None = None
    ) -> Occurrence | None:
        """See `ports.Ledger`."""
        at = self._now() if now is None else now
        if outcome.state is not State.FAILED:
            try:
                key = item_key(occurrence.user_id, occurrence.key)
                item = self._entities.table.update(key, quick.settle(occurrence, outcome, at))
            except Conflict:
                pass
            else:
                return read(item).open[slot_of(occurrence)].occurrence
        return self._settle(occurrence, outcome, at)

    @contextmanager
    def settling(self, occurrence: Occurrence, clock: Clock) -> Iterator[Transaction]:
        """See `ports.Ledger`."""
        effects = DynamoTransaction()
        yield effects
        with told_as_own():
            self._settle_with(occurrence, clock(), effects.writes)

    def _settle_with(
        self, occurrence: Occurrence, now: int, effects: "Sequence[TransactWriteItemTypeDef]"
    ) -> None:
        tried = False

        def alter(entity: Entity) -> tuple[None, bool]:
            nonlocal tried
            held = self._known(entity, occurrence)
            ours = tried and held is not None and held.fence == occurrence.fence
            if ours and held and held.state is State.SUCCEEDED:
                return None, False  # the try before was done, and its answer was lost
            tried = True
            entity.become(settled_with_effects(held, occurrence.fence, now))
            return None, True

        self._entities.change(occurrence.user_id, occurrence.key, now, alter, effects)

    def _settle(self, occurrence: Occurrence, outcome: Outcome, now: int) -> Occurrence | None:
        def alter(entity: Entity) -> tuple[Occurrence | None, bool]:
            entry = entity.open.get(slot_of(occurrence))
            held = self._known(entity, occurrence)
            if held is None or held.fence != occurrence.fence:
                return None, False
            if entry and held.state is State.PROCESSING:
                return attempts.settle(entity, entry, outcome, now), True
            again = same_outcome(held, outcome.state, outcome.reason)
            return (held if again else None), False

        after = self._entities.change(occurrence.user_id, occurrence.key, now, alter)
        if after and after.state is State.RETRYING:
            self._note(after, after.due_at)
        return after

    def release(
        self, occurrence: Occurrence, *, now: int | None = None, on_lost: OnLost | None = None
    ) -> bool:
        """See `ports.Ledger`."""
        at = self._now() if now is None else now

        def alter(entity: Entity) -> tuple[Occurrence | None, bool]:
            held = _held(entity, occurrence)
            if held is None or held.state is not State.QUEUED:
                return None, False
            return attempts.release(entity, held, at), True

        after = self._entities.change(occurrence.user_id, occurrence.key, at, alter)
        if after is None:
            return False
        tell_lost(on_lost, [after])
        return self._note(occurrence, at + 1)

    def renew(self, occurrence: Occurrence, *, now: int | None = None) -> Occurrence | None:
        """See `ports.Ledger`."""
        at = self._now() if now is None else now

        def alter(entity: Entity) -> tuple[Occurrence | None, bool]:
            held = _held(entity, occurrence)
            if held is None or held.state is not State.PROCESSING:
                return None, False
            longer = renewed(held, at)
            entity.become(longer)
            return longer, True

        return self._entities.change(occurrence.user_id, occurrence.key, at, alter)

    def claim_waiting(
        self, now: int, limit: int = 100, *, ahead: int = 0, on_lost: OnLost | None = None
    ) -> Sequence[Occurrence]:
        """See `ports.Ledger`."""
        return self._waiting.claim(now, limit, ahead, on_lost)

    def find(
        self,
        user_id: str | None = None,
        key: str | None = None,
        *,
        state: State | None = None,
        limit: int = 50,
        before: int | Identity | None = None,
    ) -> Sequence[Occurrence]:
        """See `ports.Ledger`."""
        return self._history.find(user_id, key, state, limit, before)

    def get(self, user_id: str, key: str, nominal_at: int, origin: str) -> Occurrence | None:
        """See `ports.Ledger`."""
        entry = self._history.get(user_id, key, nominal_at, origin)
        return entry.occurrence if entry else None

    def events(self, occurrence: Occurrence) -> Sequence[Event]:
        """See `ports.Ledger`."""
        entry = self._history.get(*occurrence.identity)
        return entry.events if entry else ()


def _held(entity: Entity, occurrence: Occurrence) -> Occurrence | None:
    """The occurrence as it stands, if the caller holds its fence."""
    entry = entity.open.get(slot_of(occurrence))
    if entry is None or entry.occurrence.fence != occurrence.fence:
        return None
    return entry.occurrence

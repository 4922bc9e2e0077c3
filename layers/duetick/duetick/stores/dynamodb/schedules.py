"""The records: a change and what follows from it is one small transaction (see `alteration`).

It is paid for by those who change schedules, never by a fire.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import Final

from duetick.domain.creation import Made, Repeatable
from duetick.domain.errors import InvalidSchedule, VersionConflict
from duetick.domain.expression import TZDATA_VERSION
from duetick.domain.mirror import (
    Before,
    Change,
    plan_put,
    too_many,
    unfired_so_far,
)
from duetick.domain.schedule import Occurrence, Schedule, dump_input
from duetick.domain.states import Reason
from duetick.domain.versions import Expected, check_version
from duetick.ports import Page
from duetick.stores.dynamodb.alteration import (
    Alteration,
    count_key,
    creations_partition,
    external_key,
    read_made,
)
from duetick.stores.dynamodb.entities import TRIES, Entities, contended, pause
from duetick.stores.dynamodb.errors import Conflict
from duetick.stores.dynamodb.items import Entity, input_key, item_key, read, write
from duetick.stores.dynamodb.occurrences import maybe_number, maybe_text, number, put_text, text
from duetick.stores.dynamodb.table import Item, keyed
from duetick.stores.paging import make_cursor, read_cursor

LARGEST_INLINE: Final = 400
LARGEST_RECORD: Final = 700
"""An item's kilobyte has to hold two occurrences besides the record."""


class DynamoSchedules:
    """`ports.Schedules` on one table."""

    def __init__(
        self,
        entities: Entities,
        now: Callable[[], int],
        new_id: Callable[[], str],
        *,
        look_ahead: bool = False,
    ) -> None:
        self._entities = entities
        self._look_ahead = look_ahead
        self._now = now
        self._new_id = new_id

    def put(
        self,
        schedule: Schedule,
        *,
        now: int | None = None,
        if_version: Expected | None = None,
        at_most: int | None = None,
        repeatable: Repeatable | None = None,
    ) -> Schedule:
        """See `ports.Schedules`."""
        at = self._now() if now is None else now
        for attempt in range(TRIES):
            entity = self._entities.load(schedule.user_id, schedule.key)
            current = self._entities.with_input(entity.schedule, apart=entity.apart)
            before = Before(current, entity.indexed, entity.fired_through, entity.defined_at)
            check_version(current, if_version)
            change = plan_put(before, schedule, at, look_ahead=self._look_ahead)
            if change is None:
                return current or schedule
            self._check_external(schedule)
            try:
                self._write(entity, change, at, at_most, repeatable)
            except Conflict:
                if before.schedule is None:
                    self._check_count(schedule.user_id, at_most)
                    self._check_made(schedule.user_id, repeatable, at)
                pause(attempt)
            else:
                return entity_view(entity, change.schedule)
        raise contended(schedule.user_id, schedule.key)

    def _write(
        self,
        entity: Entity,
        change: Change,
        now: int,
        at_most: int | None,
        repeatable: Repeatable | None,
    ) -> None:
        """Carry out what was planned; raise Conflict where the item was written meanwhile."""
        together = Alteration(self._entities.table.name)
        if entity.record is None:
            together.count(change.schedule.user_id, 1, at_most)
        if repeatable:
            first = change.row.next_fire_at if change.row else None
            made = Made(repeatable.digest, change.schedule.created_at, first)
            together.keep_in_mind(change.schedule.user_id, repeatable, made)
        self._own(together, entity.record, change.schedule)
        self._place_input(together, entity, change.schedule)
        if change.redefines:
            together.put(definition_item(change.schedule))
            entity.defined_at = change.schedule.timing
        self._apply(entity, change)
        self._commit(together, entity, now)

    def mend(self, entity: Entity, change: Change, now: int) -> None:
        """Bring the index row in line with the record, which stays as it is."""
        entity.account(change.ranges, self._new_id)
        entity.row, entity.poison = change.row, None
        self._entities.save(entity, now)

    def _apply(self, entity: Entity, change: Change) -> None:
        self._account(entity, change.ranges)
        if change.redefines:
            self._lower_mark(entity, change.schedule.timing)
        kept = None if entity.apart else change.schedule.input
        entity.record = replace(change.schedule, input=kept, next_fire_at=None, defect=None)
        if change.row or change.redefines:
            entity.row, entity.poison = change.row, None

    def _lower_mark(self, entity: Entity, timing: int) -> None:
        """Not below what is told for good: a claim's clock may have been ahead of the change's."""
        mark = entity.fired_through
        if mark is not None and mark > timing:
            left = self._entities.left_through(entity, timing, mark)
            entity.fired_through = min(mark, max([timing, *entity.range_ends, *left]))

    def _account(self, entity: Entity, ranges: Sequence[Occurrence]) -> None:
        """A pause that ended by itself may reach back to what has gone to the history since."""
        left = [time for held in ranges for time in self._entities.left_within(held)]
        entity.account(ranges, self._new_id, left)

    def _commit(self, together: Alteration, entity: Entity, now: int) -> None:
        """The item, and what goes with it."""
        if entity.row:
            self._entities.layout.announce()
        together.put_revised(write(entity, self._entities.shards, now), entity.rev)
        self._entities.table.transact(together.writes)

    def _own(self, together: Alteration, before: Schedule | None, after: Schedule | None) -> None:
        had = before.external_id if before else None
        has = after.external_id if after else None
        if had and had != has:
            together.delete(external_key(had))
        if after and has and had != has:
            together.own(external_key(has), _owner(after))

    def _place_input(self, together: Alteration, entity: Entity, schedule: Schedule) -> None:
        """Apart where the schedule's item would grow beyond a kilobyte with it."""
        given = dump_input(schedule.input)
        was, size = entity.apart, _record_size(schedule)
        entity.apart = schedule.input is not None and (
            len(given) > LARGEST_INLINE or len(given) + size > LARGEST_RECORD
        )
        key = input_key(schedule.user_id, schedule.key)
        if entity.apart:
            together.put(keyed(key) | {"in": text(given)})
        elif was:
            together.delete(key)

    def _check_count(self, user_id: str, at_most: int | None) -> None:
        item = self._entities.table.get(count_key(user_id)) or {}
        if at_most is not None and (maybe_number(item, "n") or 0) >= at_most:
            raise too_many(at_most)

    def _check_made(self, user_id: str, repeatable: Repeatable | None, now: int) -> None:
        if repeatable and self.made(user_id, repeatable.name, now=now):
            raise VersionConflict(0, 1)

    def made(self, user_id: str, name: str, *, now: int | None = None) -> Made | None:
        """See `ports.Schedules`."""
        at = self._now() if now is None else now
        item = self._entities.table.get((creations_partition(user_id), name))
        return read_made(item, at) if item else None

    def _check_external(self, schedule: Schedule) -> None:
        if schedule.external_id is None:
            return
        item = self._entities.table.get(external_key(schedule.external_id))
        if item and maybe_text(item, "o") != _owner(schedule):
            raise InvalidSchedule("external_id", "is already another schedule's; choose another.")

    def get(self, user_id: str, key: str) -> Schedule | None:
        """See `ports.Schedules`."""
        entity = self._entities.load(user_id, key)
        return self._entities.with_input(entity.schedule, apart=entity.apart)

    def list(self, user_id: str, *, limit: int = 100, cursor: str | None = None) -> Page:
        """See `ports.Schedules`. Rows without a record are passed over."""
        found = list(islice(self._after(user_id, read_cursor(cursor), limit), limit + 1))
        more = len(found) > limit
        return Page(tuple(found[:limit]), make_cursor(found[limit - 1].key) if more else None)

    def _after(self, user_id: str, key: str, page: int) -> Iterator[Schedule]:
        partition, sort = item_key(user_id, key)
        items = self._entities.table.query(
            "p = :p AND s > :s", {":p": text(partition), ":s": text(sort)}, page=page + 1
        )
        for entity in map(read, items):
            schedule = self._entities.with_input(entity.schedule, apart=entity.apart)
            if schedule:
                yield schedule

    def delete(
        self, user_id: str, key: str, *, now: int | None = None, if_version: Expected | None = None
    ) -> bool:
        """See `ports.Schedules`."""
        at = self._now() if now is None else now
        for attempt in range(TRIES):
            entity = self._entities.load(user_id, key)
            check_version(entity.record, if_version)
            if entity.record is None:
                return False
            try:
                self._delete(entity, entity.record, at)
            except Conflict:
                pause(attempt)
            else:
                return True
        raise contended(user_id, key)

    def _delete(self, entity: Entity, record: Schedule, now: int) -> None:
        """The mark stays, and what is under way: it will be settled, or told why it may not."""
        together = Alteration(self._entities.table.name)
        self._own(together, record, None)
        together.count(record.user_id, -1, None)
        if entity.apart:
            together.delete(input_key(record.user_id, record.key))
        before = Before(record, entity.indexed, entity.fired_through, entity.defined_at)
        self._account(entity, unfired_so_far(before, now, Reason.SCHEDULE_DELETED))
        entity.defined_at = max(now, entity.defined_at + 1)
        together.put(definition_item(replace(record, enabled=False, timing=entity.defined_at)))
        entity.record, entity.row, entity.poison, entity.apart = None, None, None, False
        self._commit(together, entity, now)

    def find_by_external(self, external_id: str) -> Schedule | None:
        """See `ports.Schedules`."""
        item = self._entities.table.get(external_key(external_id))
        if item is None:
            return None
        user_id, _, key = item["o"]["S"].partition("/")
        found = self.get(user_id, key)
        return found if found and found.external_id == external_id else None


def _owner(schedule: Schedule) -> str:
    """A user has no slash in it: the first one ends it."""
    return f"{schedule.user_id}/{schedule.key}"


def entity_view(entity: Entity, schedule: Schedule) -> Schedule:
    """A schedule just put, with what the index says of it."""
    row = entity.indexed
    defect = entity.poison.error if entity.poison else None
    return replace(schedule, next_fire_at=row.next_fire_at if row else None, defect=defect)


def definition_partition(user_id: str, key: str) -> str:
    """Where a schedule's dated definitions stand."""
    return f"V#{user_id}/{key}"


def definition_item(schedule: Schedule) -> Item:
    """The definition that holds from `schedule.timing` on."""
    item: Item = {
        "p": text(definition_partition(schedule.user_id, schedule.key)),
        "s": text(f"{schedule.timing:016d}"),
        "cron": text(schedule.cron),
        "anc": number(schedule.anchor),
        "on": number(int(schedule.enabled)),
        "tzdata": text(TZDATA_VERSION),
    }
    put_text(item, "tz", schedule.timezone)
    put_text(item, "pol", schedule.policies.dump())
    return item


def _record_size(schedule: Schedule) -> int:
    """About the bytes of an item's record, its input left out."""
    texts = [
        *(_owner(schedule), schedule.cron, schedule.timezone, schedule.flow, schedule.action),
        *(schedule.external_id, schedule.policies.dump()),
        *(part for pair in schedule.labels.items() for part in pair),
    ]
    principal = len(json.dumps(schedule.principal, default=str)) if schedule.principal else 0
    return 160 + principal + sum(len((part or "").encode()) for part in texts)

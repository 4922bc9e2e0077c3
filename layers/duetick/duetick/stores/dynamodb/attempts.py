"""What a begin, a settle or the end of a lease makes of a schedule's item, which has been read."""

from collections.abc import Callable
from dataclasses import replace

from duetick.domain.attempts import (
    RELEASED,
    Outcome,
    begun,
    cancelled,
    displaces,
    lost,
    ousted,
    released,
    settled,
    taken_up,
    trace_of_loss,
    trace_of_retry,
)
from duetick.domain.lifecycle import lease_over
from duetick.domain.mirror import due_range
from duetick.domain.schedule import Occurrence, Schedule
from duetick.domain.states import WAITING, Reason, State
from duetick.stores.dynamodb.items import Entity, excludes, wake_of
from duetick.stores.dynamodb.occurrences import Entry, slot_of


def begin(
    entity: Entity,
    held: Occurrence,
    now: int,
    token: str,
    *,
    new_id: Callable[[], str],
    ended: list[Occurrence],
) -> Occurrence:
    """Take the attempt up, or write what stands against it. `ended` gets what was lost by that."""
    after = begun(
        held,
        entity.record,
        now,
        lambda: _another_runs(entity, now, ended),
        lambda record: _count_run(entity, record, now, new_id),
    )
    if after.state is State.QUEUED:
        _displace(entity, after, now)
    entity.become(after)
    if after.state is State.PROCESSING:
        name = slot_of(after)
        entity.open[name] = replace(entity.open[name], token=token)
        if entity.record:
            entity.record = replace(entity.record, last_run_at=now)
    return after


def _count_run(entity: Entity, record: Schedule, now: int, new_id: Callable[[], str]) -> bool:
    """Whether it may run once more; the last run takes it off the index."""
    if record.used_up:
        return False
    entity.record = replace(record, runs=record.runs + 1)
    if entity.record.used_up:
        unrun = due_range(entity.indexed, entity.fired_through, now, Reason.QUOTA)
        entity.account(unrun, new_id)
        entity.row = None
    return True


def _another_runs(entity: Entity, now: int, ended: list[Occurrence]) -> bool:
    """Whether another one runs; one whose lease is over is ended here and now."""
    for entry in list(entity.open.values()):
        if excludes(entry.occurrence):
            if not lease_over(entry.occurrence, now):
                return True
            ended.append(_end_lease(entity, entry.occurrence, ousted(entry.occurrence, now)))
    return False


def _displace(entity: Entity, waiting: Occurrence, now: int) -> None:
    for entry in list(entity.open.values()):
        if displaces(waiting, entry.occurrence):
            entity.become(cancelled(entry.occurrence, Reason.OVERLAP, now))


def settle(entity: Entity, entry: Entry, outcome: Outcome, now: int) -> Occurrence:
    """The end of an attempt."""
    after = settled(entry.occurrence, outcome, now)
    entity.become(after, trace_of_retry(entry.occurrence, after))
    return after


def release(entity: Entity, held: Occurrence, now: int) -> Occurrence:
    """Give it back."""
    after = released(held, now)
    entity.become(after, RELEASED)
    return after


def take_up(entity: Entity, held: Occurrence, now: int) -> Occurrence:
    """Lease one that waited or was lost; it may end instead."""
    if held.state not in WAITING:
        return _end_lease(entity, held, lost(held, now))
    after = taken_up(held, now)
    entity.become(after)
    return after


def _end_lease(entity: Entity, held: Occurrence, after: Occurrence) -> Occurrence:
    entity.become(after, trace_of_loss(held, after))
    return after


def order(held: Occurrence) -> tuple[int, int, int, int]:
    """Among what waits: ended leases first, then by priority, due time and age."""
    if held.state in WAITING:
        return 1, -held.priority, held.due_at, held.created_at
    return 0, wake_of(held), 0, 0

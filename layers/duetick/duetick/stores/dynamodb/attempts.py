"""What a begin, a settle or the end of a lease makes of a schedule's item, which has been read."""

from dataclasses import replace

from duetick.domain.lifecycle import lease_over, why_cancelled
from duetick.domain.mirror import due_range
from duetick.domain.occurrences import leased
from duetick.domain.policies import Overlap
from duetick.domain.schedule import Occurrence, Schedule
from duetick.domain.states import WAITING, Reason, State
from duetick.ports import Outcome, Refused
from duetick.stores.attempts import after_lease, cancelled, settled
from duetick.stores.dynamodb.items import Entity, excludes, wake_of
from duetick.stores.dynamodb.occurrences import Entry, slot_of


def begin(entity: Entity, held: Occurrence, now: int, token: str) -> Occurrence | Refused:
    """Take the attempt up, or say what stands against it and write that."""
    policies = entity.record.policies if entity.record else held.policies
    exclusive = policies.overlap is not Overlap.ALLOW
    reason = why_cancelled(held, entity.record)
    if reason is None and exclusive and _running(entity, now):
        if policies.overlap is Overlap.WAIT:
            return _wait(entity, held, now)
        reason = Reason.OVERLAP
    if reason is None and entity.record and entity.record.policies.max_runs:
        reason = None if _count_run(entity, entity.record, now) else Reason.QUOTA
    if reason:
        entity.become(cancelled(held, reason, now))
        return Refused("cancelled", State.CANCELLED, reason)
    begun = replace(
        held,
        state=State.PROCESSING,
        attempts=held.attempts + 1,
        begun_at=now,
        lease_until=now + policies.lease_ms,
        policies=policies,
        updated_at=now,
    )
    entity.become(begun)
    name = slot_of(begun)
    entity.open[name] = replace(entity.open[name], token=token)
    if entity.record:
        entity.record = replace(entity.record, last_run_at=now)
    return begun


def _count_run(entity: Entity, record: Schedule, now: int) -> bool:
    """Whether it may run once more; the last run takes it off the index."""
    if record.used_up:
        return False
    entity.record = replace(record, runs=record.runs + 1)
    if entity.record.used_up:
        for lost in due_range(entity.indexed, entity.fired_through, now, Reason.QUOTA):
            entity.keep(lost)
            entity.mark(lost.range_end or lost.nominal_at)
        entity.row = None
    return True


def _running(entity: Entity, now: int) -> bool:
    """Whether another one runs; one whose lease is over is ended here and now."""
    for entry in list(entity.open.values()):
        if excludes(entry.occurrence):
            if not lease_over(entry.occurrence, now):
                return True
            lose(entity, entry.occurrence, now)
    return False


def _wait(entity: Entity, held: Occurrence, now: int) -> Refused:
    """The newest waits for the next tick; an older one that waited is displaced."""
    for entry in list(entity.open.values()):
        other = entry.occurrence
        if other.state is State.QUEUED and other.nominal_at < held.nominal_at:
            entity.become(cancelled(other, Reason.OVERLAP, now))
    entity.become(replace(held, lease_until=now + 1, updated_at=now))
    return Refused("in_progress", State.QUEUED, Reason.OVERLAP)


def settle(entity: Entity, entry: Entry, outcome: Outcome, now: int) -> Occurrence:
    """The end of an attempt: of the occurrence too, unless another attempt follows."""
    held = entry.occurrence
    after = settled(held, outcome, now)
    retrying = after.state is State.RETRYING
    entity.become(after, f"attempt {held.attempts}: {outcome.error or ''}" if retrying else None)
    return after


def release(entity: Entity, held: Occurrence, now: int) -> Occurrence:
    """Due again at once, or lost when its time is over."""
    after = after_lease(held, now)
    if after.state is State.QUEUED:
        after = replace(after, lease_until=now + 1)
    entity.become(after, "released: it never began")
    return after


def take_up(entity: Entity, held: Occurrence, now: int) -> Occurrence:
    """Lease one that waited or was lost; it may end instead."""
    if held.state not in WAITING:
        return lose(entity, held, now)
    entity.become(leased(held, now))
    return leased(held, now)


def lose(entity: Entity, held: Occurrence, now: int) -> Occurrence:
    """What the end of its lease makes of it."""
    after = after_lease(held, now)
    ordinary = held.state is State.QUEUED and after.state is State.QUEUED
    entity.become(after, None if ordinary else f"lease ended during attempt {held.attempts}")
    return after


def order(held: Occurrence) -> tuple[int, int, int, int]:
    """Among what waits: ended leases first, then by priority, due time and age."""
    if held.state in WAITING:
        return 1, -held.priority, held.due_at, held.created_at
    return 0, wake_of(held), 0, 0

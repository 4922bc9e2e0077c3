"""The place of a schedule, which decides which of its occurrences may run and which wait.

Unless occurrences may overlap, one of them has the place: it runs, or it is a leased retry. A retry
that had to wait keeps the place for a while after the running one has ended. An occurrence of a
backfill stands beside the place: it neither has it nor needs it.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final

from duetick.domain.identity import stands_beside
from duetick.domain.occurrence import Occurrence
from duetick.domain.policies import Overlap, Policies
from duetick.domain.schedule import Record
from duetick.domain.states import LEASED, WAITING, Reason, State
from duetick.domain.transitions import cancel, lease_over, lose, put_off

PLACE_KEPT_MS: Final = 150_000
"""The time for which a retry that had to wait keeps its place: two ticks may be so far apart."""


def wait_behind(occurrence: Occurrence, overlap: Overlap, now: int) -> Occurrence:
    """Return the occurrence after a begin while another occurrence has the place."""
    if occurrence.attempts:
        return reserve(put_off(occurrence, occurrence.due_at, now), now)
    if overlap is Overlap.WAIT:
        return replace(occurrence, lease_until=now + 1, updated_at=now)
    return cancel(occurrence, Reason.OVERLAP, now)


def reserve(waiting: Occurrence, since: int) -> Occurrence:
    """Keep the place of its schedule for a retry that waits, before occurrences that are due later.

    From `since` on, the place is kept for as long as ticks may take to lease the retry.
    """
    return replace(waiting, lease_until=since + PLACE_KEPT_MS)


def beside(policies: Policies) -> Policies:
    """Return the policies of an occurrence that stands beside its schedule's place."""
    return replace(policies, overlap=Overlap.ALLOW)


def may_hold_place(other: Occurrence) -> bool:
    """Return True if the occurrence may keep others from beginning. `is_rival` says if it does."""
    return is_in_place(other) and not stands_beside(other.origin)


def is_in_place(other: Occurrence) -> bool:
    """Return True if the occurrence runs, is leased again, or waits for a retry."""
    if other.state is State.QUEUED:
        return other.attempts > 0
    return other.state in (State.PROCESSING, State.RETRYING)


def is_rival(one: Occurrence, occurrence: Occurrence, now: int) -> bool:
    """Return True if `one` has the place that `occurrence` needs to begin.

    If `one` is a retry that is not leased, or whose lease is over, it has the place only before
    occurrences that never began.
    """
    if not may_hold_place(one) or one.identity == occurrence.identity:
        return False
    if one.state is State.PROCESSING:
        return not lease_over(one, now)
    if one.due_at > now:
        return False
    if one.state is State.RETRYING:
        return not occurrence.attempts and not lease_over(one, now)
    return not lease_over(one, now if occurrence.attempts else now - PLACE_KEPT_MS)


def make_way(one: Occurrence, occurrence: Occurrence, now: int) -> Occurrence | None:
    """Return `one` after `occurrence` takes the free place; None if `one` does not change.

    If the lease of `one` is over, or it is leased before it is due, it loses the place. If it is a
    due retry, it has the place next.
    """
    if not may_hold_place(one) or one.identity == occurrence.identity:
        return None
    if one.state in LEASED:
        return _lose_place(one, now)
    next_one = not occurrence.attempts and one.due_at <= now
    return reserve(one, now + occurrence.policies.lease_ms) if next_one else None


def _lose_place(occurrence: Occurrence, now: int) -> Occurrence:
    """Return the occurrence after it lost the place to its successor.

    If it may be tried again, it waits and has the place next.
    """
    after = lose(occurrence, now)
    if after.state is not State.QUEUED:
        return after
    return reserve(put_off(occurrence, occurrence.due_at, now), now)


def may_be_leased(waiting: Occurrence, others: Iterable[Occurrence]) -> bool:
    """Return True if a tick may lease the occurrence. A retry waits while another has its place."""
    if waiting.state not in WAITING or not _needs_place(waiting):
        return True
    under_way = (one for one in others if one.state in LEASED and may_hold_place(one))
    return all(one.identity == waiting.identity for one in under_way)


def needs_reserving(waiting: Occurrence, now: int) -> bool:
    """Return True if a tick that passes over a retry has to keep its place for longer."""
    return (waiting.lease_until or 0) < now + PLACE_KEPT_MS // 2


def _needs_place(retry: Occurrence) -> bool:
    return retry.attempts > 0 and retry.policies.overlap is not Overlap.ALLOW


def pick_one_of_each(waiting: Sequence[Occurrence]) -> list[Occurrence]:
    """Return the occurrences that a tick may lease together.

    Of a schedule's retries that need its place, only one is leased.
    """
    chosen: list[Occurrence] = []
    taken: set[tuple[str, str]] = set()
    for one in waiting:
        name = one.user_id, one.key
        alone = one.state in WAITING and _needs_place(one)
        if not (alone and name in taken):
            chosen.append(one)
            taken |= {name} if alone else set()
    return chosen


def displaces(waiting: Occurrence, other: Occurrence) -> bool:
    """Return True if an occurrence that has to wait ends an older one that never began.

    Newer occurrences that wait stay.
    """
    never_began = other.state is State.QUEUED and not other.attempts
    if stands_beside(other.origin):
        return False
    return never_began and other.nominal_at < waiting.nominal_at


def follow(retry: Occurrence, before: Record, after: Record | None, now: int) -> Occurrence:
    """Return a waiting retry after a change or the delete of its schedule.

    If the pause that delayed it is over or has changed, the retry is due now. Its overlap policy
    becomes that of the schedule.
    """
    lifted = before.pause and (after is None or after.pause != before.pause)
    paused_until = before.pause.end if before.pause and lifted else None
    due_at = now if retry.due_at == paused_until else retry.due_at
    overlap = retry.policies.overlap
    if after and not stands_beside(retry.origin):
        overlap = after.policies.overlap
    return replace(retry, due_at=due_at, policies=replace(retry.policies, overlap=overlap))

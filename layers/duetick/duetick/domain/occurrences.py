"""The occurrences that a claim, a change of a schedule or a caller brings into being."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from hashlib import blake2b
from typing import Final

from duetick.domain.firing import Decision, Missed, Times
from duetick.domain.policies import Policies
from duetick.domain.schedule import IndexRow, Occurrence
from duetick.domain.states import Reason, State, check_transition

CATCH_UP_PACE_MS: Final = 60_000


def spread_ms(user_id: str, key: str, window: int) -> int:
    """Where in a window of `window` seconds a schedule is dispatched: always the same place."""
    if not window:
        return 0
    digest = blake2b(f"{user_id}\0{key}".encode(errors="surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest) % (window * 1_000)


def of_row(
    row: IndexRow,
    nominal_at: int,
    now: int,
    *,
    due_at: int | None = None,
    state: State = State.QUEUED,
    fence: int = 0,
    lease_until: int | None = None,
) -> Occurrence:
    """An occurrence of an index row, without an id."""
    return Occurrence(
        user_id=row.user_id,
        key=row.key,
        cron=row.cron,
        timezone=row.timezone,
        nominal_at=nominal_at,
        flow=row.flow,
        fence=fence,
        state=state,
        due_at=nominal_at if due_at is None else due_at,
        lease_until=lease_until,
        priority=row.policies.priority,
        timing=row.timing,
        policies=row.policies,
        created_at=now,
        updated_at=now,
    )


def leased(occurrence: Occurrence, now: int) -> Occurrence:
    """The same under a new lease: whoever held the fence before holds nothing now."""
    check_transition(occurrence.state, State.QUEUED)
    return replace(
        occurrence,
        state=State.QUEUED,
        fence=occurrence.fence + 1,
        lease_until=_lease_until(occurrence.policies, occurrence.due_at, now),
        updated_at=now,
    )


def _lease_until(policies: Policies, due_at: int, now: int) -> int:
    return max(now, due_at) + policies.lease_ms


def fired(row: IndexRow, decision: Decision, now: int, ahead: int) -> Iterator[Occurrence]:
    """What a decision fires: leased where it is due by now + ahead, else scheduled."""
    late = now - row.policies.on_time_ms
    spread = spread_ms(row.user_id, row.key, row.policies.spread)
    for place, nominal_at in enumerate(decision.fires):
        due_at = nominal_at + spread
        if place and nominal_at < late:
            due_at = now + place * CATCH_UP_PACE_MS
        if due_at <= now + ahead:
            until = _lease_until(row.policies, due_at, now)
            yield of_row(row, nominal_at, now, due_at=due_at, fence=1, lease_until=until)
        else:
            yield of_row(row, nominal_at, now, due_at=due_at, state=State.SCHEDULED)


def ranged(row: IndexRow, missed: Missed, reason: Reason, now: int) -> Occurrence:
    """One cancelled row for all the nominal times of a range."""
    return replace(
        of_row(row, missed.first, now),
        state=State.CANCELLED,
        reason=reason,
        range_end=missed.last,
        count=missed.count,
    )


def apart(held: Occurrence, known: Iterable[int]) -> list[Occurrence]:
    """The ranges of `held` that leave out the known times, which have an occurrence of their own.

    Those are of the schedule's own origin: claimed ahead of a change, or brought by a caller.
    """
    first, last = held.nominal_at, held.range_end
    inside = [] if last is None else sorted(time for time in known if first <= time <= last)
    if last is None or not inside:
        return [held]
    times = Times(held.cron, held.timezone, first, held.policies)
    parts: list[Occurrence] = []
    start: int | None = first
    for time in inside:
        if start is not None:
            parts += _part(held, times, start, time - 1)
            start = times.after(time) if time < last else None
    return parts if start is None else [*parts, *_part(held, times, start, last)]


def _part(held: Occurrence, times: Times, start: int, until: int) -> list[Occurrence]:
    """Those of [start, until], of which the first is one of the times, if they are any."""
    if until < start:
        return []
    last = times.newest(start, until) or start
    count = 1 + times.count(start, until)
    return [replace(held, nominal_at=start, due_at=start, range_end=last, count=count)]


def poisoned(row: IndexRow, error: Exception, now: int) -> Occurrence:
    """The record of a row whose expression or zone cannot be read."""
    return replace(
        of_row(row, row.next_fire_at, now),
        state=State.DEAD,
        reason=Reason.POISONED,
        error=str(error),
    )

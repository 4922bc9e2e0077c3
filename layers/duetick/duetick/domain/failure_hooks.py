"""Failure hooks: the action that a schedule names in `on_failure` runs for each of its deaths.

                                     ┌ the dead occurrence ──┐
  begin · settle · lease · claim ────┤                       ├── one write
                                     └ its failure hook ─────┘
                                        scheduled, due now ──▶ a tick leases it

The write that makes an occurrence dead records the hook: an occurrence of an origin that names the
death, and so at most one for each. It stands beside its schedule, has promises of its own, and no
hook: none tells of the death of another. It tells of what has happened, so neither a pause nor the
disabling of its schedule keeps it from running. A delete does, and so does taking the hook away.
"""

from collections.abc import Callable, Iterable
from hashlib import blake2b
from typing import Final

from duetick.domain.identity import BACKFILL_ORIGIN, FAILURE_ORIGIN, is_failure_hook
from duetick.domain.occurrence import Death, Occurrence
from duetick.domain.policies import DAY, Delivery, Overlap, Policies
from duetick.domain.schedule import Record
from duetick.domain.states import State, end_state

LONGEST_NAMED: Final = 100
"""The longest origin that stands in that of a hook. A longer one stands there as its digest."""

LONGEST_TOLD: Final = 200
"""The most characters of an error that a hook gets: fifty may die at once in one item."""


def policies_of_hook(of_schedule: Policies) -> Policies:
    """Return the policies of a hook: at least once, with the default retry and timeout.

    It may begin within a day of its first lease. It is as urgent as its schedule.
    """
    return Policies(
        delivery=Delivery.AT_LEAST_ONCE,
        overlap=Overlap.ALLOW,
        longest_lateness=DAY,
        priority=of_schedule.priority,
    )


def has_hook(ended: Occurrence) -> bool:
    """Return True if a hook tells of the end of the occurrence: it died, and its policies name one.

    An occurrence of a backfill has none: its operator reads the count. A row without a record has
    none.
    """
    if ended.policies.on_failure is None or not ended.redefined_at:
        return False
    died = end_state(ended.state, ended.reason) is State.DEAD
    return died and not ended.origin.startswith((BACKFILL_ORIGIN, FAILURE_ORIGIN))


def action_run(record: Record, origin: str) -> str:
    """Return the action that an occurrence of a schedule runs: its own, or the one that a failure
    hook runs; empty if the schedule names no hook any more.
    """
    return (record.policies.on_failure or "") if is_failure_hook(origin) else record.action


def origin_of_hook(dead: Occurrence) -> str | None:
    """Return the origin of the hook that tells of a death; None if none does.

    The hook has the nominal time of the dead one, and names its origin and its last fence. An
    operator may retry what is dead: if it dies again, that is another death, under another fence.
    """
    if not has_hook(dead):
        return None
    named = dead.origin
    if len(named) > LONGEST_NAMED:
        named = blake2b(named.encode(errors="surrogatepass"), digest_size=16).hexdigest()
    return f"{FAILURE_ORIGIN}{named}:{dead.fence}"


def hook_of(dead: Occurrence, new_id: Callable[[], str]) -> Occurrence | None:
    """Return the hook that tells of a death, due at once; None if none does."""
    origin = origin_of_hook(dead)
    if origin is None or dead.reason is None:
        return None
    told = Death(
        dead.id,
        dead.origin,
        dead.reason,
        dead.attempts,
        dead.updated_at,
        dead.error and dead.error[:LONGEST_TOLD],
        dead.told and dead.told[:LONGEST_TOLD],
    )
    policies = policies_of_hook(dead.policies)
    return Occurrence(
        user_id=dead.user_id,
        key=dead.key,
        cron=dead.cron,
        timezone=dead.timezone,
        nominal_at=dead.nominal_at,
        origin=origin,
        id=new_id(),
        flow=dead.flow,
        state=State.SCHEDULED,
        due_at=dead.updated_at,
        lease_until=dead.updated_at,  # it may wait for a limit: see `transitions.is_held_back`
        priority=policies.priority,
        redefined_at=dead.redefined_at,
        policies=policies,
        created_at=dead.updated_at,
        updated_at=dead.updated_at,
        death=told,
    )


def hooks_of(ended: Iterable[Occurrence], new_id: Callable[[], str]) -> list[Occurrence]:
    """Return the hooks of those among some occurrences that one write has made dead."""
    found = (hook_of(one, new_id) for one in ended if one.state is State.DEAD)
    return [one for one in found if one]

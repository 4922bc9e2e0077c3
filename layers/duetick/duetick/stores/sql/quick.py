"""The everyday begin, and what the holder of a lease writes, by statements whose condition decides.

If such a statement changes no row, the general way loads the book and decides. That happens if the
occurrence has to wait or may not begin, if its runs are limited, if the call is a repeat, or if the
occurrence has changed since its holder read it.
"""

from typing import Final

from duetick.domain.occurrence import Leased, Occurrence
from duetick.domain.policies import Policies
from duetick.domain.states import State
from duetick.stores.sql.rows import identity_params
from duetick.stores.sql.session import QueryCall, Value

USUAL_LEASE_MS: Final = Policies().lease_ms


def begin_call(held: Leased, now: int) -> QueryCall:
    """Return the call that begins a leased occurrence."""
    more: dict[str, Value] = {"now": now, "usual_lease_ms": USUAL_LEASE_MS}
    return "occurrence_begin", begin_params(held) | more


def begin_params(held: Leased) -> dict[str, Value]:
    """Return the parameters of `occurrence_begin` that differ for each occurrence."""
    return identity_params(held.identity) | {"fence": held.fence, "flow": held.flow}


def params_of_lease(before: Occurrence, after: Occurrence) -> dict[str, Value]:
    """Return the parameters of `occurrence_move_leased`: the occurrence in hand, and the next."""
    params = identity_params(before.identity)
    params["fence"], params["next_fence"] = before.fence, after.fence
    params["before"], params["state"] = before.state.value, after.state.value
    params["attempts"], params["policies"] = before.attempts, before.policies.dump()
    params["reason"] = after.reason and after.reason.value
    params["error"], params["told"] = after.error, after.told
    params["due_at"], params["lease_until"] = after.due_at, after.lease_until
    params["held_until"] = None if _settles(before, after) else before.lease_until
    params["now"] = after.updated_at
    return params


def _settles(before: Occurrence, after: Occurrence) -> bool:
    """Return True if the attempt ends: its lease may have been renewed since the begin."""
    return before.state is State.PROCESSING and after.state is not State.PROCESSING

"""The everyday begin and settle as one statement each, whose condition decides.

If the statement changes no row, the general way loads the book and decides. That happens if the
occurrence has to wait or may not begin, if its runs are limited, or if the call is a repeat.
"""

from typing import Final

from duetick.domain.attempts import Settled
from duetick.domain.occurrence import Leased
from duetick.domain.policies import Policies
from duetick.domain.states import State
from duetick.stores.sql.rows import identity_params
from duetick.stores.sql.session import QueryCall

USUAL_LEASE_MS: Final = Policies().lease_ms


def begin_call(held: Leased, now: int) -> QueryCall:
    """Return the call that begins a leased occurrence."""
    params = identity_params(held.identity)
    params["fence"], params["now"] = held.fence, now
    params["flow"], params["usual_lease_ms"] = held.flow, USUAL_LEASE_MS
    return "occurrence_begin", params


def settle_call(one: Settled, now: int) -> QueryCall:
    """Return the call that writes the end of an attempt.

    The state after a failure depends on the attempts and policies at the begin, so the condition
    has both.
    """
    before, after = one.before, one.after
    params = identity_params(after.identity)
    params["fence"], params["now"] = after.fence, now
    params["state"], params["reason"] = after.state.value, after.reason and after.reason.value
    params["error"], params["told"] = after.error, after.told
    if after.state not in (State.RETRYING, State.DEAD):
        return "occurrence_settle", params
    params["attempts"], params["policies"] = before.attempts, before.policies.dump()
    params["note"] = one.event.note if one.event else None
    params["due_at"] = after.due_at if after.state is State.RETRYING else None
    return "occurrence_fail", params

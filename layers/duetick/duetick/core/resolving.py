"""Where a schedule comes from: the flow's static ones, its own resolver, or the store."""

import inspect
import logging
from dataclasses import dataclass
from typing import Final

from duetick.core.answers import Stop, error, told
from duetick.core.calls import Request
from duetick.core.flows import Flow
from duetick.core.timing import TimedOut, in_time, run_coroutine, run_within
from duetick.domain.identity import split_id
from duetick.domain.schedule import Principal, Schedule
from duetick.domain.states import Reason, State
from duetick.ports import Outcome, Store

PATIENCE: Final = 10.0
"""Seconds that a resolver may take."""

logger = logging.getLogger("duetick.dispatch")


@dataclass(frozen=True, slots=True)
class ResolveContext:
    """What a flow's resolver gets beside the schedule's id. It runs after authentication.

    `caller` is who the gateway says is calling; in secret mode nobody can tell, and it is None.
    """

    flow: str
    schedule_id: str
    caller: Principal | None
    request: Request
    store: Store

    def owned(self, found: Schedule | None) -> Schedule | None:
        """The schedule, if it belongs to the user that the id names; None otherwise.

        A resolver that looks its rows up by a key alone has to ask: the id comes from a URL, and
        the caller's secret does not prove that it may act for the user in it. Where the id names
        no user, the schedule has to be the caller's own.
        """
        user_id, _ = split_id(self.flow, self.schedule_id)
        if not user_id and self.caller:
            user_id = self.caller.user_id
        return found if found and user_id and found.user_id == user_id else None


def resolve(flow: Flow, schedule_id: str, request: Request, store: Store) -> Schedule | None:
    """The definition that an id stands for, None where there is none. Static ones come first."""
    if schedule_id in flow.static:
        return flow.static[schedule_id]
    if flow.resolve is None:
        found = store.schedules.get(*split_id(flow.name, schedule_id))
        return found if found and found.flow == flow.name else None
    return _ask(flow, ResolveContext(flow.name, schedule_id, request.caller, request, store))


def is_own(flow: Flow, schedule_id: str) -> bool:
    """Whether the flow says itself what the id stands for, and not the store."""
    return schedule_id in flow.static or flow.resolve is not None


def _ask(flow: Flow, context: ResolveContext) -> Schedule | None:
    found: list[object] = []

    def call() -> None:
        answer = flow.resolve(context.schedule_id, context) if flow.resolve else None
        found.append(run_coroutine(answer) if inspect.iscoroutine(answer) else answer)

    limit = in_time(PATIENCE, context.request.left)
    try:
        run_within(limit, call)
        return _checked(found[0])
    except TimedOut as problem:
        raise _failed(f"The flow's resolver took longer than {limit:g} s.") from problem
    except BaseException as problem:
        logger.exception("resolver failed", extra={"action": "resolver_failed"})
        raise _failed("The flow's resolver raised; see the log.", told(problem)) from problem


def _checked(found: object) -> Schedule | None:
    if found is None or isinstance(found, Schedule):
        return found
    raise TypeError(f"it returned {type(found).__name__}, not a Schedule or None")


def _failed(message: str, error_kept: str | None = None) -> Stop:
    outcome = Outcome(State.FAILED, Reason.FAILED, error_kept or message)
    return Stop(error("resolver_failed", message), outcome)

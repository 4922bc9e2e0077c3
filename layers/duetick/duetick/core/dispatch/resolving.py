"""The sources of a schedule: the flow's static ones, the flow's resolver, or the store."""

import inspect
import logging
from dataclasses import dataclass, field, replace
from typing import Final

from duetick.core.answers import error
from duetick.core.dispatch.calls import Request, about_call
from duetick.core.dispatch.stopping import Stop, describe_error, reason_of_error, refuse_invalid
from duetick.core.flow_settings import FlowSettings
from duetick.core.flows import Flow
from duetick.core.store import Store
from duetick.core.timeouts import TimedOut, cap_timeout, run_coroutine, run_within
from duetick.domain.attempts import Outcome
from duetick.domain.errors import InvalidSchedule
from duetick.domain.identity import is_job, split_id
from duetick.domain.schedule import Principal, Record, Schedule
from duetick.domain.states import Reason, State

PATIENCE: Final = 10.0
"""Seconds that a resolver may take."""

logger = logging.getLogger("duetick.dispatch")


@dataclass(frozen=True, slots=True)
class ResolveContext:
    """The context of a flow's resolver, beside the schedule's id. The resolver runs after
    authentication.

    `caller` is the caller that the gateway names; in secret mode it is None, because no one can
    tell. `settings` are those of the deployment.
    """

    flow: str
    schedule_id: str
    caller: Principal | None
    request: Request
    store: Store
    settings: FlowSettings = field(default_factory=FlowSettings)

    def owned(self, found: Schedule | None) -> Schedule | None:
        """Return the schedule if it belongs to the user that the id names, else None.

        A resolver that looks its rows up by a key alone has to call this. The id comes from a URL,
        and the caller's secret does not prove that the caller may act for the user whom the id
        names. If the id names no user, the schedule has to belong to the caller.
        """
        user_id, _ = split_id(self.flow, self.schedule_id)
        if not user_id and self.caller:
            user_id = self.caller.user_id
        return found if found and user_id and found.user_id == user_id else None


def resolve(
    flow: Flow, schedule_id: str, request: Request, store: Store, settings: FlowSettings
) -> Record | None:
    """Return the definition that an id stands for, or None. Static schedules come first."""
    if schedule_id in flow.static:
        return Record.of(flow.with_defaults(flow.static[schedule_id]))
    if flow.resolve is None or names_job(flow, schedule_id):
        found = store.schedules.get(*split_id(flow.name, schedule_id))
        return found if found and found.flow == flow.name else None
    return _call_resolver(
        flow, ResolveContext(flow.name, schedule_id, request.caller, request, store, settings)
    )


def is_own(flow: Flow, schedule_id: str) -> bool:
    """Return True if the flow, and not the store, defines the id. The store defines all jobs."""
    if schedule_id in flow.static:
        return True
    return flow.resolve is not None and not names_job(flow, schedule_id)


def names_job(flow: Flow, schedule_id: str) -> bool:
    """Return True if the id is a job's."""
    return is_job(split_id(flow.name, schedule_id)[1])


def _call_resolver(flow: Flow, context: ResolveContext) -> Record | None:
    found: list[object] = []

    def call() -> None:
        answer = flow.resolve(context.schedule_id, context) if flow.resolve else None
        found.append(run_coroutine(answer) if inspect.iscoroutine(answer) else answer)

    limit = cap_timeout(PATIENCE, context.request.left)
    details = {"action": "resolver_failed", **about_call(context.request)}
    try:
        run_within(limit, call)
        answer = _check_answer(found[0])
        return answer and flow.with_defaults(answer)
    except TimedOut as problem:
        late = f"The flow's resolver took longer than {limit:g} s."
        logger.error(late, extra=details)
        raise _failure(late) from problem
    except InvalidSchedule as problem:  # the answer names a principal, or a flow, that cannot be
        raise Stop(refuse_invalid(problem)) from problem
    except BaseException as problem:
        logger.exception("resolver failed", extra=details)
        why, reason = describe_error(problem), reason_of_error(problem)
        raise _failure("The flow's resolver raised; see the log.", why, reason) from problem


def _check_answer(found: object) -> Record | None:
    """Return a resolver's answer as a record. It names its principal."""
    if isinstance(found, Schedule):
        return replace(Record.of(found), principal=found.runs_as)
    if found is None:
        return None
    raise TypeError(f"it returned {type(found).__name__}, not a Schedule or None")


def _failure(message: str, error_kept: str = "", reason: Reason = Reason.FAILED) -> Stop:
    told = None if error_kept else message
    outcome = Outcome(State.FAILED, reason, error_kept or message, told=told)
    return Stop(error("resolver_failed", message), outcome)

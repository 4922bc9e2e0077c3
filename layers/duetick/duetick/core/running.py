"""Run a begun attempt's action: as the schedule's principal, with its input, in its time."""

import inspect
import logging
import traceback
from contextlib import AbstractContextManager, nullcontext
from typing import Final

from duetick.core.accepting import Quotas
from duetick.core.agents import AgentSchedules
from duetick.core.answers import Stop, error, told
from duetick.core.attempts import Attempt, renewed
from duetick.core.context import Context
from duetick.core.flows import Action, Flows
from duetick.core.schedules import UserSchedules
from duetick.core.timing import TimedOut, run_coroutine, run_within
from duetick.domain.errors import InvalidSchedule
from duetick.domain.schedule import Json, Occurrence, Schedule, check_timing
from duetick.domain.states import Reason, State
from duetick.ports import Clock, Outcome, Store

RESERVE: Final = 2.0
"""Seconds of an invocation that are kept for settling."""

logger = logging.getLogger("duetick.dispatch")


class Runner:
    """Runs actions of one deployment's flows. What keeps one from its end is a `Stop`."""

    def __init__(self, store: Store, flows: Flows, clock: Clock, quotas: Quotas) -> None:
        self._store = store
        self._flows = flows
        self._clock = clock
        self._quotas = quotas

    def run(self, schedule: Schedule, attempt: Attempt, seconds: float | None) -> None:
        """The action, as the schedule's principal; a schedule that has become bad is rejected."""
        try:
            check_timing(schedule.cron, schedule.timezone)
            action = self._flows.action_of(schedule)
            context = Context.of(
                schedule, attempt.occurrence, self._clock(), attempt.transaction, self._schedules
            )
        except ValueError as problem:
            raise Stop(error("invalid_schedule", str(problem))) from problem
        with self._held(action, attempt.occurrence):
            limit = _limit(schedule, action, seconds)
            self._call_action(action, schedule, context, limit)

    def _schedules(self, user_id: str, flow: str) -> AgentSchedules:
        own = UserSchedules(self._store, self._flows, user_id, self._clock, self._quotas)
        return AgentSchedules(own, flow)

    def _held(self, action: Action, occurrence: Occurrence) -> AbstractContextManager[None]:
        if action.background:
            return renewed(self._store.ledger, occurrence, self._clock)
        return nullcontext()

    def _call_action(
        self, action: Action, schedule: Schedule, context: Context, limit: float | None
    ) -> None:
        given = [schedule.input]  # the last is what the action is to read

        def shown(text: str) -> str:
            return action.told(text, given[-1])

        def call() -> None:
            given.append(self._flows.input_for(schedule, context))
            result = action.run(_read(action, given[-1]), context)
            if inspect.iscoroutine(result):
                run_coroutine(result)

        try:
            run_within(limit, call) if limit else call()
        except Stop:
            raise
        except TimedOut as problem:
            message = f"The action took longer than {limit:g} s."
            failed = Outcome(State.FAILED, Reason.FAILED, message)
            raise Stop(error("action_failed", message), failed) from problem
        except Exception as problem:
            why = told(problem, shown)
            _log(problem, why, shown("".join(traceback.format_exception(problem))))
            failed = Outcome(State.FAILED, Reason.FAILED, why)
            message = "The action raised; see the log."
            raise Stop(error("action_failed", message), failed) from problem


def _read(action: Action, given: Json) -> object:
    try:
        return action.read(given)
    except InvalidSchedule as problem:
        raise Stop(error("invalid_schedule", str(problem))) from problem


def _log(problem: Exception, why: str, stack: str) -> None:
    """What `logger.exception` would tell, but for the secrets of the input."""
    raised = {"exception": stack, "exception_name": type(problem).__name__}
    logger.error("action failed: %s", why, extra={"action": "action_failed", **raised})


def _limit(schedule: Schedule, action: Action, seconds: float | None) -> float | None:
    """The soft timeout: the schedule's, but before the invocation's own end. A background action
    has the whole of its invocation."""
    left = None if seconds is None else max(seconds - RESERVE, 0.1)
    if action.background:
        return left
    timeout = float(schedule.policies.timeout)
    return timeout if left is None else min(timeout, left)

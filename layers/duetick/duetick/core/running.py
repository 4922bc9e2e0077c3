"""Run a begun attempt's action: as the schedule's principal, with its input, in its time."""

import copy
import inspect
import logging
import traceback
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

from duetick.core.accepting import Quotas
from duetick.core.agents import AgentSchedules
from duetick.core.answers import Stop, error, told
from duetick.core.attempts import Attempt, renewed
from duetick.core.context import Context
from duetick.core.flows import Action, Flows
from duetick.core.schedules import UserSchedules
from duetick.core.timing import TimedOut, in_time, run_coroutine, run_within
from duetick.domain.errors import InvalidSchedule
from duetick.domain.policies import LONGEST_TIMEOUT
from duetick.domain.schedule import Json, Occurrence, Schedule, check_timing
from duetick.domain.states import Reason, State
from duetick.ports import Clock, Outcome, Store

logger = logging.getLogger("duetick.dispatch")


class Runner:
    """Runs actions of one deployment's flows. What keeps one from its end is a `Stop`."""

    def __init__(self, store: Store, flows: Flows, clock: Clock, quotas: Quotas) -> None:
        self._store = store
        self._flows = flows
        self._clock = clock
        self._quotas = quotas

    def run(self, schedule: Schedule, attempt: Attempt, left: float | None) -> None:
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
            # A background action has the whole of its invocation.
            timeout = LONGEST_TIMEOUT if action.background else schedule.policies.timeout

            given = [schedule.input]  # the last is what the action is to read

            def call() -> None:
                with attempt.acting():
                    given.append(self._flows.input_for(schedule, context))
                    _call(action, given[-1], context)

            _ended(call, in_time(timeout, left), lambda text: action.told(text, given[-1]))

    def _schedules(self, user_id: str, flow: str) -> AgentSchedules:
        own = UserSchedules(self._store, self._flows, user_id, self._clock, self._quotas)
        return AgentSchedules(own, flow)

    def _held(self, action: Action, occurrence: Occurrence) -> AbstractContextManager[None]:
        if action.background:
            return renewed(self._store.ledger, occurrence, self._clock)
        return nullcontext()


def _call(action: Action, given: Json, context: Context) -> None:
    result = action.run(_read(action, given), context)
    if inspect.iscoroutine(result):
        run_coroutine(result)


def _read(action: Action, given: Json) -> object:
    """A copy for the action to work on: a static schedule lives as long as its process."""
    try:
        return action.read(copy.deepcopy(given))
    except InvalidSchedule as problem:
        raise Stop(error("invalid_schedule", str(problem))) from problem


def _ended(call: Callable[[], None], limit: float, shown: Callable[[str], str]) -> None:
    """Call it to its end. Whatever it raises has ended it, `sys.exit` too."""
    try:
        run_within(limit, call)
    except Stop:
        raise
    except TimedOut as problem:
        raise _failed(f"The action took longer than {limit:g} s.") from problem
    except BaseException as problem:
        why = told(problem, shown)
        _log(problem, why, shown("".join(traceback.format_exception(problem))))
        raise _failed("The action raised; see the log.", why) from problem


def _log(problem: BaseException, why: str, stack: str) -> None:
    """What `logger.exception` would tell, but for the secrets of the input."""
    raised = {"exception": stack, "exception_name": type(problem).__name__}
    logger.error("action failed: %s", why, extra={"action": "action_failed", **raised})


def _failed(message: str, error_kept: str | None = None) -> Stop:
    outcome = Outcome(State.FAILED, Reason.FAILED, error_kept or message)
    return Stop(error("action_failed", message), outcome)

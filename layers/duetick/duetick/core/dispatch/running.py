"""The run of a begun attempt's action: as the schedule's principal, with its input, in its time."""

import copy
import inspect
import logging
import traceback
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Unpack

from duetick.core.accepting import Quotas
from duetick.core.action import Action
from duetick.core.agents import AgentSchedules
from duetick.core.answers import error
from duetick.core.context import Context, EnqueueJob, JobFields
from duetick.core.declarations import check_kept
from duetick.core.dispatch.attempt import Attempt, renew_while_running
from duetick.core.dispatch.stopping import (
    NotDeployed,
    Stop,
    describe_error,
    refuse_invalid,
    words_for_user,
)
from duetick.core.flows import Flows
from duetick.core.log_lines import about
from duetick.core.schedules import UserSchedules
from duetick.core.store import Store
from duetick.core.timeouts import Await, TimedOut, Within, cap_timeout, run_coroutine
from duetick.domain.attempts import Outcome
from duetick.domain.errors import ConfigurationError, InvalidSchedule
from duetick.domain.policies import LONGEST_TIMEOUT
from duetick.domain.redaction import WITHHELD, Secrets
from duetick.domain.schedule import Json, Occurrence, Schedule, check_timing
from duetick.domain.states import Reason, State
from duetick.ports import Clock, HandOn

if TYPE_CHECKING:
    from duetick.domain.jobs import Job

logger = logging.getLogger("duetick.dispatch")


class Runner:
    """A runner of the actions of one deployment. If an action cannot reach its end, it raises
    `Stop`.
    """

    def __init__(
        self,
        store: Store,
        flows: Flows,
        clock: Clock,
        quotas: Quotas,
        within: Within,
        *,
        hand_on: HandOn | None = None,
        await_shared: Await | None = None,
    ) -> None:
        """Take the parts. `await_shared` runs the coroutines of actions on one loop.

        The coroutines of transactional actions have a loop of their own, because a transaction may
        belong to its thread.
        """
        self._store = store
        self._flows = flows
        self._clock = clock
        self._quotas = quotas
        self._hand_on = hand_on
        self._within = within
        self._await_shared = await_shared

    def run(
        self, schedule: Schedule, attempt: Attempt, left: float | None, sent: Json = None
    ) -> None:
        """Run the action as the schedule's principal. Reject a schedule that has become invalid.
        `sent` is an outside caller's body for the action.
        """
        try:
            if attempt.occurrence.death is None:  # a hook may tell of a cron that is unreadable
                check_timing(schedule.cron, schedule.timezone)
            action = self._flows.action_of(schedule)
            check_kept(action, attempt.occurrence)
            context = Context.of(
                schedule, attempt.occurrence, self._clock(), attempt.transaction, self._schedules
            )
            context = replace(
                context,
                body=sent,
                settings=self._flows.settings,
                enqueue_job=self._enqueuing(attempt),
            )
        except ValueError as problem:
            gone = self._flows.missing(schedule.flow, schedule.action) is not None
            raise (NotDeployed if gone else Stop)(refuse_invalid(problem)) from problem
        with self._keep_lease(action, attempt.occurrence):
            # A background action has the whole of its invocation.
            timeout = LONGEST_TIMEOUT if action.background else schedule.policies.timeout

            inputs = [schedule.input]  # the action reads the last one
            limit = cap_timeout(timeout, left)

            def call() -> None:
                with attempt.acting():
                    inputs.append(self._flows.input_for(schedule, context))
                    self._call(action, inputs[-1], context, limit)

            within = partial(self._within, limit, call)

            def secrets() -> Secrets:
                told = (inputs[-1], sent, context.settings.withheld())
                known: list[Json] = [one for one in told if one is not None]
                return action.secrets(known[0] if len(known) == 1 else known)

            _run_to_end(within, limit, secrets, attempt.occurrence)

    def _schedules(self, user_id: str, flow: str) -> AgentSchedules:
        schedules = UserSchedules(self._store, self._flows, user_id, self._clock, self._quotas)
        return AgentSchedules(schedules, flow)

    def _enqueuing(self, attempt: Attempt) -> EnqueueJob:
        """Return the function by which the action of an attempt enqueues jobs."""

        def enqueue(
            context: Context, action: str, given: Json, /, **more: Unpack[JobFields]
        ) -> "Job":
            from duetick.core.jobs import UserJobs, enqueue_for  # for actions that enqueue alone

            schedules = self._schedules(context.principal.user_id, context.flow).schedules
            jobs = UserJobs(schedules, self._hand_on)
            return enqueue_for(jobs, context, attempt, action, given, **more)

        return enqueue

    def _call(self, action: Action, given: Json, context: Context, limit: float) -> None:
        result = action.run(_read_input(action, given), context)
        if not inspect.iscoroutine(result):
            return
        if self._await_shared is None or action.transactional:
            run_coroutine(result)
        else:
            self._await_shared(result, limit)

    def _keep_lease(self, action: Action, occurrence: Occurrence) -> AbstractContextManager[None]:
        if action.background:
            return renew_while_running(self._store.ledger, occurrence, self._clock)
        return nullcontext()


def _read_input(action: Action, given: Json) -> object:
    """Return a copy of the input for the action to work on: a static schedule outlives the run."""
    try:
        return action.read(copy.deepcopy(given))
    except InvalidSchedule as problem:
        raise Stop(refuse_invalid(problem)) from problem


def _run_to_end(
    call: Callable[[], None], limit: float, secrets: Callable[[], Secrets], occurrence: Occurrence
) -> None:
    """Run the call to its end. Any exception ends the attempt, even that of `sys.exit`."""
    try:
        call()
    except Stop:
        raise
    except TimedOut as problem:
        late = f"The action took longer than {limit:g} s."
        _log(occurrence, late)
        outcome = Outcome(State.FAILED, Reason.FAILED, late, told=late)
        raise Stop(error("action_failed", late), outcome) from problem
    except BaseException as problem:
        why, stack, told = _describe(problem, secrets)
        _log(occurrence, why, exception=stack, exception_name=type(problem).__name__)
        final = isinstance(problem, ConfigurationError)
        outcome = Outcome(State.FAILED, Reason.FAILED, why, final, told)
        raise Stop(error("action_failed", "The action raised; see the log."), outcome) from problem


def _describe(
    problem: BaseException, secrets: Callable[[], Secrets]
) -> tuple[str, str, str | None]:
    """Return an error, its stack and the words for the user, without the input's secrets.

    If that fails, nothing of the error is shown: in any case the attempt is settled.
    """
    try:
        without = secrets().without
        stack = without("".join(traceback.format_exception(problem)))
        return describe_error(problem, without), stack, words_for_user(problem, without)
    except Exception:
        return f"{type(problem).__name__}: {WITHHELD}", WITHHELD, None


def _log(occurrence: Occurrence, why: str, **raised: str) -> None:
    """Log the text that `logger.exception` would log, without the secrets of the input."""
    details = {"action": "action_failed", "attempt": occurrence.attempts, **raised}
    logger.error("action failed: %s", why, extra=details | about(occurrence))

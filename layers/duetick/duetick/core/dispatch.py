"""Deliver one occurrence: authenticate, resolve, validate, begin, run, settle.

The order is CONTRACT's D-02: nothing but the id's form is looked at before the caller is known.
An occurrence that a tick leased is begun first, which reads its schedule in the same write;
whatever then keeps it from running is settled, so that the ledger says so.
"""

import asyncio
import inspect
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

from duetick.core.answers import Answer, accepted, duplicate, error, skipped
from duetick.core.context import Context
from duetick.core.flows import Action, Flow, Flows
from duetick.core.wire import instant, read_object
from duetick.domain.errors import DuetickError, InvalidSchedule
from duetick.domain.expression import newest
from duetick.domain.identity import SCHEDULE_ORIGIN, InvalidId, check_id, from_path, split_id
from duetick.domain.mirror import row_of
from duetick.domain.occurrences import of_row
from duetick.domain.policies import DAY
from duetick.domain.schedule import Json, Occurrence, Schedule, check_timing
from duetick.domain.states import Reason, State
from duetick.ports import SUCCEEDED, Begun, Clock, Outcome, Refused, Store

LARGEST_BODY: Final = 256 * 1024
LONGEST_ERROR: Final = 500
NOT_FOUND: Final = "No such schedule."

logger = logging.getLogger("duetick.dispatch")


@dataclass(frozen=True, slots=True)
class Request:
    """A call of the dispatch route, as it came. `path_id` is still encoded."""

    flow: str
    path_id: str
    headers: Mapping[str, str]
    body: str
    request_id: str


Authenticate: TypeAlias = Callable[[Request], bool]


class Stop(Exception):
    """Ends a dispatch with an answer; what was begun is settled with the outcome."""

    def __init__(self, answer: Answer, outcome: Outcome | None = None) -> None:
        super().__init__(answer.body.get("message"))
        self.answer = answer
        self.outcome = outcome


class Dispatcher:
    """The path of an occurrence, for one deployment's flows."""

    def __init__(
        self, store: Store, flows: Flows, authenticate: Authenticate, clock: Clock
    ) -> None:
        self._store = store
        self._flows = flows
        self._authenticate = authenticate
        self._clock = clock

    def __call__(self, request: Request) -> Answer:
        """The answer to a call; D-03's table."""
        try:
            return self._dispatch(request)
        except Stop as stop:
            return stop.answer
        except InvalidId as problem:
            return error("invalid_schedule_id", str(problem))
        except InvalidSchedule as problem:
            return error("invalid_schedule", str(problem))
        except DuetickError:
            logger.exception("dispatch failed", extra={"action": "dispatch_failed"})
            return error("dispatch_failed", "The occurrence could not be taken up; try again.")

    def _dispatch(self, request: Request) -> Answer:
        schedule_id = check_id(from_path(request.path_id))
        if not self._authenticate(request):
            return error("unauthorized", "The caller's secret is missing or wrong.")
        flow = self._flow(request.flow)
        if len(request.body) > LARGEST_BODY:
            return error("too_large", f"A body may have {LARGEST_BODY // 1024} KB.")
        occurrence = self._named(flow, schedule_id, read_object(request.body))
        begun = self._store.ledger.begin(occurrence, now=self._clock())
        if isinstance(begun, Refused):
            return _refused(begun)
        return self._settle(flow, begun, request.request_id)

    def _flow(self, name: str) -> Flow:
        if not self._flows:
            raise Stop(error("flow_unregistered", "This deployment has no flows."))
        flow = self._flows.get(name)
        if flow is None:
            raise Stop(error("flow_not_found", f"There is no flow {name[:64]!r}."))
        return flow

    def _named(self, flow: Flow, schedule_id: str, body: dict[str, Json]) -> Occurrence:
        """The occurrence that a call is about."""
        user_id, key = split_id(flow.name, schedule_id)
        if body.get("userId", user_id) != user_id or body.get("key", key) != key:
            raise Stop(error("invalid_schedule_id", "Path and body name different schedules."))
        nominal_at = instant("nominalFireTime", body.get("nominalFireTime"))
        fence = body.get("fence")
        if isinstance(fence, int) and nominal_at is not None:
            origin = str(body.get("origin", SCHEDULE_ORIGIN))
            return Occurrence(user_id, key, "", None, nominal_at, fence, origin, flow=flow.name)
        return self._called(flow, schedule_id, body, nominal_at)

    def _called(
        self, flow: Flow, schedule_id: str, body: dict[str, Json], nominal_at: int | None
    ) -> Occurrence:
        """A caller that holds no lease asks for the newest fire time, or the one it names."""
        schedule = self._resolve(flow, schedule_id)
        if schedule is None or not schedule.enabled:
            raise Stop(error("schedule_not_found", NOT_FOUND))
        check_timing(schedule.cron, schedule.timezone)
        if nominal_at is None:
            nominal_at = _newest(schedule, self._clock())
        origin = SCHEDULE_ORIGIN
        if body.get("idempotencyKey") is not None:
            origin = f"call:{str(body['idempotencyKey'])[:128]}"
        made = of_row(row_of(schedule, nominal_at), nominal_at, self._clock())
        return replace(made, origin=origin, due_at=self._clock())

    def _resolve(self, flow: Flow, schedule_id: str) -> Schedule | None:
        """Static first, then the flow's own resolver, else the store."""
        if schedule_id in flow.static:
            return flow.static[schedule_id]
        if flow.resolve is not None:
            return _resolve_own(flow.resolve, schedule_id)
        found = self._store.schedules.get(*split_id(flow.name, schedule_id))
        return found if found and found.flow == flow.name else None

    def _settle(self, flow: Flow, begun: Begun, request_id: str) -> Answer:
        """Run what was begun; whatever happens is settled."""
        occurrence = begun.occurrence
        try:
            self._run(flow, begun)
            outcome = SUCCEEDED
            answer = accepted(occurrence.schedule_id, occurrence.origin, request_id)
        except Stop as stop:
            answer = stop.answer
            message = str(answer.body.get("message", ""))[:LONGEST_ERROR]
            outcome = stop.outcome or Outcome(State.FAILED, Reason.REJECTED, message)
        if self._store.ledger.settle(occurrence, outcome, now=self._clock()) is None:
            return error("dispatch_failed", "The lease ended before the action did.")
        return answer

    def _run(self, flow: Flow, begun: Begun) -> None:
        occurrence = begun.occurrence
        schedule = begun.schedule or self._resolve(flow, occurrence.schedule_id)
        if schedule is None:
            gone = Outcome(State.CANCELLED, Reason.SCHEDULE_DELETED)
            raise Stop(error("schedule_not_found", NOT_FOUND), gone)
        action, value = self._validate(schedule)
        known = replace(occurrence, cron=schedule.cron, timezone=schedule.timezone)
        context = Context.of(schedule.flow, known, schedule.runs_as, self._clock())
        _run_action(action, value, context)

    def _validate(self, schedule: Schedule) -> tuple[Action, object]:
        """The action and its input; a schedule that has become invalid is rejected."""
        try:
            check_timing(schedule.cron, schedule.timezone)
            self._flows.check_action(schedule.flow, schedule.action)
            flow = self._flows.get(schedule.flow)
            action = (flow.actions if flow else {})[schedule.action]
            return action, action.takes.read(schedule.input)
        except ValueError as problem:
            raise Stop(error("invalid_schedule", str(problem))) from problem


def _newest(schedule: Schedule, now: int) -> int:
    policies = schedule.policies
    found = newest(
        schedule.cron,
        schedule.timezone,
        now - 5 * 366 * DAY * 1_000,
        now,
        gap=policies.gap,
        repeat=policies.repeat,
        anchor=schedule.anchor,
    )
    if found is None:
        raise InvalidSchedule("cron", "has no fire time up to now; send nominalFireTime.")
    return found


def _resolve_own(resolver: Callable[[str], object], schedule_id: str) -> Schedule | None:
    try:
        found = resolver(schedule_id)
        if inspect.iscoroutine(found):
            found = asyncio.run(found)
    except Exception as problem:
        logger.exception("resolver failed", extra={"action": "resolver_failed"})
        failed = Outcome(State.FAILED, Reason.FAILED, _tell(problem))
        message = "The flow's resolver raised; see the log."
        raise Stop(error("resolver_failed", message), failed) from problem
    return found if isinstance(found, Schedule) else None


def _run_action(action: Action, value: object, context: Context) -> None:
    try:
        result = action.run(value, context)
        if inspect.iscoroutine(result):
            asyncio.run(result)
    except Exception as problem:
        logger.exception("action failed", extra={"action": "action_failed"})
        failed = Outcome(State.FAILED, Reason.FAILED, _tell(problem))
        raise Stop(error("action_failed", "The action raised; see the log."), failed) from problem


def _tell(problem: Exception) -> str:
    return f"{type(problem).__name__}: {problem}"[:LONGEST_ERROR]


def _refused(refused: Refused) -> Answer:
    match refused.verdict:
        case "cancelled":
            return skipped(refused.reason or "")
        case "duplicate":
            if refused.state is State.CANCELLED:
                return skipped(refused.reason or "")
            return duplicate(refused.state or "")
        case "unknown":
            return error("schedule_not_found", NOT_FOUND)
        case "stale" | "in_progress":
            return error("in_progress", "This occurrence is another's at the moment.")

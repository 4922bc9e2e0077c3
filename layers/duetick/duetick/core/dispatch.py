"""Deliver one occurrence: authenticate, resolve, validate, begin, run, settle.

The order is CONTRACT's D-02: nothing but the id's form is looked at before the caller is known.
An occurrence that a tick leased is begun first, which reads its schedule in the same write;
whatever then keeps it from running is settled, so that the ledger says so. One that an outside
caller asks for is resolved and validated first: what cannot run is not recorded.
"""

import json
import logging
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Final, NoReturn, TypeAlias

from duetick.core.accepting import Quotas
from duetick.core.answers import (
    Answer,
    Stop,
    accepted,
    duplicate,
    error,
    in_progress,
    skipped,
    wrong_method,
)
from duetick.core.attempts import Attempt
from duetick.core.callers import asked_for
from duetick.core.calls import Authenticate, Call, Request, read_call
from duetick.core.flows import Flow, Flows
from duetick.core.resolving import is_own, resolve
from duetick.core.running import Runner
from duetick.core.wire import iso, read_object, static_json
from duetick.domain.attempts import refuse
from duetick.domain.errors import InvalidSchedule, SchemaOutdated, StoreUnavailable
from duetick.domain.expression import InvalidExpression, InvalidTimezone
from duetick.domain.identity import InvalidId, check_id, from_path
from duetick.domain.schedule import Json, Occurrence, Schedule, check_timing
from duetick.domain.states import Reason, State
from duetick.ports import SUCCEEDED, Begun, Clock, Outcome, Refused, Store

LARGEST_BODY: Final = 256 * 1024
NOT_FOUND: Final = "No such schedule."

Enqueue: TypeAlias = Callable[[Request], None]
Settled: TypeAlias = Callable[[Occurrence], object]

logger = logging.getLogger("duetick.dispatch")


def _ignore(_occurrence: Occurrence) -> None:
    """Nobody counts."""


class Dispatcher:
    """The path of an occurrence, for one deployment's flows.

    `enqueue` starts an invocation of its own that calls `run_queued`, and returns when that is
    durable. `on_settled` sees every occurrence as it was settled, or as a begin found it lost.
    """

    def __init__(
        self,
        store: Store,
        flows: Flows,
        authenticate: Authenticate,
        clock: Clock,
        *,
        enqueue: Enqueue | None = None,
        on_settled: Settled = _ignore,
        quotas: Quotas | None = None,
    ) -> None:
        self._store = store
        self._flows = flows
        self._runner = Runner(store, flows, clock, quotas or Quotas())
        self._authenticate = authenticate
        self._clock = clock
        self._enqueue = enqueue
        self._on_settled = on_settled

    def __call__(self, request: Request) -> Answer:
        """The answer to a call; D-03's table."""
        return _answered(lambda: self._dispatch(request))

    def run_queued(self, request: Request) -> Answer:
        """Run what `enqueue` was given: its caller was authenticated then."""
        return _answered(lambda: self._deliver(*self._read(request), request, queued=True))

    def _dispatch(self, request: Request) -> Answer:
        if request.path_id is not None:
            check_id(from_path(request.path_id))
        if not self._authenticate(request):
            raise Stop(error("unauthorized", "The caller's secret is missing or wrong."))
        wanted = "GET" if request.path_id is None else "POST"
        if request.method != wanted:
            raise Stop(wrong_method(wanted))
        if request.path_id is None:
            return _describe(self._flow(request))
        return self._deliver(*self._read(request), request)

    def _read(self, request: Request) -> tuple[Flow, Call]:
        return self._flow(request), _read_call(request)

    def _flow(self, request: Request) -> Flow:
        if not self._flows:
            raise Stop(error("flow_unregistered", "This deployment has no flows."))
        flow = self._flows.get(request.flow)
        if flow is None:
            gone = Stop(error("flow_not_found", f"There is no flow {request.flow[:64]!r}."))
            self._reject(request, gone)
            raise gone
        return flow

    def _reject(self, request: Request, gone: Stop) -> None:
        """What a tick leased of a flow that is gone ends here: no other tick would do better."""
        with suppress(Stop, ValueError):
            leased = _read_call(request).leased()
            held = leased and self._store.ledger.get(*leased.identity)
            if leased is None or held is None or held.flow != request.flow:
                return
            begun = self._store.ledger.begin(leased, now=self._clock())
            if isinstance(begun, Begun):
                self._settle(begun, request, lambda _attempt: _raise(gone))

    def _deliver(self, flow: Flow, call: Call, request: Request, *, queued: bool = False) -> Answer:
        leased = call.leased()
        if leased and (queued or not flow.has_background):
            return self._take_up(flow, call, leased, None, request)
        held = call.own_key and self._store.ledger.holds(call.own_key, now=self._clock())
        if held:
            return _refused(held)
        definition = self._definition(flow, call, request)
        if definition is None:
            return self._take_up(flow, call, leased, None, request) if leased else _missing()
        occurrence = leased or asked_for(self._store.ledger, definition, call, self._clock())
        if self._flows.action_of(definition).background and not queued:
            return self._queue(occurrence, call, request)
        return self._take_up(flow, call, occurrence, definition, request)

    def _definition(self, flow: Flow, call: Call, request: Request) -> Schedule | None:
        """What is to run, before anything is begun; None where a lease's holder finds nothing."""
        if call.leased():
            # What goes wrong with one that is leased goes wrong again once it is begun, and is
            # settled then.
            with suppress(Stop):
                found = resolve(flow, call.schedule_id, request, self._store)
                return found if found and found.action in flow.actions else None
            return None
        found = resolve(flow, call.schedule_id, request, self._store)
        if found is None or not found.enabled:
            raise Stop(error("schedule_not_found", NOT_FOUND))
        check_timing(found.cron, found.timezone)
        self._flows.check_input(found)
        return found

    def _queue(self, occurrence: Occurrence, call: Call, request: Request) -> Answer:
        """Hand it to an invocation of its own, unless it was taken up already."""
        if self._enqueue is None:
            return error("dispatch_failed", "Background actions need an `enqueue` of yours.")
        held = self._leased(occurrence, call)
        if isinstance(held, Refused):
            return _refused(held)
        named = {"nominalFireTime": iso(held.nominal_at), "origin": held.origin}
        body = read_object(request.body) | named | {"fence": held.fence}
        try:
            self._enqueue(replace(request, body=json.dumps(body)))
        except Exception:
            if occurrence.fence:
                raise
            # It is recorded, so it is taken: the next tick brings it.
            logger.warning("not enqueued", extra={"action": "enqueue_failed"}, exc_info=True)
            self._store.ledger.release(held, now=self._clock())
        return accepted(held.schedule_id, held.origin, request.request_id, "queued")

    def _leased(self, occurrence: Occurrence, call: Call) -> Occurrence | Refused:
        """Under a lease, so that a tick finds it should its invocation never come."""
        now = self._clock()
        if not occurrence.fence:
            return self._store.ledger.bring(occurrence, now=now, key=call.own_key)
        held = self._store.ledger.get(*occurrence.identity)
        refused = refuse(held, occurrence, now) if held else Refused("unknown")
        return refused or occurrence

    def _take_up(
        self,
        flow: Flow,
        call: Call,
        occurrence: Occurrence,
        definition: Schedule | None,
        request: Request,
    ) -> Answer:
        begun = self._store.ledger.begin(
            occurrence, now=self._clock(), key=call.own_key, on_lost=self._on_settled
        )
        if isinstance(begun, Refused):
            return _refused(begun)
        own = is_own(flow, call.schedule_id)
        known = definition if own or begun.schedule is None else begun.schedule

        def run(attempt: Attempt) -> None:
            schedule = known or self._defined(flow, call, begun, request)
            self._runner.run(schedule, attempt, request.left)

        return self._settle(begun, request, run)

    def _settle(self, begun: Begun, request: Request, run: Callable[[Attempt], None]) -> Answer:
        """Run what was begun; whatever happens is settled."""
        occurrence = begun.occurrence
        attempt = Attempt(self._store.ledger, occurrence, self._clock)
        outcome = SUCCEEDED
        answer = accepted(occurrence.schedule_id, occurrence.origin, request.request_id)
        why: BaseException | None = None
        try:
            run(attempt)
        except Stop as stop:
            message = str(stop.answer.body.get("message", ""))
            rejected = Outcome(State.FAILED, Reason.REJECTED, message)
            outcome, answer, why = stop.outcome or rejected, stop.answer, stop.__cause__
        settled = attempt.settle(outcome)
        if isinstance(why, KeyboardInterrupt):
            raise why
        if settled is None:
            return error("dispatch_failed", "The lease ended before the action did.")
        self._on_settled(settled)
        if attempt.committed:
            return accepted(occurrence.schedule_id, occurrence.origin, request.request_id)
        return answer

    def _defined(self, flow: Flow, call: Call, begun: Begun, request: Request) -> Schedule:
        """The definition of what a tick leased: the flow's own, or the record that was read."""
        found = begun.schedule
        if is_own(flow, call.schedule_id):
            found = resolve(flow, call.schedule_id, request, self._store)
        if found is None:
            raise _withdrawn(Reason.SCHEDULE_DELETED)
        if not found.enabled:
            raise _withdrawn(Reason.DISABLED)
        return found


def _read_call(request: Request) -> Call:
    if len(request.body) > LARGEST_BODY:
        raise Stop(error("too_large", f"A body may have {LARGEST_BODY // 1024} KB."))
    return read_call(request.flow, from_path(request.path_id or ""), read_object(request.body))


def _raise(stop: Stop) -> NoReturn:
    raise stop


def _answered(act: Callable[[], Answer]) -> Answer:
    """Its answer; what it raises becomes one that tells no secret and no stack."""
    try:
        return act()
    except Stop as stop:
        return stop.answer
    except InvalidId as problem:
        return error("invalid_schedule_id", str(problem))
    except (InvalidSchedule, InvalidExpression, InvalidTimezone) as problem:
        return error("invalid_schedule", str(problem))
    except Exception as problem:
        logger.exception("dispatch failed", extra={"action": "dispatch_failed"})
        if isinstance(problem, SchemaOutdated):
            return error("dispatch_failed", str(problem))
        down = isinstance(problem, StoreUnavailable)
        why = "The database did not answer" if down else "Something unexpected happened"
        return error("dispatch_failed", f"{why}; the log says more. Try again.")


def _describe(flow: Flow) -> Answer:
    static: list[Json] = [
        static_json(key, schedule) | {"input": flow.preview(schedule)}
        for key, schedule in flow.static.items()
    ]
    body: dict[str, Json] = {"flow": flow.name, "resolver": flow.resolve is not None}
    return Answer(200, {**body, "schedules": static})


def _missing() -> Answer:
    return error("schedule_not_found", NOT_FOUND)


def _withdrawn(reason: Reason) -> Stop:
    return Stop(skipped(reason), Outcome(State.CANCELLED, reason))


def _ended(state: State, reason: Reason | None) -> Answer:
    return skipped(reason or "") if state is State.CANCELLED else duplicate(state)


def _refused(refused: Refused) -> Answer:
    match refused.verdict:
        case "cancelled":
            return skipped(refused.reason or "")
        case "duplicate":
            return _ended(refused.state or State.SUCCEEDED, refused.reason)
        case "unknown":
            return _missing()
        case "stale" | "in_progress":
            return in_progress(waits=refused.reason is Reason.OVERLAP)

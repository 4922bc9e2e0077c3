"""The dispatcher of a deployment: it admits a call, and finds its flow.

The order is CONTRACT's D-02: until the caller is authenticated, only the form of the id is read.
"""

import time
from contextlib import suppress
from typing import TYPE_CHECKING

from duetick.core.accepting import Quotas
from duetick.core.answers import Answer, error, wrong_method
from duetick.core.correlation import name_call, own_lines, tick_id
from duetick.core.declarations import check_dialects
from duetick.core.dispatch.attempt import Sleep
from duetick.core.dispatch.calls import Authenticate, Call, Request, read_call, request_of
from duetick.core.dispatch.delivery import Dispatch, Enqueue, Observe, Parts, ignore
from duetick.core.dispatch.running import Runner
from duetick.core.dispatch.stopping import NotDeployed, Stop, answer_to
from duetick.core.dispatch.verdicts import final
from duetick.core.flows import Flow, Flows
from duetick.core.store import Store
from duetick.core.timeouts import Within, run_within
from duetick.core.wire import LARGEST_BODY, is_too_large, read_object, static_json
from duetick.domain.identity import NO_FLOW, check_id, from_signed_path
from duetick.domain.policies import LONGEST_TIMEOUT
from duetick.domain.schedule import Occurrence
from duetick.ports import Clock, Tell, tell_nobody

if TYPE_CHECKING:
    from duetick.domain.schedule import Json


class Dispatcher:
    """The flows of one deployment, ready to be called.

    `enqueue` starts an invocation that calls `run_queued`, and returns when that is durable.
    `on_settled` sees each occurrence that is settled, or that a begin found lost; `on_gone` sees
    instead those that died because their flow, or action, is not in the deployment. `tell` hears of
    deaths of which no tick is told by its answer: it must not raise. `sleep` and
    `within` are how it waits, and how it runs an action in its time.
    """

    def __init__(
        self,
        store: Store,
        flows: Flows,
        authenticate: Authenticate,
        clock: Clock,
        *,
        enqueue: Enqueue | None = None,
        on_settled: Observe = ignore,
        on_gone: Observe | None = None,
        quotas: Quotas | None = None,
        sleep: Sleep = time.sleep,
        within: Within = run_within,
        tell: Tell = tell_nobody,
    ) -> None:
        check_dialects(flows, store.dialect)
        hand_on = (lambda one: enqueue(request_of(one))) if enqueue else None
        runner = Runner(store, flows, clock, quotas or Quotas(), within, hand_on=hand_on)
        observers = on_settled, on_gone or on_settled
        self._parts = Parts(store, flows, runner, clock, enqueue, *observers, sleep, tell)
        self._authenticate = authenticate

    @own_lines()
    def __call__(self, request: Request) -> Answer:
        """Return the answer to a call, as D-03's table says."""
        return answer_to(request, lambda: self._answer(request))

    @own_lines()
    def run_queued(self, request: Request) -> Answer:
        """Run a call that `enqueue` got. Its caller was authenticated before.

        It is a worker, and reports its begin and its end (J-12).
        """
        from duetick.core.workers import reporting

        store, name = self._parts.store, f"run_{request.request_id}"
        seconds = request.left or LONGEST_TIMEOUT
        with reporting(store, "background", name, self._parts.clock, seconds):
            return answer_to(request, lambda: self._dispatch(request, queued=True).deliver())

    @own_lines()
    def run_rung(self, request: Request) -> Answer:
        """Run an occurrence that a ring has just leased, in the invocation of the ring."""
        return answer_to(request, lambda: self._dispatch(request, queued=True).deliver())

    def _answer(self, request: Request) -> Answer:
        if request.external_id is not None:
            return self._answer_outside(request)
        if request.path_id is not None:
            check_id(from_signed_path(request.path_id))
        self._admit(request, "GET" if request.path_id is None else "POST")
        if request.path_id is None:
            return _describe(self._flow(request, queued=False))
        return self._dispatch(request).deliver()

    def _answer_outside(self, request: Request) -> Answer:
        """Answer a call by an outside id. The store is asked for its owner once it is admitted."""
        from duetick.core.dispatch.outside_ids import check_outside_id, to_owner  # no tick needs it

        external_id = check_outside_id(request)
        self._admit(request, "POST")
        parts = self._parts
        return self._dispatch(to_owner(parts.store, external_id, request, parts.clock())).deliver()

    def _admit(self, request: Request, method: str) -> None:
        if not self._authenticate(request):
            raise Stop(error("unauthorized", "The secret or signature is missing or wrong."))
        if request.method != method:
            raise Stop(wrong_method(method))

    def _dispatch(self, request: Request, *, queued: bool = False) -> Dispatch:
        if not is_too_large(request.body):
            name_call(read_object(request.body))
        flow = self._flow(request, queued=queued)
        return Dispatch(self._parts, flow, _read_call(request, flow.name), request, queued)

    def _flow(self, request: Request, *, queued: bool) -> Flow:
        flows = self._parts.flows
        if not flows:
            raise Stop(error("flow_unregistered", "This deployment has no flows."))
        name = "" if request.flow == NO_FLOW else request.flow
        flow = flows.get(name)
        if flow is None:
            why = f"There is no flow {name[:64]!r}." if name else flows.home.why
            gone = NotDeployed(error("flow_not_found", why))
            dead = self._reject(request, name, gone)
            if dead and tick_id() and not queued:
                raise NotDeployed(final(gone.answer, dead))
            if dead:
                self._parts.tell("dead", dead)
            raise gone
        return flow

    def _reject(self, request: Request, flow: str, gone: NotDeployed) -> Occurrence | None:
        """Reject a leased occurrence whose flow is gone: a later tick would not find the flow
        either. Return it if it is dead by that.
        """
        parts = self._parts
        with suppress(Stop, ValueError):
            lease = _read_call(request, flow).lease()
            occurrence = lease and parts.store.ledger.get(*lease.identity)
            if lease is None or occurrence is None or occurrence.flow != flow:
                return None
            dead = parts.store.ledger.reject(lease, gone.outcome, now=parts.clock())
            if dead:
                parts.on_gone(dead)
            return dead
        return None


def _read_call(request: Request, flow: str) -> Call:
    if is_too_large(request.body):
        raise Stop(error("too_large", f"A body may have {LARGEST_BODY // 1024} KB."))
    return read_call(flow, from_signed_path(request.path_id or ""), read_object(request.body))


def _describe(flow: Flow) -> Answer:
    static: list[Json] = [
        static_json(key, schedule) | {"input": flow.preview(schedule)}
        for key, schedule in ((key, flow.with_defaults(one)) for key, one in flow.static.items())
    ]
    body: dict[str, Json] = {"flow": flow.name, "resolver": flow.resolve is not None}
    return Answer(200, {**body, "schedules": static})

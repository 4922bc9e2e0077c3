"""The dispatcher of a deployment: it admits a call, and finds its flow.

The order is CONTRACT's D-02: until the caller is authenticated, only the form of the id is read.
"""

import time
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from duetick.core.accepting import Quotas
from duetick.core.answers import Answer, error, wrong_method
from duetick.core.correlation import in_tick, name_call, own_lines, tick_id
from duetick.core.declarations import check_dialects
from duetick.core.dispatch.attempt import Sleep
from duetick.core.dispatch.calls import Authenticate, Call, Request, read_call, request_of
from duetick.core.dispatch.delivery import Dispatch, Enqueue, Observe, Parts, ignore
from duetick.core.dispatch.running import Runner
from duetick.core.dispatch.stopping import NotDeployed, Stop, answer_to
from duetick.core.dispatch.verdicts import add_final
from duetick.core.flows import Flow, Flows
from duetick.core.store import Store
from duetick.core.timeouts import Within, run_within
from duetick.core.wire import LARGEST_BODY, is_too_large, read_object, static_json
from duetick.domain.identity import NO_FLOW, check_id, from_signed_path
from duetick.domain.policies import LONGEST_TIMEOUT
from duetick.domain.schedule import Occurrence
from duetick.ports import Clock, Observer, Tell, tell_nobody

if TYPE_CHECKING:
    from duetick.core.backpressure import Notes
    from duetick.core.dispatch.packs import PackReport
    from duetick.core.threads import Threads
    from duetick.domain.schedule import Json


class Packed(NamedTuple):
    """The parts of a deployment that the dispatch of packs uses."""

    parts: Parts
    notes: "Notes"


def ignore_status(_occurrence: Occurrence, _status: int) -> None:
    """Ignore a delivery: the observer of packs if there is no other."""


class Dispatcher:
    """The flows of one deployment, ready to be called.

    `enqueue` starts an invocation that calls `run_queued`, and returns when that is durable.
    `on_settled` sees each occurrence that is settled, or that a begin found lost. `on_gone` sees
    instead an occurrence that died because the deployment lacks its flow or action. `tell` hears of
    deaths that no answer to a tick tells: it must not raise. `sleep` waits, `within` runs an action
    in its time, and `threads` runs the occurrences of a pack side by side.
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
        threads: "Threads | None" = None,
    ) -> None:
        check_dialects(flows, store.dialect)
        hand_on = (lambda one: enqueue(request_of(one))) if enqueue else None
        limits = quotas or Quotas()
        self._runner_of = partial(Runner, store, flows, clock, limits, within, hand_on=hand_on)
        observers = on_settled, on_gone or on_settled
        runner = self._runner_of()
        self._parts = Parts(store, flows, runner, clock, enqueue, *observers, sleep, tell)
        self._authenticate = authenticate
        self._threads = threads
        self._for_packs: Packed | None = None

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
    def run_message(
        self,
        body: str,
        seconds: float | None = None,
        *,
        tell: Tell | None = None,
        on_dispatch: Observer = ignore_status,
        late_after: int | None = None,
    ) -> "PackReport":
        """Dispatch the packs of a message that came out of the queue, within so many seconds.

        `tell` hears of deaths, and of occurrences that begin more than `late_after` milliseconds
        late; `on_dispatch` sees each occurrence with the status that a tick would hear. Raises
        UnreadableMessage if the body is no message.
        """
        from duetick.core.dispatch.packs import PackParts, dispatch_message
        from duetick.core.threads import REAL
        from duetick.domain.packs import read_message

        came_at = time.monotonic()
        message = read_message(body)
        packed = self._make_packed()
        parts = replace(packed.parts, tell=tell or self._parts.tell)
        with in_tick(message.tick):
            now = parts.clock()
            packed.notes.note(now, message.lateness_ms(now))
            return dispatch_message(
                message,
                PackParts(
                    parts,
                    partial(self._dispatch_packed, parts),
                    self._threads or REAL,
                    lambda: None if seconds is None else seconds - (time.monotonic() - came_at),
                    on_dispatch,
                    parts.tell,
                    late_after,
                ),
            )

    def _make_packed(self) -> "Packed":
        """Return the parts of packs, made with the first message."""
        if self._for_packs is None:
            from duetick.core.backpressure import Notes
            from duetick.core.coroutines import SharedLoop

            runner = self._runner_of(await_shared=SharedLoop().run)
            parts = replace(self._parts, runner=runner)
            self._for_packs = Packed(parts, Notes(parts.store))
        return self._for_packs

    def _dispatch_packed(self, parts: Parts, one: Occurrence, request: Request) -> Dispatch:
        """Return the dispatch of an occurrence of a pack. Raises Stop if its flow is gone."""
        from duetick.core.dispatch.packs import call_of

        flow = self._flow(request, parts, unheard=True)
        return Dispatch(parts, flow, call_of(one, flow.name), request, unheard=True)

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
            return _describe(self._flow(request, self._parts))
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
        flow = self._flow(request, self._parts, unheard=queued)
        return Dispatch(self._parts, flow, _read_call(request, flow.name), request, queued)

    def _flow(self, request: Request, parts: Parts, *, unheard: bool = False) -> Flow:
        flows = parts.flows
        if not flows:
            raise Stop(error("flow_unregistered", "This deployment has no flows."))
        name = "" if request.flow == NO_FLOW else request.flow
        flow = flows.get(name)
        if flow is None:
            why = f"There is no flow {name[:64]!r}." if name else flows.home.why
            gone = NotDeployed(error("flow_not_found", why))
            dead = self._reject(request, name, gone)
            if dead and tick_id() and not unheard:
                raise NotDeployed(add_final(gone.answer, dead))
            if dead:
                parts.tell("dead", dead)
            raise gone
        return flow

    def _reject(self, request: Request, flow: str, gone: NotDeployed) -> Occurrence | None:
        """Reject a leased occurrence whose flow is gone: a later tick would not find the flow
        either.

        Return the occurrence if it is dead now.
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

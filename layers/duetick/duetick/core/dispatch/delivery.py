"""One dispatch: resolve, validate, begin, run, settle.

A tick delivers an occurrence that it leased. Dispatch begins it first, and that write also reads
its schedule; if it cannot run, it is settled, so that the ledger says why. An outside caller
requests an occurrence. Dispatch resolves and validates it first: if it cannot run, it is not
recorded.
"""

import json
import logging
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Final, NamedTuple, TypeAlias

from duetick.core.action import Action
from duetick.core.answers import Answer, error, limit_reached
from duetick.core.correlation import name_occurrence, tick_id
from duetick.core.dispatch.attempt import Attempt, Sleep
from duetick.core.dispatch.callers import ask, date, find_recorded, may_begin
from duetick.core.dispatch.calls import Call, Request
from duetick.core.dispatch.resolving import is_own, names_job, resolve
from duetick.core.dispatch.running import Runner
from duetick.core.dispatch.stopping import NotDeployed, Stop
from duetick.core.dispatch.verdicts import (
    add_final,
    answer_accepted,
    answer_missing,
    answer_skipped,
    to_caller,
    to_tick,
)
from duetick.core.done import delete_ended
from duetick.core.flows import Flow, Flows
from duetick.core.log_lines import about
from duetick.core.store import Store
from duetick.core.wire import iso, read_object
from duetick.domain.attempts import SUCCEEDED, Begun, Outcome, Refused, refuse
from duetick.domain.identity import SCHEDULE_ORIGIN, is_call, is_failure_hook
from duetick.domain.schedule import Json, Lease, Leased, Occurrence, Record, check_timing
from duetick.domain.states import Reason, State
from duetick.ports import Clock, Tell, tell_nobody

Enqueue: TypeAlias = Callable[[Request], None]
Observe: TypeAlias = Callable[[Occurrence], object]

UNKNOWN = Refused("unknown")

OF_DELIVERIES: Final = frozenset(
    (
        *("userId", "key", "nominalFireTime", "origin", "fence", "occurrence"),
        *("cron", "timezone", "tick"),
    )
)
"""The fields of a body that are Duetick's own, as a tick sends them."""

LARGEST_KEPT: Final = 384 * 1024
"""The most bytes of a body as a store keeps it: an item of DynamoDB holds no more."""

logger = logging.getLogger("duetick.dispatch")


def ignore(_occurrence: Occurrence) -> None:
    """Ignore the occurrence: the observer of a dispatcher that has none."""


@dataclass(frozen=True, slots=True)
class Parts:
    """The parts of a deployment that each dispatch uses."""

    store: Store
    flows: Flows
    runner: Runner
    clock: Clock
    enqueue: Enqueue | None
    on_settled: Observe
    on_gone: Observe
    sleep: Sleep
    tell: Tell = tell_nobody

    def settle(self, attempt: Attempt, stop: Stop | None) -> Occurrence | None:
        """Write the outcome. Return None if the lease had ended."""
        settled = attempt.settle(stop.outcome if stop else SUCCEEDED)
        if settled is not None:
            self.show_settled(settled, stop)
        return settled

    def show_settled(self, settled: Occurrence, stop: Stop | None) -> None:
        """Show an occurrence that was settled to its observer."""
        (self.on_gone if isinstance(stop, NotDeployed) else self.on_settled)(settled)

    def record_lost(self, occurrence: Occurrence) -> None:
        """Record and tell an occurrence that a begin found lost: no tick hears of it."""
        self.on_settled(occurrence)
        self.tell("dead", occurrence)


class Run(NamedTuple):
    """An attempt whose action has ended, and that is not settled. Without a `stop`, it
    succeeded.
    """

    begun: Begun
    attempt: Attempt
    stop: Stop | None

    @property
    def outcome(self) -> Outcome:
        """The end of the attempt, as it is to be written."""
        return self.attempt.end(self.stop.outcome if self.stop else SUCCEEDED)


@dataclass(frozen=True, slots=True)
class Dispatch:
    """One call of a flow. A `queued` call runs in an invocation of its own. An `unheard` call came
    out of a queue: no tick hears its answer.
    """

    parts: Parts
    flow: Flow
    call: Call
    request: Request
    queued: bool = False
    unheard: bool = False

    def deliver(self) -> Answer:
        """Deliver the occurrence that the call has leased, or requests."""
        lease = self.call.lease()
        return self._deliver_leased(lease) if lease else self._deliver_requested()

    def _deliver_leased(self, lease: Lease) -> Answer:
        definition = None
        if self.flow.has_background and not self.queued:
            definition = self._definition_of(lease)
        if definition and self._is_background(self.flow.actions[definition.action]):
            return self._queue_leased(lease)
        return self._run(lease, None if is_failure_hook(lease.origin) else definition)

    def _deliver_requested(self) -> Answer:
        """Deliver the occurrence that an outside caller requests.

        The ledger answers a repeat before the schedule is validated: the schedule may have changed
        since, or be gone.
        """
        ledger, call, now = self.parts.store.ledger, self.call, self.parts.clock()
        if names_job(self.flow, call.schedule_id):  # a job is one occurrence, and has no others
            raise Stop(answer_missing())
        key_refused = call.own_key and ledger.holds(call.own_key, now=now)
        if key_refused:
            return self.refuse(key_refused)
        found = self._resolve()
        if found is None and self._is_by_flow():
            raise Stop(answer_missing())
        now = self.parts.clock()
        call = date(ledger, found, call, now)
        refused = find_recorded(ledger, found, call, now)
        if not may_begin(found, now):
            return self.refuse(refused or UNKNOWN)
        stopped = None if refused else self._refuse_if_stopped(found, call, now)
        if stopped:
            return stopped
        if refused is None or refused.reason is Reason.REJECTED:
            check_timing(found.cron, found.timezone)
            self.parts.flows.check_input(found)
        if refused:
            return self.refuse(refused)
        background = self._is_background(self.parts.flows.action_of(found))
        asked = ask(found, call, now)
        body = _dump_body(call.sent) if is_call(asked.origin) else None
        recorded = ledger.bring(asked, now=self.parts.clock(), key=call.own_key, body=body)
        if isinstance(recorded, Refused):
            return self.refuse(recorded)
        name_occurrence(recorded.id)
        return self._queue_requested(recorded) if background else self._run(recorded, found)

    def _refuse_if_stopped(self, found: Record, call: Call, now: int) -> Answer | None:
        """Return the refusal of a new occurrence by a pause of a group or by a limit, or None."""
        if self._is_paused(found, call, now):
            return answer_skipped(Reason.PAUSED)
        full = self.parts.store.limits.full(found.user_id, found.flow, found.action, now)
        return limit_reached(full, now) if full else None

    def _is_paused(self, found: Record, call: Call, now: int) -> bool:
        """Return True if a pause of a group holds now, or covers the time of the call."""
        at = call.nominal_at
        own = call.origin == SCHEDULE_ORIGIN and not call.own_key and at is not None and at <= now
        pauses = self.parts.store.pauses
        return bool(pauses.covering(found.user_id, found.flow, at if own and at else now, now))

    def _is_background(self, action: Action) -> bool:
        """Return True if another invocation has to run it. Raises Stop if none can be started."""
        background = action.background and not self.queued
        if background and self.parts.enqueue is None:
            raise Stop(error("dispatch_failed", "Background actions need an `enqueue` of yours."))
        return background

    def _queue_leased(self, lease: Lease) -> Answer:
        """Enqueue a leased occurrence for an invocation of its own, unless it has begun."""
        occurrence = self.parts.store.ledger.get(*lease.identity)
        refused = refuse(occurrence, lease, self.parts.clock()) if occurrence else UNKNOWN
        if occurrence is None or refused:
            return self.refuse(refused or UNKNOWN)
        self._queue(occurrence)
        return self._accept(occurrence, queued=True)

    def _queue_requested(self, occurrence: Occurrence) -> Answer:
        """Enqueue a recorded occurrence. If its invocation never comes, a tick delivers it."""
        try:
            self._queue(occurrence)
        except Exception:
            details = {"action": "enqueue_failed", **about(occurrence)}
            logger.warning("not enqueued", extra=details, exc_info=True)
            self.parts.store.ledger.release(occurrence, now=self.parts.clock())
        return self._accept(occurrence, queued=True)

    def _queue(self, occurrence: Occurrence) -> None:
        named = {"nominalFireTime": iso(occurrence.nominal_at), "origin": occurrence.origin}
        leased = {"fence": occurrence.fence, "occurrence": occurrence.id}
        body = _without_secrets(read_object(self.request.body)) | named | leased
        if is_call(occurrence.origin):
            body.pop("body", None)  # its run reads the one that is kept
        if self.parts.enqueue:
            self.parts.enqueue(replace(self.request, body=json.dumps(body)))

    def _run(self, leased: Leased, definition: Record | None) -> Answer:
        """Begin an occurrence and run it. Settle it in any case.

        `definition` is the definition that is known before the begin, if any.
        """
        store, clock = self.parts.store, self.parts.clock
        sent = self._find_sent(leased)
        begun = store.ledger.begin(
            leased,
            now=clock(),
            on_lost=self.parts.record_lost,
            find_action=lambda: self.action_of(leased, definition),
        )
        if isinstance(begun, Refused):
            return self.refuse(begun)
        run = self.act(begun, definition, sent)
        settled = self.parts.settle(run.attempt, run.stop)
        answer = self.conclude(run, settled)
        if run.stop and isinstance(run.stop.__cause__, KeyboardInterrupt):
            raise run.stop.__cause__
        return answer

    def act(self, begun: Begun, definition: Record | None = None, sent: Json = None) -> Run:
        """Run the action of a begun occurrence. A stop is its outcome."""
        name_occurrence(begun.occurrence.id)
        parts = self.parts
        attempt = Attempt(parts.store.ledger, begun.occurrence, parts.clock, parts.sleep)
        try:
            schedule = self._definition_of_begun(begun, definition)
            parts.runner.run(schedule, attempt, self.request.left, sent)
        except Stop as raised:
            return Run(begun, attempt, raised)
        return Run(begun, attempt, None)

    def conclude(self, run: Run, settled: Occurrence | None) -> Answer:
        """Return the answer of a run that was settled; None was, if its lease had ended."""
        if settled is None:
            return error("dispatch_failed", "The lease ended before the action did.")
        if run.begun.schedule:
            delete_ended(self.parts.store, run.begun.schedule, self.parts.clock())
        if run.stop and not run.attempt.committed:
            return self._tell_death(run.stop.answer, settled)
        return self._accept(run.begun.occurrence)

    def refuse(self, refused: Refused) -> Answer:
        """Return the answer of a call that begins nothing."""
        answer = to_tick if self.call.fence else to_caller
        return answer(refused, self.parts.clock())

    def _find_sent(self, leased: Leased) -> Json:
        """Return the body that the caller sent for the action.

        A later delivery of a caller's occurrence reads the body that the store keeps of the call.
        """
        if not (self.call.fence and is_call(leased.origin)):
            return self.call.sent
        kept = self.parts.store.ledger.body(leased.identity)
        return None if kept is None else json.loads(kept)

    def _tell_death(self, answer: Answer, settled: Occurrence) -> Answer:
        """Tell a death to the tick that waits for the answer, else to the readers of events."""
        if settled.state is not State.DEAD:
            return answer
        if self.call.fence and tick_id() and not (self.queued or self.unheard):
            return add_final(answer, settled)
        self.parts.tell("dead", settled)
        return answer

    def action_of(self, leased: Leased, definition: Record | None = None) -> str | None:
        """Return the action of a schedule that has no record, as its flow names it."""
        found = definition or self._definition_of(leased)
        return found.action if found else None

    def _definition_of(self, lease: Leased) -> Record | None:
        """Return the definition of a leased occurrence before its begin; None if it cannot run.

        An error is ignored here: it comes again after the begin, and is settled then.
        """
        with suppress(Stop):
            found = self._resolve() or self._adopt(self.parts.store.ledger.get(*lease.identity))
            if found and is_failure_hook(lease.origin):
                hook = self.parts.store.ledger.get(*lease.identity)
                found = self._definition_of_hook(found, hook, found) if hook else None
            return found if found and found.action in self.flow.actions else None
        return None

    def _definition_of_begun(self, begun: Begun, known: Record | None) -> Record:
        """Return the definition of a begun occurrence: the flow's, or the record that the begin
        read.
        """
        by_flow = self._is_by_flow()
        if known is None or not (by_flow or begun.schedule is None):
            known = (self._resolve() if by_flow else begun.schedule) or self._adopt(
                begun.occurrence
            )
        if known is None:
            raise _withdraw(Reason.SCHEDULE_DELETED)
        if begun.occurrence.death:
            return self._definition_of_hook(known, begun.occurrence, begun.schedule or known)
        if self.call.fence and not known.enabled:
            raise _withdraw(Reason.DISABLED)
        return known

    def _definition_of_hook(self, found: Record, hook: Occurrence, kept: Record) -> Record:
        """Return the definition of a failure hook: the action that the schedule names, as it is
        `kept`.
        """
        name = kept.policies.on_failure
        if name is None:
            raise _withdraw(Reason.SUPERSEDED)
        return self.parts.flows.hook_of(found, hook, name)

    def _is_by_flow(self) -> bool:
        return is_own(self.flow, self.call.schedule_id)

    def _resolve(self) -> Record | None:
        store, settings = self.parts.store, self.parts.flows.settings
        return resolve(self.flow, self.call.schedule_id, self.request, store, settings)

    def _adopt(self, occurrence: Occurrence | None) -> Record | None:
        """Return the definition of an index row that has no other."""
        return self.parts.flows.home.adopt(occurrence) if occurrence else None

    def _accept(self, occurrence: Occurrence, *, queued: bool = False) -> Answer:
        return answer_accepted(
            occurrence.schedule_id, occurrence.origin, self.request.request_id, queued=queued
        )


def _dump_body(sent: Json) -> str | None:
    """Return as JSON the body that a caller sent, to be kept. Raises Stop if it is too large."""
    if sent is None:
        return None
    dumped = json.dumps(sent, ensure_ascii=False, separators=(",", ":"))
    try:
        size = len(dumped.encode())
    except UnicodeEncodeError:  # a lone surrogate: a database takes its escape
        dumped = json.dumps(sent, separators=(",", ":"))
        size = len(dumped)
    if size > LARGEST_KEPT:
        said = f"A body may have {LARGEST_KEPT // 1024} KB as it is kept."
        raise Stop(error("too_large", said))
    return dumped


def _without_secrets(body: Mapping[str, Json]) -> dict[str, Json]:
    """Return the body of a call as a queue may keep it. The caller's key has done its work."""
    from duetick.domain.redaction import redact  # for background actions alone

    others = redact({name: value for name, value in body.items() if name not in OF_DELIVERIES})
    ours = {name: value for name, value in body.items() if name in OF_DELIVERIES}
    return ours | (others if isinstance(others, dict) else {})


def _withdraw(reason: Reason) -> Stop:
    return Stop(answer_skipped(reason), Outcome(State.CANCELLED, reason))

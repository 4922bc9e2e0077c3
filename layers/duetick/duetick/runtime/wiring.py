"""The parts of a function, made once for each sandbox from the settings.

Each part is imported when it is made: a tick starts without flows and dispatch.
"""

import time
from contextlib import suppress
from dataclasses import replace
from functools import cache, partial
from itertools import count
from typing import TYPE_CHECKING, Final, Protocol

from duetick.core.store import Store
from duetick.domain.errors import ConfigurationError, WitnessUnavailable
from duetick.ports import HandOn, RunTransport, Transport, Trouble, Witness
from duetick.runtime.settings import LOCAL_QUEUE, Settings, lambda_credentials
from duetick.stores import open_store

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from duetick.core.accepting import Quotas
    from duetick.core.answers import Answer
    from duetick.core.audit import Finding
    from duetick.core.dispatch import Dispatcher, Request
    from duetick.core.dispatch.packs import PackReport
    from duetick.core.flow_settings import FlowSettings
    from duetick.core.flows import Flows
    from duetick.core.managed.ringing import Ringer
    from duetick.core.managed.watched import Followers
    from duetick.core.notices import Notices
    from duetick.core.tick import TickReport
    from duetick.core.tick.helpers import Helpers
    from duetick.domain.accounts import Fault
    from duetick.domain.jobs import InboxRow
    from duetick.domain.retention import Retention
    from duetick.domain.schedule import Occurrence, Record
    from duetick.ports import Effects, Listed
    from duetick.runtime.managed import Managed
    from duetick.runtime.secrets import Guard, SecretSource
    from duetick.transports.http import CallSigner, Headers, HttpTransport
    from duetick.transports.local_queue import LocalQueue
    from duetick.transports.sqs import SqsQueue


MB_OF_SLOT: Final = 2
"""The megabytes that a slot takes at most: a thread, a connection with TLS, a request."""

MOST_SLOTS: Final = 500
"""The most slots of a tick: a function has 1,024 open files and threads at most."""

FAILED: Final = 400
"""The statuses from here on are those of failures."""

MOST_TAKEN_IN: Final = 500
"""The most rows of the inbox that a tick takes in."""


class LambdaContext(Protocol):
    """The part of the runtime's context that is used here."""

    aws_request_id: str

    def get_remaining_time_in_millis(self) -> int:
        """Return the milliseconds until the runtime ends the invocation."""


@cache
def settings() -> Settings:
    """Return the settings of the environment."""
    return Settings.read()


@cache
def store() -> Store:
    """Return the store at DUETICK_STORE."""
    chosen = settings()
    looks_ahead, cadence = chosen.look_ahead > 0, chosen.tick_seconds
    if chosen.store_secret_arn:
        from duetick.runtime.database import open_with_secret

        opened = open_with_secret(
            chosen.store,
            chosen.store_secret_arn,
            look_ahead=looks_ahead,
            tick_seconds=cadence,
            followers=_followers(),
        )
    else:
        kept = retention() if chosen.store.startswith("dynamodb:") else None
        opened = open_store(
            chosen.store,
            look_ahead=looks_ahead,
            tick_seconds=cadence,
            retention=kept,
            followers=_followers(),
        )
    opened.ledger.on_paused = _count_paused
    return opened


def _followers() -> "Followers | None":
    """Return the followers of a managed store's changes; None if a tick comes each minute."""
    if settings().trigger == "tick":
        return None
    from duetick.core.managed.watched import Followers

    made = Followers()
    made.bell_moved = lambda name: bells().keep(name)
    made.waits = lambda due: bells().wake(due)
    made.erases = lambda names: bells().delete(names)
    return made


@cache
def bells() -> "Managed":
    """Return the bells of the store. Only a managed store loads them."""
    from duetick.runtime.managed import Managed

    return Managed(store())


def is_managed() -> bool:
    """Return True if bells ring for the rows."""
    return settings().trigger == "managed"


def _count_paused(schedule: "Record") -> None:
    """Count a schedule that failed too often: the tools for that are loaded by then."""
    from duetick.runtime.telemetry import record_auto_paused

    record_auto_paused(schedule)
    if is_told():
        from duetick.core.notices import Subject
        from duetick.runtime.announcing import announce_alone

        subject = Subject(schedule.user_id, schedule.key)
        announce_alone("auto_paused", schedule.flow, subject, settings(), store())


@cache
def retention() -> "Retention":
    """Return the times for which ended occurrences are kept. Only the purge and DynamoDB's items
    ask.
    """
    from duetick.domain.retention import Retention

    chosen = settings()
    days = chosen.retention_days, chosen.retention_dead_days
    try:
        return Retention.of(*days, chosen.retention_by_flow)
    except ValueError as error:
        raise ConfigurationError(f"DUETICK_RETENTION_…: {error}") from error


@cache
def witness() -> Witness | None:
    """Return the witness of the store, or None."""
    from duetick.runtime.witness import open_witness

    return open_witness(settings().witness, settings().store)


def migrate() -> int:
    """Update the schema, as its owner if the functions connect as another user.

    Return the number of rows that were taken over from an earlier index. A new store catches up
    with its witness before anything is put into it.
    """
    if settings().owner_store:
        from duetick.runtime.database import migrate_as_owner

        taken_over = migrate_as_owner(settings())
    else:
        taken_over = store().migrate()
    known = witness()
    if known:
        from duetick.core.witness import find_restore

        with suppress(WitnessUnavailable):
            find_restore(store(), known, store().now())
    return taken_over


@cache
def flows() -> "Flows":
    """Return every flow of the package DUETICK_FLOWS."""
    from duetick.runtime.loading import load_flows

    return load_flows(settings().flows, settings().row_flow, flow_settings())


@cache
def flow_settings() -> "FlowSettings":
    """Return the settings of the flows."""
    from duetick.runtime.flow_settings import open_flow_settings

    return open_flow_settings(settings())


def forget_flows() -> None:
    """Forget the flows and the dispatcher. The next call makes them from the environment as it is
    then.

    A running action goes on with those that it has.
    """
    for made_once in (settings, flow_settings, flows, dispatcher):
        made_once.cache_clear()


@cache
def quotas() -> "Quotas":
    """Return the limits of a user."""
    from duetick.core.accepting import Quotas

    chosen = settings()
    return Quotas(
        schedules=chosen.quota_schedules,
        gap_seconds=chosen.quota_gap_seconds,
        input_bytes=chosen.quota_input_bytes,
        runs_a_minute=chosen.quota_runs,
        writes_a_minute=chosen.quota_writes,
        look_ahead=chosen.look_ahead > 0,
        jobs=chosen.quota_jobs,
        managed=chosen.trigger == "managed",
    )


@cache
def dispatcher() -> "Dispatcher":
    """Return the dispatcher. The settings say how it authenticates callers."""
    from duetick.core.dispatch import Dispatcher
    from duetick.runtime.invoking import enqueue, enqueue_in_thread
    from duetick.runtime.telemetry import record_gone_death, record_settled

    return Dispatcher(
        store(),
        flows(),
        authenticate,
        store().now,
        enqueue=enqueue_in_thread(_run_queued) if settings().local else enqueue,
        on_settled=record_settled,
        on_gone=record_gone_death,
        quotas=quotas(),
        tell=tell_alone,
    )


@cache
def ringer() -> "Ringer":
    """Return the answerer of bells' rings. A late ring may come after a move to ticks."""
    from duetick.core.dispatch import request_of
    from duetick.core.managed.ringing import Ringer
    from duetick.core.managed.watched import ignore

    def deliver(occurrence: "Occurrence", seconds: float) -> int:
        call = replace(request_of(occurrence), seconds=seconds)
        status = dispatcher().run_rung(call).status
        observe(occurrence, status)
        return status

    return Ringer(
        store(),
        deliver,
        witness=witness(),
        heal=bells().mend if is_managed() else ignore,
        wake=bells().wake if is_managed() else ignore,
        tell=tell_alone,
        has_line=has_line,
    )


def _run_queued(request: "Request") -> "Answer":
    return dispatcher().run_queued(request)


@cache
def secrets() -> "SecretSource":
    """Return the source of live secrets: Secrets Manager or the environment."""
    from duetick.runtime.secrets import fixed_source, secrets_manager_source

    chosen = settings()
    if chosen.dispatch_secret_arn:
        return secrets_manager_source(chosen.dispatch_secret_arn)
    return fixed_source((chosen.dispatch_secret,) if chosen.dispatch_secret else ())


@cache
def guard() -> "Guard":
    """Return the guard of secret mode."""
    from duetick.runtime.secrets import Guard

    return Guard(secrets())


def authenticate(request: "Request") -> bool:
    """Return True if the call is signed (IAM mode), or has a live secret (secret mode).

    In IAM mode the gateway refuses unsigned calls. If it lets one in, this refuses it.
    """
    if settings().dispatch_auth == "iam":
        return request.caller is not None
    return guard().admits(request.headers.get("authorization", ""))


@cache
def transport() -> Transport:
    """Return the transport of a tick: HTTP to the dispatch API, signed or with the secret."""
    return _http()


@cache
def _http() -> "HttpTransport":
    from duetick.transports.http import HttpTransport, bearer

    chosen = settings()
    authorize = _signer(chosen.region) if chosen.dispatch_auth == "iam" else bearer(secrets())
    return HttpTransport(chosen.api_url, authorize, connect_to=chosen.api_address)


@cache
def local_queue() -> "LocalQueue":
    """Return the queue in this process."""
    from duetick.transports.local_queue import LocalQueue

    return LocalQueue()


@cache
def queue() -> "SqsQueue | LocalQueue":
    """Return the queue of packs."""
    chosen = settings()
    if chosen.queue == LOCAL_QUEUE:
        return local_queue()
    from duetick.network.sigv4 import Credentials
    from duetick.transports.sqs import SqsQueue

    return SqsQueue(chosen.queue, chosen.region, lambda: Credentials(*lambda_credentials()))


@cache
def tick() -> "Callable[..., TickReport]":
    """Return the tick of this deployment over its transport. It takes the parameters of
    `run_tick`.
    """
    if settings().queue:
        from duetick.core.tick.packing import run_pack_tick

        return partial(run_pack_tick, store(), queue(), transport(), most_slots=most_slots())
    from duetick.core.tick import run_tick

    return partial(run_tick, store(), transport(), most_slots=most_slots())


def most_slots() -> int:
    """Return the number of deliveries at once for which a tick has the memory."""
    return min(settings().memory_mb // MB_OF_SLOT, MOST_SLOTS)


def helpers(event: "Mapping[str, object]") -> "dict[str, Helpers]":
    """Return the helpers of a tick, as an event assigns it, as an argument of `tick`: a tick over
    the API has none.
    """
    if not settings().queue:
        return {}
    from duetick.core.tick.helpers import Helpers
    from duetick.runtime.helping import assignment_of, start_tick

    start = None if settings().local else start_tick
    return {"helpers": Helpers(store(), start, settings().fan_out, assignment_of(event))}


@cache
def runs() -> RunTransport:
    """Return the transport of runs by hand: the dispatch function itself if it is named."""
    if settings().dispatch_function:
        from duetick.runtime.invoking import InvokeTransport

        return InvokeTransport(settings().dispatch_function)
    return _http()


@cache
def hand_on() -> HandOn | None:
    """Return the function that starts the run of a job without waiting for it: the dispatch
    function if it is named. None leaves it to the next tick.
    """
    from duetick.core.dispatch import request_of

    if settings().local:
        from duetick.runtime.invoking import enqueue_in_thread

        start = enqueue_in_thread(_run_queued)
        return lambda one: start(request_of(one))
    if not settings().dispatch_function:
        return None
    from duetick.runtime.invoking import queue

    return lambda one: queue(settings().dispatch_function, request_of(one))


def take_in() -> int:
    """Take in the rows of other applications. The flows are loaded if there is one. A failure is
    logged, and delays no tick: the rows stay.
    """

    def take(row: "InboxRow", effects: "Effects") -> None:
        from duetick.core.inbox import Inbox

        dead = partial(tell, "dead")
        Inbox(store(), flows(), store().now, quotas(), dead).take(row, effects)

    try:
        return store().shelf.take_in(MOST_TAKEN_IN, take)
    except Exception:
        from duetick.runtime.telemetry import logger

        logger.exception("the inbox is not taken in", extra={"action": "inbox_failed"})
        return 0


def run_message(body: str, seconds: float) -> "PackReport":
    """Dispatch a message of the queue. `announce` tells the troubles that it notes."""
    return dispatcher().run_message(
        body, seconds, tell=tell, on_dispatch=_observe_packed, late_after=late_after()
    )


def _observe_packed(occurrence: "Occurrence", status: int) -> None:
    """Call the flows' hooks for a delivery in a pack, and log it if it is one of the sample."""
    observe(occurrence, status)
    if status < FAILED and logs_success():
        from duetick.runtime.telemetry import record_success

        record_success(occurrence, status)


def has_line(status: int) -> bool:
    """Return True if an answer of that status has a line: a failure, or a success of the sample."""
    return status >= FAILED or logs_success()


def logs_success() -> bool:
    """Return True for as many percent of the successes as have a line of their own, evenly."""
    percent = settings().log_successes
    return next(_successes) * percent % 100 < percent


_successes = count()


def late_after() -> int:
    """Return the milliseconds after which a delivery is late, as for the alarm."""
    return settings().tick_seconds * 1_000 + 90_000


def observe(occurrence: "Occurrence", status: int) -> None:
    """Call the flows' hooks for a delivery. The first delivery imports the flows: a tick that finds
    nothing due does not need them.
    """
    flows().observe(occurrence, status)


def is_told() -> bool:
    """Return True if events go anywhere: to a bus, or to the local stack's terminal."""
    return bool(settings().event_bus) or settings().local


@cache
def notices() -> "Notices":
    """Return the notices to tell at the end of an invocation."""
    from duetick.core.notices import Notices

    return Notices()


def tell(trouble: Trouble, occurrence: "Occurrence") -> None:
    """Note an occurrence in trouble: `announce` tells of it. The first note loads the notices."""
    if is_told():
        notices().tell(trouble, occurrence)


def tell_finding(finding: "Finding", one: "Listed") -> None:
    """Note a finding of the hourly count."""
    if is_told():
        from duetick.core.notices import Subject

        source = one.record or one.row
        notices().add(finding, source.flow if source else "", Subject(one.user_id, one.key))


def tell_unaccounted(schedule: str, found: "Fault") -> None:
    """Note a fault that the hourly verification found. It knows no flow."""
    if is_told():
        from duetick.core.notices import Subject

        user_id, _, key = schedule.partition("/")
        notices().add("unaccounted", "", Subject(user_id, key, "", found.first, found.problem))


def announce(seconds: float) -> None:
    """Tell of all noted trouble within a number of seconds."""
    if notices.cache_info().currsize:
        from duetick.runtime.announcing import announce

        announce(notices().take(), settings(), time.time_ns() // 1_000_000, seconds)


def tell_alone(trouble: Trouble, occurrence: "Occurrence") -> None:
    """Tell at once of an occurrence that no tick hears of."""
    if is_told():
        from duetick.core.notices import subject_of
        from duetick.runtime.announcing import announce_alone

        announce_alone(trouble, occurrence.flow, subject_of(occurrence), settings(), store())


def _signer(region: str) -> "CallSigner":
    from duetick.network.sigv4 import Credentials, Signer

    signer = Signer(lambda: Credentials(*lambda_credentials()), region)

    def authorize(
        host: str, path: str, body: bytes, *, refused: "Headers | None" = None
    ) -> "Headers | None":
        """Return None after a refusal: a new signature of this minute would be refused too."""
        now = time.time_ns() // 1_000_000
        return None if refused else signer.headers(host, path, body, now)

    return authorize

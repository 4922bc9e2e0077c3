"""Runs by hand: each is a new occurrence, and goes to dispatch like any other."""

import hashlib
import secrets
from dataclasses import replace
from typing import Final

from duetick.core.answers import Answer, error, limit_reached
from duetick.core.rates import count
from duetick.core.refusals import answer_to
from duetick.core.store import Store
from duetick.core.wire import iso, read_object
from duetick.domain.errors import RateReached
from duetick.domain.identity import RUN_ORIGIN
from duetick.domain.pausing import is_paused
from duetick.domain.policies import DAY
from duetick.domain.rows import new_occurrence
from duetick.domain.schedule import Identity, NewOccurrence, Occurrence, Record
from duetick.domain.states import State
from duetick.ports import Delivered, RunTransport

PATIENCE: Final = 20.0
"""The seconds to wait for the action. The limit of the API is only a little longer."""

ACCEPTED: Final = 202
ABOUT_THE_SCHEDULE: Final = frozenset({400, 404})
"""The statuses of a schedule that dispatch cannot run. Other refusals are about the caller."""

AT_ONCE: Final = 200
"""The occurrences of the history in one read."""


def run_by_hand(
    store: Store,
    transport: RunTransport,
    schedule: Record,
    now: int,
    repeatable: str | None = None,
    *,
    at_most: int | None,
) -> Answer:
    """Run a schedule. Answer 202 once the run has begun, even if it fails: see the history.

    `repeatable` is the caller's key. Within a day the key stands for one run: a repeat gets the
    answer of that run, even of a failed one. `at_most` limits the requests of a user in a minute,
    with their repeats; None means no limit.
    """
    wanted = _new_run(schedule, now, repeatable)
    refusal = _refusal(store, schedule, now, at_most)
    if refusal:
        earlier = _find_earlier(store, wanted, now)
        return _answer_begun(earlier) if earlier else refusal
    delivery = transport.deliver(wanted, timeout=PATIENCE)
    recorded = store.ledger.get(*wanted.identity) or _find_earlier(store, wanted, now)
    if recorded is None and delivery.status != ACCEPTED:
        return _answer_not_begun(delivery)
    return _answer_begun(recorded or wanted)  # a background run may not be recorded yet


def _new_run(schedule: Record, now: int, repeatable: str | None) -> NewOccurrence:
    if repeatable is None:
        return new_occurrence(schedule, now, f"{RUN_ORIGIN}{secrets.token_hex(8)}", now)
    name = hashlib.sha256(f"{schedule.id}\0{repeatable}".encode()).hexdigest()
    wanted = new_occurrence(schedule, now, f"{RUN_ORIGIN}{name[:16]}", now)
    return replace(wanted, idempotency_key=name)


def _find_earlier(store: Store, wanted: NewOccurrence, now: int) -> Occurrence | None:
    """Return the earlier run of the caller's key, or None."""
    before: Identity | None = None
    while wanted.idempotency_key:
        found = store.ledger.find(wanted.user_id, wanted.key, limit=AT_ONCE, before=before)
        for one in found:
            if one.origin == wanted.origin and one.created_at > now - DAY * 1_000:
                return one
        if len(found) < AT_ONCE or found[-1].nominal_at < now - DAY * 1_000:
            return None
        before = found[-1].identity
    return None


def _refusal(store: Store, schedule: Record, now: int, at_most: int | None) -> Answer | None:
    if is_paused(schedule, now):
        return error("schedule_paused", "It is paused, and does not run. Resume it first.")
    if store.pauses.current(now).holding(schedule.user_id, schedule.flow, now):
        return error("schedule_paused", "An operator has paused it, and others with it.")
    full = store.limits.full(schedule.user_id, schedule.flow, schedule.action, now)
    if full:
        return limit_reached(full, now)
    if at_most is None:
        return None
    try:
        count(store, schedule.user_id, "runs", at_most, now)
    except RateReached as problem:
        return answer_to(problem, schedule.user_id)
    return None


def _answer_not_begun(delivery: Delivered) -> Answer:
    """Return the refusal by which dispatch kept the run from its begin; else say that nothing has
    begun.
    """
    body = read_object(delivery.detail)
    if delivery.status in ABOUT_THE_SCHEDULE and body.get("error"):
        return Answer(delivery.status, body)
    if not delivery.status:
        return error("not_delivered", "Dispatch could not be reached. Try again.")
    message = f"Dispatch answered {delivery.status}, and nothing was begun. Try again."
    return error("not_delivered", message)


def _answer_begun(run: Occurrence | NewOccurrence) -> Answer:
    known = isinstance(run, Occurrence) and run.state is not State.SCHEDULED
    state = run.state if isinstance(run, Occurrence) and known else State.QUEUED
    body = {"origin": run.origin, "nominalFireTime": iso(run.nominal_at), "state": state}
    return Answer(ACCEPTED, dict(body))

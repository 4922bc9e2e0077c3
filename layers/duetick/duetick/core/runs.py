"""Fire a schedule by hand: an occurrence of its own, handed to dispatch like any other."""

import hashlib
import secrets
from dataclasses import replace
from typing import Final

from duetick.core.answers import Answer, error
from duetick.core.wire import iso
from duetick.domain.identity import RUN_ORIGIN
from duetick.domain.mirror import row_of
from duetick.domain.occurrences import of_row
from duetick.domain.pausing import is_paused
from duetick.domain.policies import DAY, MINUTE_MS
from duetick.domain.schedule import Identity, Occurrence, Schedule
from duetick.domain.states import State
from duetick.ports import Store, Transport

PATIENCE: Final = 20.0
"""Seconds to wait for the action; the API's own limit is not far beyond."""

ACCEPTED: Final = 202

AT_ONCE: Final = 200
"""How many of the history are looked at in one go."""


def run_by_hand(
    store: Store,
    transport: Transport,
    schedule: Schedule,
    now: int,
    repeatable: str | None = None,
    *,
    at_most: int | None,
) -> Answer:
    """202 once it has begun; what becomes of it, also if it fails, is told by the history.

    `repeatable` is a key of the caller's own: within a day it stands for one run, whatever became
    of that, and a repeat is answered with it. `at_most` is how many a user may ask for in a minute,
    repeats included; None counts nothing.
    """
    made = _made(schedule, now, repeatable)
    refusal = _refusal(store, schedule, now, at_most)
    if refusal:
        earlier = _earlier(store, made, now)
        return _begun(earlier) if earlier else refusal
    delivery = transport.deliver(made, timeout=PATIENCE)
    held = store.ledger.get(*made.identity) or _earlier(store, made, now)
    if held is None and delivery.status == ACCEPTED:
        held = made  # an invocation of its own will begin it
    if held is None:
        return error(
            "not_delivered", f"Dispatch could not be reached ({delivery.status}). Try again."
        )
    return _begun(held)


def _made(schedule: Schedule, now: int, repeatable: str | None) -> Occurrence:
    made = of_row(row_of(schedule, now), now, now)
    if repeatable is None:
        return replace(made, origin=f"{RUN_ORIGIN}{secrets.token_hex(8)}")
    named = hashlib.sha256(f"{schedule.id}\0{repeatable}".encode()).hexdigest()
    return replace(made, origin=f"{RUN_ORIGIN}{named[:16]}", idempotency_key=named)


def _earlier(store: Store, made: Occurrence, now: int) -> Occurrence | None:
    """The run for which the caller's key stands; looked for only where it was not begun anew."""
    before: Identity | None = None
    while made.idempotency_key:
        found = store.ledger.find(made.user_id, made.key, limit=AT_ONCE, before=before)
        for one in found:
            if one.origin == made.origin and one.created_at > now - DAY * 1_000:
                return one
        if len(found) < AT_ONCE or found[-1].nominal_at < now - DAY * 1_000:
            return None
        before = found[-1].identity
    return None


def _refusal(store: Store, schedule: Schedule, now: int, at_most: int | None) -> Answer | None:
    if is_paused(schedule, now):
        return error("schedule_paused", "It is paused, and does not run. Resume it first.")
    if at_most is None or store.admit_run(schedule.user_id, at_most, now=now):
        return None
    left = -(-(MINUTE_MS - now % MINUTE_MS) // 1_000)
    answer = error(
        "too_many_runs",
        f"A user may run schedules by hand {at_most} times in a minute, and these are used up. "
        f"Try again in {left} s, or have DUETICK_QUOTA_RUNS raised.",
        limit="runs",
        value=at_most,
    )
    return replace(answer, headers={"retry-after": str(left)})


def _begun(held: Occurrence) -> Answer:
    state = State.QUEUED if held.state is State.SCHEDULED else held.state
    told = {"origin": held.origin, "nominalFireTime": iso(held.nominal_at), "state": state}
    return Answer(ACCEPTED, dict(told))

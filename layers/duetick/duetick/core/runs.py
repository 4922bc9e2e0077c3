"""Fire a schedule by hand: an occurrence of its own, handed to dispatch like any other."""

from dataclasses import replace
from typing import Final

from duetick.core.answers import Answer, error
from duetick.core.wire import iso
from duetick.domain.identity import RUN_ORIGIN
from duetick.domain.mirror import row_of
from duetick.domain.occurrences import of_row
from duetick.domain.schedule import Json, Occurrence, Schedule
from duetick.domain.states import State
from duetick.ports import Store, Transport

PATIENCE: Final = 20.0
"""Seconds to wait for the action; the API's own limit is not far beyond."""


def run_by_hand(
    store: Store, transport: Transport, schedule: Schedule, now: int, run: str
) -> Answer:
    """202 once it has begun; what becomes of it, also if it fails, is told by the history."""
    if not schedule.enabled:
        return error("schedule_paused", "It is paused, and does not run. Resume it first.")
    made = replace(of_row(row_of(schedule, now), now, now), origin=f"{RUN_ORIGIN}{run}", fence=0)
    delivery = transport.deliver(made, timeout=PATIENCE)
    held = store.ledger.get(*made.identity)
    if held is None:
        return error(
            "not_delivered", f"Dispatch could not be reached ({delivery.status}). Try again."
        )
    return Answer(202, _json(held))


def _json(held: Occurrence) -> dict[str, Json]:
    state = State.QUEUED if held.state is State.SCHEDULED else held.state
    return {"origin": held.origin, "nominalFireTime": iso(held.nominal_at), "state": state}

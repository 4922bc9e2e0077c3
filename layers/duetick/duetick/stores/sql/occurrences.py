"""Occurrences as rows: found, held for a change, moved, and traced where the row does not tell."""

from duetick.domain.attempts import trace_of_loss
from duetick.domain.schedule import Occurrence
from duetick.domain.states import WAITING
from duetick.stores.sql.rows import identity_params, move_params, read_occurrence, storable
from duetick.stores.sql.session import Params, Session


def select(session: Session, name: str, params: Params) -> list[Occurrence]:
    return [read_occurrence(row) for row in session.rows(name, params)]


def lock(session: Session, occurrence: Occurrence) -> Occurrence | None:
    found = select(session, "occurrence_lock", identity_params(occurrence))
    return found[0] if found else None


def move(session: Session, after: Occurrence) -> Occurrence:
    session.rows("occurrence_move", move_params(after))
    return after


def trace(session: Session, before: Occurrence, after: Occurrence, note: str | None) -> None:
    if note is not None:
        session.rows("event_put", _event(before, after, note))


def trace_lost(session: Session, before: list[Occurrence], after: list[Occurrence]) -> None:
    """Those whose lease ended; of one that waited there is nothing to tell."""
    traced = [
        _event(held, now, note)
        for held, now in zip(before, after, strict=True)
        if held.state not in WAITING and (note := trace_of_loss(held, now)) is not None
    ]
    session.each("event_put", traced)


def _event(before: Occurrence, after: Occurrence, note: str) -> Params:
    return identity_params(before) | {
        "at": after.updated_at,
        "before": before.state,
        "after": after.state,
        "note": storable(note),
    }

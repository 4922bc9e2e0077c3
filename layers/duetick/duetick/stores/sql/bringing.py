"""Occurrences that a caller brings along, and those that stand in the ledger already."""

from collections.abc import Callable

from duetick.domain.attempts import accounted, brought
from duetick.domain.identity import SCHEDULE_ORIGIN
from duetick.domain.schedule import Occurrence
from duetick.stores.sql.occurrences import lock, select
from duetick.stores.sql.rows import identity_params, occurrence_params
from duetick.stores.sql.session import Session


def bring(
    session: Session, asked: Occurrence, new_id: Callable[[], str], now: int
) -> Occurrence | None:
    """Record what a caller brings; None where its time has been accounted for."""
    if _accounted(session, asked):
        return None
    made = brought(asked, new_id(), now)
    (new,) = session.each("occurrence_insert", [occurrence_params(made)])
    return made if new else None


def standing(session: Session, asked: Occurrence) -> Occurrence | None:
    """What stands for what a caller asks, under its own name or as a range."""
    held = lock(session, asked)
    return held if held or asked.fence else _accounted(session, asked)


def _accounted(session: Session, asked: Occurrence) -> Occurrence | None:
    """What stands for a time of the schedule's own."""
    if asked.origin != SCHEDULE_ORIGIN:
        return None
    # No claim makes a range of it meanwhile.
    session.rows("index_lock", {"user_id": asked.user_id, "key": asked.key})
    found = select(session, "occurrence_up_to", identity_params(asked))
    return accounted(found[0] if found else None, asked)

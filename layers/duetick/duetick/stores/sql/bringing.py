"""Occurrences that a caller brings along, and those that stand in the ledger already."""

from collections.abc import Callable

from duetick.domain.attempts import accounted, brought
from duetick.domain.identity import SCHEDULE_ORIGIN
from duetick.domain.schedule import Occurrence
from duetick.ports import CallerKey, Refused
from duetick.stores.sql.caller_keys import key_refused, take_key
from duetick.stores.sql.occurrences import lock, select
from duetick.stores.sql.rows import identity_params, occurrence_params
from duetick.stores.sql.session import Session


def bring(
    session: Session,
    asked: Occurrence,
    key: CallerKey | None,
    new_id: Callable[[], str],
    now: int,
) -> Occurrence | Refused | None:
    """Record what a caller brings, with its key; None where its time has been accounted for."""
    refused = key_refused(session, key, now) if key else None
    if refused or _accounted(session, asked):
        return refused
    made = brought(asked, new_id(), now)
    (new,) = session.each("occurrence_insert", [occurrence_params(made)])
    if new and key:
        take_key(session, key, made, now)
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

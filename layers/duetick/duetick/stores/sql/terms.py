"""The conditions of a change beyond its book, and the rows that they write."""

from duetick.domain.attempts import CallerKey, refuse_key
from duetick.domain.creation import Repeatable
from duetick.domain.errors import CreationStands, InvalidSchedule, refuse_job, refuse_schedule
from duetick.domain.identity import is_job
from duetick.domain.occurrence import Occurrence
from duetick.domain.schedule import Record
from duetick.ports import KeyHeld, Terms
from duetick.stores.sql.pages import SqlBook
from duetick.stores.sql.rows import identity_params, read_made, read_occurrence, read_record
from duetick.stores.sql.session import Params, QueryCall, Session, number


def check_terms(session: Session, loaded: SqlBook, terms: Terms) -> None:
    """Raise if the change may not be written. Write its creation, if it has one."""
    record = loaded.book.record
    if record and record.external_id is not None:
        _check_owner(session, record, record.external_id)
    if record and terms.at_most is not None and loaded.counts_more:
        _check_room(session, record, terms.at_most, terms.ending)
    if record and terms.creation and loaded.creates:
        _keep_creation(session, loaded, record, terms.creation)


def _check_room(session: Session, record: Record, at_most: int, ending: int) -> None:
    """Raise QuotaReached if the user has `at_most` schedules that count. Of a job, raise it if the
    user has `at_most` pending jobs besides those that are `ending`.
    """
    job = is_job(record.key)
    rows = session.rows("job_count" if job else "schedule_count", {"user_id": record.user_id})
    if number(rows) - ending >= at_most:
        raise refuse_job(at_most) if job else refuse_schedule(at_most)


def _check_owner(session: Session, record: Record, external_id: str) -> None:
    rows = session.rows("schedule_by_external", {"external_id": external_id})
    if rows and read_record(rows[0]).id != record.id:
        said = "is already another schedule's; choose another."
        raise InvalidSchedule("external_id", said, "taken")


def _keep_creation(session: Session, loaded: SqlBook, made: Record, creation: Repeatable) -> None:
    session.rows("creations_forget", {"user_id": made.user_id, "now": made.created_at})
    row = loaded.book.row
    params: Params = {
        "user_id": made.user_id,
        "name": creation.name,
        "digest": creation.note(made),
        "made_at": made.created_at,
        "next_fire_at": row.next_fire_at if row else None,
        "kept_until": creation.until,
    }
    if session.each("creation_put", [params]) == [0]:
        name: Params = {"user_id": made.user_id, "name": creation.name, "now": made.created_at}
        raise CreationStands(read_made(session.rows("creation_get", name)[0]).digest)


def check_key(session: Session, key: CallerKey, now: int) -> None:
    """Raise KeyHeld if another run has the key; else lock it until the transaction ends."""
    session.rows("name_lock", {"user_id": f"caller {key.flow}", "key": key.key})
    holder = key_holder(session, key)
    refused = refuse_key(*holder, now) if holder else None
    if refused:
        raise KeyHeld(refused)


def key_holder(session: Session, key: CallerKey) -> tuple[Occurrence, int] | None:
    """Return the occurrence that took a caller's key, and the end of the key."""
    rows = session.rows("caller_key_get", {"flow": key.flow, "caller_key": key.key})
    if not rows:
        return None
    until, *columns = rows[0]
    return read_occurrence(columns), until


def take_key(key: CallerKey, taker: Occurrence, now: int) -> QueryCall:
    """Return the write that gives an occurrence a caller's key."""
    params = identity_params(taker.identity)
    params |= {"flow": key.flow, "caller_key": key.key, "held_until": now + key.window_ms}
    return "caller_key_put", params

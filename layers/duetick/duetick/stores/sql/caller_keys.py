"""Callers' idempotency keys on SQL: taken in the transaction that begins what they came with."""

from typing import TYPE_CHECKING, Final, cast

from duetick.domain.lifecycle import held_key
from duetick.domain.schedule import Occurrence
from duetick.ports import CallerKey, Refused
from duetick.stores.sql.rows import identity_params, read_number, read_occurrence
from duetick.stores.sql.session import Params, Row, Session, Value

if TYPE_CHECKING:
    from collections.abc import Sequence

NAMED: Final = ("user_id", "key", "nominal_at", "origin")


def key_refused(session: Session, key: CallerKey, now: int) -> Refused | None:
    """What stands against taking the key; nobody else takes it before this transaction ends."""
    session.rows("name_lock", {"user_id": f"caller {key.flow}", "key": key.key})
    return key_held(session, key, now)


def take_key(session: Session, key: CallerKey, taker: Occurrence, now: int) -> None:
    """Give it to `taker`."""
    until = now + key.window_ms
    params = {**_name(key), **identity_params(taker), "held_until": until}
    session.rows("caller_key_put", params)


def key_held(session: Session, key: CallerKey, now: int) -> Refused | None:
    """What stands against another run with the key."""
    for *identity, until in session.rows("caller_key_get", _name(key)):
        holder = _holder(session, identity)
        verdict = holder and held_key(holder, read_number(until), now)
        if holder and verdict:
            return Refused(verdict, holder.state, holder.reason)
    return None


def _name(key: CallerKey) -> Params:
    return {"flow": key.flow, "caller_key": key.key}


def _holder(session: Session, identity: Row) -> Occurrence | None:
    params = dict(zip(NAMED, cast("Sequence[Value]", identity), strict=True))
    found = session.rows("occurrence_get", params)
    return read_occurrence(found[0]) if found else None

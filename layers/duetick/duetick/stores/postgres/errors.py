"""The driver's errors as ours. The driver's error stays the cause."""

import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from pg8000.exceptions import DatabaseError, Error

from duetick.domain.errors import (
    DuetickError,
    EffectsRefused,
    InvalidSchedule,
    NotAccepted,
    NotPermitted,
    StoreUnavailable,
)
from duetick.stores.sql.session import Undone
from duetick.stores.versions import unusable

NO_SUCH_THING: Final = frozenset({"42P01", "42703", "42883"})
"""A missing table, column or function."""

CAUGHT_BETWEEN: Final = frozenset({"40001", "40P01"})
"""A serialization failure, and a deadlock."""

DECIDE_AGAIN: Final = CAUGHT_BETWEEN | {"23505"}
"""Also a unique violation: another transaction wrote the same key first."""

LOCKED: Final = frozenset({"55P03"})
"""Somebody has a lock for longer than this transaction waits."""

OF_NAMES: Final = frozenset({"26000", "42P05"})
"""A statement of that name is not there, or there already: a pooler has changed the connection."""

OTHER_SERVER: Final = frozenset({"25006"})
"""A write is refused: after a failover this server only reads."""

PERMIT: Final = (
    "Grant it, or name another user: the schema is changed by its owner, and one who may not make "
    "roles lets in only a user who is there already."
)

MAKE_PLACE: Final = (
    "Make one (CREATE SCHEMA public) and let this user use it (GRANT USAGE, CREATE ON SCHEMA "
    "public TO …), then run `duetick migrate`."
)

FORBIDDEN: Final = {"42501": PERMIT, "42939": PERMIT, "3F000": MAKE_PLACE}
"""The advice for missing privileges, for names that Postgres reserves, and for a search path that
has no schema for new tables.
"""

LOGIN: Final = (
    "Look at the user in the address, and at its password or the secret that holds it. One who was "
    "there before a deployment keeps the password that they have."
)

REFUSED: Final = {
    "28P01": LOGIN,
    "28000": LOGIN,
    "3D000": "Make it, or name another one in the address.",
}
"""The advice for a refused login, with or without a password, and for a missing database."""

UNFIT_TEXT: Final = frozenset({"22021", "22P05"})

GONE: Final = ("08", "57P")
"""The classes of errors that end the connection or the server."""


OTHER_AUTHORITY: Final = (
    "Give as sslrootcert the PEM file of the authority that signed its certificate."
)

TRUST: Final = {
    9: "It is valid from later on: set this machine's clock, or have it made again.",
    10: "Have the server's certificate renewed; or set this machine's clock, if that is wrong.",
    62: "Ask for the server by a name that its certificate says, or have it made for this one.",
    64: "Ask for the server by a name that its certificate says, or have it made for this one.",
}
"""The advice for a bad certificate, by OpenSSL's error number."""

FACTORYS_PLACE: Final = "the place that your factory connects to"
"""The text of messages in place of an address, if the caller makes the connections."""

REFUSES_TLS: Final = "Server refuses SSL"
NO_TLS: Final = (
    "It speaks no TLS: turn that on there (ssl = on, with a certificate). Where the network may "
    "read along, sslmode=disable says so."
)


class ConnectionLost(Undone):
    """The connection broke before the COMMIT was sent: nothing was written."""

    tries = 2


class RowLocked(StoreUnavailable):
    """Somebody has the lock of a row for longer than the transaction waits. It was undone."""


class InDoubt(StoreUnavailable):
    """The connection broke after the COMMIT was sent. The transaction is not repeated blindly."""

    def __init__(self, lost: ConnectionLost) -> None:
        super().__init__(
            "The connection broke while the transaction was being committed; whether it was, "
            f"only the database can tell. {lost}"
        )


def code_of(error: DatabaseError) -> str:
    """Return the SQLSTATE: five characters."""
    return _part(error, "C")


def _part(error: DatabaseError, name: str) -> str:
    fields = error.args[0] if error.args else None
    return str(fields.get(name, "")) if isinstance(fields, dict) else ""


def connection_is_over(error: DatabaseError) -> bool:
    """Return True if the connection cannot be used any more."""
    code = code_of(error)
    return code.startswith(GONE) or code in OTHER_SERVER


def is_of_names(error: DatabaseError) -> bool:
    """Return True if the connection cannot keep statements by their names."""
    return code_of(error) in OF_NAMES


def translate(error: DatabaseError) -> DuetickError:
    """Return the error to raise for an error of Postgres."""
    code, said = code_of(error), f"{_part(error, 'M')} ({code_of(error)})"
    if code in NO_SUCH_THING:
        return unusable(said)
    if code in UNFIT_TEXT:
        return InvalidSchedule("text", "holds a character that Postgres cannot keep.", "character")
    if code in DECIDE_AGAIN or code in OF_NAMES:
        return Undone(f"Postgres undid the transaction, and did so again: {said}.")
    if code in FORBIDDEN:
        return NotPermitted(f"Postgres does not permit it: {said}. {FORBIDDEN[code]}")
    if connection_is_over(error):
        return ConnectionLost(f"Postgres ended the connection: {said}.")
    undone = RowLocked if code in LOCKED else StoreUnavailable
    return undone(f"Postgres did not do it: {said}.")


def as_of_caller(error: DuetickError) -> DuetickError:
    """Return the error to raise for a caller's own statement: it does not concern our schema."""
    cause = error.__cause__
    if not isinstance(cause, DatabaseError) or isinstance(error, ConnectionLost):
        return error
    if code_of(cause) in CAUGHT_BETWEEN:
        return error
    return EffectsRefused(f"Your own statement failed: {_part(cause, 'M')} ({code_of(cause)}).")


def report_lost(error: BaseException, told: Exception | None) -> ConnectionLost:
    """Return the error of a broken connection. `told` is the server's last error, if any."""
    if isinstance(told, DatabaseError):
        return ConnectionLost(f"Postgres ended the connection: {_part(told, 'M')}.")
    return ConnectionLost(f"The connection to Postgres broke: {error!r}.")


@contextmanager
def connecting(place: str) -> Iterator[None]:
    """Raise the errors of a block that connects as ours. They name the place, never a password."""
    try:
        yield
    except DatabaseError as error:
        raise _refusal(error, place) from error
    except ssl.SSLCertVerificationError as error:
        raise NotAccepted(
            f"Postgres at {place} is not trusted: {error.verify_message}. "
            f"{TRUST.get(error.verify_code, OTHER_AUTHORITY)}"
        ) from error
    except (Error, OSError) as error:
        if str(error) == REFUSES_TLS:
            raise NotAccepted(
                f"Postgres at {place} cannot be reached: {error}. {NO_TLS}"
            ) from error
        reason = str(error).rstrip(".")
        raise StoreUnavailable(f"Postgres at {place} cannot be reached: {reason}.") from error


def _refusal(error: DatabaseError, place: str) -> StoreUnavailable:
    code = code_of(error)
    said = f"Postgres at {place} refused: {_part(error, 'M')} ({code})."
    if code in REFUSED:
        return NotAccepted(f"{said} {REFUSED[code]}")
    return NotPermitted(said) if code in FORBIDDEN else StoreUnavailable(said)

"""What goes wrong at the driver, in our words; the driver's own error stays the cause."""

import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from pg8000.exceptions import DatabaseError, Error

from duetick.domain.errors import (
    MIGRATE,
    DuetickError,
    EffectsRefused,
    InvalidSchedule,
    NotAccepted,
    NotPermitted,
    SchemaOutdated,
    StoreUnavailable,
)
from duetick.stores.sql.session import Undone

NO_SUCH_THING: Final = frozenset({"42P01", "42703", "42883", "3F000"})
"""A table, a column, a function, a schema."""

CAUGHT_BETWEEN: Final = frozenset({"40001", "40P01"})
"""A serialization failure, and a deadlock."""

DECIDE_AGAIN: Final = CAUGHT_BETWEEN | {"23505"}
"""Those, and a unique index that another was quicker to fill."""

OTHER_SERVER: Final = frozenset({"25006"})
"""Writing is refused: after a failover this one only reads."""

FORBIDDEN: Final = frozenset({"42501", "42939"})
"""Privileges that are not there, and names that Postgres keeps for itself."""

PERMIT: Final = (
    "Grant it, or name another user: the schema is changed by its owner, and one who may not make "
    "roles lets in only a user who is there already."
)

LOGIN: Final = (
    "Look at the user in the address, and at its password or the secret that holds it. One who was "
    "there before a deployment keeps the password that they have."
)

REFUSED: Final = {
    "28P01": LOGIN,
    "28000": LOGIN,
    "3D000": "Make it, or name another one in the address.",
}
"""A login, with or without a password, and a database that is not there; what to do."""

UNFIT_TEXT: Final = frozenset({"22021", "22P05"})

GONE: Final = ("08", "57P")
"""Classes that say that the connection, or the server, is going away."""


OTHER_AUTHORITY: Final = (
    "Give as sslrootcert the PEM file of the authority that signed its certificate."
)

TRUST: Final = {
    9: "It is valid from later on: set this machine's clock, or have it made again.",
    10: "Have the server's certificate renewed; or set this machine's clock, if that is wrong.",
    62: "Ask for the server by a name that its certificate says, or have it made for this one.",
    64: "Ask for the server by a name that its certificate says, or have it made for this one.",
}
"""What to do, by OpenSSL's number of what is wrong with a certificate."""

FACTORYS_PLACE: Final = "the place that your factory connects to"
"""What is said in place of an address, where the caller makes the connections."""

REFUSES_TLS: Final = "Server refuses SSL"
NO_TLS: Final = (
    "It speaks no TLS: turn that on there (ssl = on, with a certificate). Where the network may "
    "read along, sslmode=disable says so."
)


class ConnectionLost(Undone):
    """The connection broke before the commit was asked for: nothing was written."""

    tries = 2


class InDoubt(StoreUnavailable):
    """The connection broke while a commit was asked for. It is not done again unseen."""

    def __init__(self, lost: ConnectionLost) -> None:
        super().__init__(
            "The connection broke while the transaction was being committed; whether it was, "
            f"only the database can tell. {lost}"
        )


def code_of(error: DatabaseError) -> str:
    """The five characters that Postgres tells conditions apart by."""
    return _part(error, "C")


def _part(error: DatabaseError, name: str) -> str:
    told = error.args[0] if error.args else None
    return str(told.get(name, "")) if isinstance(told, dict) else ""


def connection_is_over(error: DatabaseError) -> bool:
    """Whether nothing more can be asked on this connection."""
    code = code_of(error)
    return code.startswith(GONE) or code in OTHER_SERVER


def translate(error: DatabaseError) -> DuetickError:
    """The error to raise for what Postgres answered."""
    code, said = code_of(error), f"{_part(error, 'M')} ({code_of(error)})"
    if code in NO_SUCH_THING:
        return SchemaOutdated(f"No usable schema is there: {said}. {MIGRATE}")
    if code in UNFIT_TEXT:
        return InvalidSchedule("text", f"holds a character that Postgres cannot keep: {said}.")
    if code in DECIDE_AGAIN:
        return Undone(f"Postgres undid the transaction, and did so again: {said}.")
    if code in FORBIDDEN:
        return NotPermitted(f"Postgres does not permit it: {said}. {PERMIT}")
    if connection_is_over(error):
        return ConnectionLost(f"Postgres ended the connection: {said}.")
    return StoreUnavailable(f"Postgres did not do it: {said}.")


def as_of_caller(error: DuetickError) -> DuetickError:
    """The error to raise where the statement was a caller's own: our schema has no part in it."""
    told = error.__cause__
    if not isinstance(told, DatabaseError) or isinstance(error, ConnectionLost):
        return error
    if code_of(told) in CAUGHT_BETWEEN:
        return error
    return EffectsRefused(f"Your own statement failed: {_part(told, 'M')} ({code_of(told)}).")


def lost(error: BaseException, told: Exception | None) -> ConnectionLost:
    """The connection broke; `told` is what the server said before it closed it, if it did."""
    if isinstance(told, DatabaseError):
        return ConnectionLost(f"Postgres ended the connection: {_part(told, 'M')}.")
    return ConnectionLost(f"The connection to Postgres broke: {error!r}.")


@contextmanager
def connecting(place: str) -> Iterator[None]:
    """What goes wrong while there is no connection yet. Names the place, never a password."""
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

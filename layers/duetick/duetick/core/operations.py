"""The record of what operators did: written around each operation, and read in pages."""

import hashlib
import logging
import secrets
import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from duetick.core.store import Store
from duetick.core.wire import iso
from duetick.domain.errors import DuetickError, InvalidSchedule
from duetick.domain.identity import check_user
from duetick.domain.operations import DONE, FAILED, Operation, OperationPlace
from duetick.domain.paging import make_cursor, read_moment
from duetick.domain.redaction import redact_text
from duetick.domain.schedule import LATEST, Json

LONGEST_WHY: Final = 500
LONGEST_TARGET: Final = 300
LONGEST_WORD: Final = 128
MOST_READ: Final = 1_000
"""The most operations that are read for one page of somebody's."""

NEWEST: Final[OperationPlace] = (LATEST, "")

logger = logging.getLogger("duetick.operations")


class Asked(NamedTuple):
    """An operation that somebody asks for: `who`, and the rest as in `Operation`."""

    who: str
    verb: str
    user_id: str | None = None
    target: str = ""
    why: str = ""

    def at(self, now: int) -> Operation:
        """Return it as it is recorded: its texts without secrets, and not long."""
        return Operation(
            f"op_{secrets.token_hex(8)}",
            now,
            self.who[:LONGEST_TARGET],
            self.verb,
            self.user_id,
            self.target[:LONGEST_TARGET],
            (redact_text(self.why) or "")[:LONGEST_WHY],
        )


@dataclass(slots=True)
class Recording:
    """An operation that is under way. Its outcome is `done`, unless its block says otherwise."""

    operation: Operation
    outcome: str = DONE


@contextmanager
def record_around(store: Store, asked: Asked) -> Iterator[Recording]:
    """Record an operation before the block and its outcome after it. If it cannot be recorded, the
    block is not run. If the block raises, the operation has `failed`.
    """
    recording = Recording(asked.at(store.now()))
    store.shelf.add_operation(recording.operation)
    try:
        yield recording
    except BaseException:
        recording.outcome = FAILED
        raise
    finally:
        _end(store, replace(recording.operation, outcome=recording.outcome))


def record(store: Store, asked: Asked) -> None:
    """Record an operation that is done, such as the migration that made the record."""
    store.shelf.add_operation(replace(asked.at(store.now()), outcome=DONE))


def _end(store: Store, operation: Operation) -> None:
    """Write the outcome. If that fails, the operation stays done, and its record says `begun`."""
    try:
        store.shelf.end_operation(operation)
    except DuetickError as problem:
        details = {"action": "operation_unfinished", "operation": operation.id}
        logger.error("An operation has no outcome in the record: %s", problem, extra=details)


def check_why(text: str, field: str) -> str:
    """Return the reason that somebody gives. Raise InvalidSchedule if it is too long, or has
    characters that are invisible.
    """
    hidden = next((one for one in text if not one.isprintable()), None)
    if hidden is None and len(text) <= LONGEST_WHY:
        return text
    if hidden is None:
        wrong = f"has {len(text)} characters; the most is {LONGEST_WHY}."
    else:
        code = f"U+{ord(hidden):04X}"
        wrong = f"holds the character {code}; write one line of characters that can be seen."
    raise InvalidSchedule((field,), wrong, "invalid_header")


def in_words(fields: Mapping[str, Json]) -> str:
    """Return the fields that an operator gave, as the record tells them: short, and without
    secrets. Of a list it tells the length.
    """
    return " ".join(f"{name}={_word_of(value)}" for name, value in fields.items())


def _word_of(value: Json) -> str:
    said = str(len(value) if isinstance(value, list) else value)[:LONGEST_WORD]
    plain = "".join(one if one.isprintable() else "?" for one in said)
    return shlex.quote(redact_text(plain) or "")


def pseudonym(user_id: str) -> str:
    """Return the name of an erased user in the record.

    Somebody who knows the user can see that the user was erased. The name tells the user to nobody.
    """
    return f"usr_{hashlib.sha256(user_id.encode()).hexdigest()[:24]}"


def operation_json(one: Operation) -> dict[str, Json]:
    """Return an operation as JSON."""
    return {
        "id": one.id,
        "at": iso(one.at),
        "who": one.who,
        "verb": one.verb,
        "user": one.user_id,
        "target": one.target,
        "why": one.why,
        "outcome": one.outcome,
    }


class OperationPage(NamedTuple):
    """Some operations, and the place at which the next ones begin; None if there are no more."""

    operations: Sequence[Operation]
    cursor: str | None


def operations_page(
    store: Store,
    limit: int,
    cursor: str | None = None,
    *,
    user_id: str | None = None,
    who: str | None = None,
) -> OperationPage:
    """Return a page of the record, the newest operations first: all of them, those about a user, or
    those whose operator has the text `who` in the name.

    A page for `who` may be short: no index finds names. Raises InvalidId if no user can have this
    id.
    """
    if user_id is not None:
        check_user(user_id)
    place, found, read = read_moment(cursor) or NEWEST, list[Operation](), 0
    while read < MOST_READ:
        part = store.shelf.operations(place, limit, user_id)
        for one in part:
            place = one.place
            if who is None or who in one.who:
                found.append(one)
            if len(found) == limit:
                return OperationPage(found, make_cursor(*place))
        read += limit
        if len(part) < limit:
            return OperationPage(found, None)
    return OperationPage(found, make_cursor(*place))

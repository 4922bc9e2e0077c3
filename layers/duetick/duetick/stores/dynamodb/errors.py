"""DynamoDB's refusals as our errors. The refusal stays the cause."""

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Final

from duetick.domain.errors import (
    MIGRATE,
    DuetickError,
    EffectsRefused,
    NotAccepted,
    SchemaOutdated,
    StoreUnavailable,
)
from duetick.stores.dynamodb.service import ServiceRefusal, ServiceSilent

RESTORE: Final = (
    "If it was deleted, restore it: `aws dynamodb list-backups --backup-type ALL --table-name "
    "{name}` lists its backups, `aws dynamodb restore-table-from-backup --target-table-name {name} "
    "--backup-arn …` takes one; then invoke the migrate function. To begin with an empty table, "
    "run `duetick migrate --store 'dynamodb://{name}?region=…'` as somebody who may make one."
)
"""The advice if the table is gone; `migrate` alone would begin with an empty one."""

_FAILED: Final = "ConditionalCheckFailed"
_LOST: Final = frozenset({"ConditionalCheckFailedException", "TransactionInProgressException"})
_CONTENDED: Final = "TransactionConflictException"
_CANCELLED: Final = "TransactionCanceledException"
_THROTTLED: Final = frozenset({"ProvisionedThroughputExceeded", "ThrottlingError"})
_TRANSIENT: Final = frozenset({"None", _FAILED, "TransactionConflict"})
"""Reasons that are no fault of the write itself."""
_OF_CALLER: Final = frozenset(
    {
        "AccessDeniedException",
        "ResourceNotFoundException",
        "SerializationException",
        "ValidationException",
    }
)
_REFUSED: Final = frozenset({"AccessDeniedException", "UnrecognizedClientException"})
_TOO_LARGE: Final = "size has exceeded", "size to update has exceeded"


class Conflict(Exception):
    """A condition failed: another process wrote first. Never leaves this package."""


class Contended(Exception):
    """A transaction of another process has the item. It may come to nothing, so the write is tried
    again. Never leaves this package.
    """


class WriteRefusal(Exception):
    """A write of a transaction, but not its first, was refused. Never leaves this package."""


class Throttled(StoreUnavailable):
    """A part of a transaction was throttled. The request is not tried again by itself."""


class ItemTooLarge(StoreUnavailable):
    """An item would be larger than DynamoDB allows. Other items can still be written."""


@contextmanager
def errors(table: str) -> Iterator[None]:
    """Raise refusals at a table as our errors."""
    try:
        yield
    except ServiceRefusal as error:
        raise _translate(error, table) from error
    except ServiceSilent as error:
        raise StoreUnavailable(f"DynamoDB does not answer: {error}") from error


def refusal(error: BaseException | None) -> WriteRefusal | None:
    """Return the refusal if a transaction was cancelled only for writes beyond its first."""
    first, *rest = _reasons(error) or ("",)
    if first == "None" and (_FAILED in rest or _unfit(rest)) and isinstance(error, ServiceRefusal):
        return WriteRefusal("; ".join(_faults(error)))
    return None


def as_of_caller(error: DuetickError) -> DuetickError:
    """Return the error to raise if a transaction contains a caller's writes.

    If it is refused as a whole, the caller's writes are the reason: our writes always have the same
    form, and our table exists.
    """
    cause = error.__cause__
    if not isinstance(cause, ServiceRefusal) or cause.operation != "TransactWriteItems":
        return error
    if cause.code in _OF_CALLER:
        return EffectsRefused(f"Your own writes were refused: {cause}.")
    return error


def _translate(error: ServiceRefusal, table: str) -> Exception:
    code, said = error.code, str(error)
    if code in _LOST:
        return Conflict(code)
    if code == _CONTENDED:
        return Contended(code)
    if code == _CANCELLED:
        return _translate_cancelled(error)
    if any(part in said for part in _TOO_LARGE):
        return ItemTooLarge(f"An item would be larger than the 400 KB that fit in one: {error}")
    return _unusable(error, table) or StoreUnavailable(f"DynamoDB did not do it: {error}")


def _unusable(error: ServiceRefusal, table: str) -> DuetickError | None:
    """Return the error of a table that must be mended before its use; None for other errors."""
    code = error.code
    if code == "ResourceNotFoundException":
        return SchemaOutdated(f"There is no table {table} ({error}). {RESTORE.format(name=table)}")
    if code == "ValidationException" and "specified index" in str(error):
        return SchemaOutdated(f"The table {table} lacks an index ({error}). {MIGRATE}")
    if code in _REFUSED:
        return NotAccepted(
            f"DynamoDB does not permit it: {error}. Grant it on the table {table} to whom the "
            "store connects as."
        )
    return None


def _translate_cancelled(error: ServiceRefusal) -> Exception:
    """Return Conflict if the transaction may be tried again at once; else another error."""
    reasons = _reasons(error)
    if _unfit(reasons):
        return StoreUnavailable(f"DynamoDB cannot do it: {error} {'; '.join(_faults(error))}")
    if not _THROTTLED.isdisjoint(reasons):
        return Throttled(f"DynamoDB is asked too much: {error}")
    return Conflict(_CANCELLED)


def _reasons(error: BaseException | None) -> list[str]:
    """Read the reason of each write's refusal from the message: other fields may lack it."""
    found = re.search(r"\[([A-Za-z, ]+)\]", str(error))
    return found[1].split(", ") if found else []


def _unfit(reasons: Iterable[str]) -> set[str]:
    """Return the reasons for which a write fails again at each try."""
    return {*reasons} - _TRANSIENT - _THROTTLED


def _faults(error: ServiceRefusal) -> list[str]:
    """Return the service's texts about the writes of a transaction. The first is write 0."""
    each = error.reasons or [{"Code": c} for c in _reasons(error)]
    return [
        f"write {number}: {reason.get('Message') or reason['Code']}"
        for number, reason in enumerate(each)
        if reason["Code"] != "None"
    ]

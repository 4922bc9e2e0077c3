"""What goes wrong at DynamoDB, in our words; the driver's own error stays the cause."""

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Final

from botocore.exceptions import BotoCoreError, ClientError, ParamValidationError

from duetick.domain.errors import (
    MIGRATE,
    DuetickError,
    EffectsRefused,
    SchemaOutdated,
    StoreUnavailable,
)

_FAILED: Final = "ConditionalCheckFailed"
_LOST: Final = frozenset(
    {
        "ConditionalCheckFailedException",
        "TransactionConflictException",
        "TransactionInProgressException",
    }
)
_CANCELLED: Final = "TransactionCanceledException"
_THROTTLED: Final = frozenset({"ProvisionedThroughputExceeded", "ThrottlingError"})
_OF_OTHERS: Final = frozenset({"None", _FAILED, "TransactionConflict"})
"""Reasons that say nothing against the write itself."""
_OF_CALLER: Final = frozenset(
    {
        "AccessDeniedException",
        "ResourceNotFoundException",
        "SerializationException",
        "ValidationException",
    }
)
_TOO_LARGE: Final = "size has exceeded", "size to update has exceeded"


class Conflict(Exception):
    """A condition did not hold: somebody else wrote first. Never leaves this package."""


class Refusal(Exception):
    """In a transaction, a write beyond its first could not be done. Never leaves this package."""


class Throttled(StoreUnavailable):
    """A part of a transaction was throttled, which botocore does not try again by itself."""


class ItemTooLarge(StoreUnavailable):
    """An item would be larger than DynamoDB allows; whatever else is asked for may be done."""


@contextmanager
def errors() -> Iterator[None]:
    """The driver's errors in our words, with the driver's own as the cause."""
    try:
        yield
    except ClientError as error:
        raise _translated(error) from error
    except BotoCoreError as error:
        raise StoreUnavailable(f"DynamoDB does not answer: {error}") from error


def refusal(error: BaseException | None) -> Refusal | None:
    """Whether a transaction was cancelled, though its first write alone could have been done."""
    first, *rest = _reasons(error) or ("",)
    if first == "None" and (_FAILED in rest or _unfit(rest)) and isinstance(error, ClientError):
        return Refusal("; ".join(_faults(error)))
    return None


def as_of_caller(error: DuetickError) -> DuetickError:
    """The error to raise where a transaction held writes of a caller's own.

    What is refused as a whole is so for theirs: ours are of one form, and their table is there.
    """
    told = error.__cause__
    if isinstance(told, ParamValidationError):
        return EffectsRefused(f"Your own writes were refused: {told}")
    if not isinstance(told, ClientError) or told.operation_name != "TransactWriteItems":
        return error
    if told.response["Error"]["Code"] in _OF_CALLER:
        return EffectsRefused(f"Your own writes were refused: {told}.")
    return error


def _translated(error: ClientError) -> Exception:
    code, said = error.response["Error"]["Code"], str(error)
    if code in _LOST:
        return Conflict(code)
    if code == _CANCELLED:
        return _cancelled(error)
    if any(part in said for part in _TOO_LARGE):
        return ItemTooLarge(f"An item would be larger than the 400 KB that fit in one: {error}")
    missing = "specified index" in said and code == "ValidationException"
    if missing or code == "ResourceNotFoundException":
        return SchemaOutdated(f"No usable table is there ({error}). {MIGRATE}")
    return StoreUnavailable(f"DynamoDB did not do it: {error}")


def _cancelled(error: ClientError) -> Exception:
    """A transaction is cancelled for a conflict, or for what trying again at once cannot help."""
    reasons = _reasons(error)
    if _unfit(reasons):
        return StoreUnavailable(f"DynamoDB cannot do it: {error} {'; '.join(_faults(error))}")
    if not _THROTTLED.isdisjoint(reasons):
        return Throttled(f"DynamoDB is asked too much: {error}")
    return Conflict(_CANCELLED)


def _reasons(error: BaseException | None) -> list[str]:
    """Why each write of a transaction was not done; the message tells where nothing else does."""
    found = re.search(r"\[([A-Za-z, ]+)\]", str(error))
    return found[1].split(", ") if found else []


def _unfit(reasons: Iterable[str]) -> set[str]:
    """Those that say that a write cannot be done, however often it is tried."""
    return {*reasons} - _OF_OTHERS - _THROTTLED


def _faults(error: ClientError) -> list[str]:
    """What the service says against the writes of a transaction, whose first one is write 0."""
    each = error.response.get("CancellationReasons") or [{"Code": c} for c in _reasons(error)]
    return [
        f"write {number}: {reason.get('Message') or reason['Code']}"
        for number, reason in enumerate(each)
        if reason["Code"] != "None"
    ]

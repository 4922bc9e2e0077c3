"""What goes wrong at DynamoDB, in our words; the driver's own error stays the cause."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from botocore.exceptions import BotoCoreError, ClientError

from duetick.domain.errors import MIGRATE, SchemaOutdated, StoreUnavailable

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
_UNFIT: Final = frozenset({"ValidationError", "ItemCollectionSizeLimitExceeded"})
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
    if first == "None" and not {_FAILED, *_UNFIT}.isdisjoint(rest):
        return Refusal(", ".join(rest))
    return None


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
    if not _UNFIT.isdisjoint(reasons):
        return StoreUnavailable(f"DynamoDB cannot do it: {error} {_told(error)}".rstrip())
    if not _THROTTLED.isdisjoint(reasons):
        return Throttled(f"DynamoDB is asked too much: {error}")
    return Conflict(_CANCELLED)


def _reasons(error: BaseException | None) -> list[str]:
    """Why each write of a transaction was not done; the message tells where nothing else does."""
    found = re.search(r"\[([A-Za-z, ]+)\]", str(error))
    return found[1].split(", ") if found else []


def _told(error: ClientError) -> str:
    """What the service says of each write of a transaction."""
    each = error.response.get("CancellationReasons", ())
    return " ".join(reason["Message"] for reason in each if reason.get("Message"))

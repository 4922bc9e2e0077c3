"""DynamoDB's refusals: a conflict is decided anew, any other refusal names its cause."""

from collections.abc import Sequence

import pytest
from duetick.domain.errors import DuetickError, EffectsRefused, StoreUnavailable
from duetick.stores.dynamodb.errors import (
    Conflict,
    ItemTooLarge,
    Throttled,
    as_of_caller,
    errors,
    refusal,
)
from duetick.stores.dynamodb.service import ServiceRefusal


def cancelled(*reasons: str, said: Sequence[str] = ()) -> ServiceRefusal:
    """Return a transaction that was not done, with a reason for each of its writes."""
    told = f"Transaction cancelled, please refer to the reasons [{', '.join(reasons)}]"
    each = [
        {"Code": code, "Message": text, "Item": {}}
        for code, text in zip(reasons, said, strict=False)
    ]
    return ServiceRefusal("TransactWriteItems", "TransactionCanceledException", told, each)


@pytest.mark.parametrize("reason", ["ConditionalCheckFailed", "TransactionConflict"])
def test_i04_a_transaction_that_another_was_quicker_than_is_a_conflict(reason: str) -> None:
    with pytest.raises(Conflict), errors("t"):
        raise cancelled("None", reason)


@pytest.mark.parametrize("reason", ["ThrottlingError", "ProvisionedThroughputExceeded"])
def test_i10_a_throttled_transaction_is_no_conflict(reason: str) -> None:
    with pytest.raises(Throttled), errors("t"):
        raise cancelled(reason, "None")


def test_i12_a_transaction_that_cannot_be_done_says_why() -> None:
    said = ("Item size to update has exceeded the maximum allowed size",)
    with pytest.raises(StoreUnavailable, match="exceeded the maximum"), errors("t"):
        raise cancelled("ValidationError", "None", said=said)


def test_t04_what_cannot_be_done_of_an_actions_own_is_its_own() -> None:
    assert refusal(cancelled("None", "ValidationError")) is not None
    assert refusal(cancelled("None", "ConditionalCheckFailed")) is not None
    assert refusal(cancelled("ConditionalCheckFailed", "None")) is None
    assert refusal(cancelled("None", "AccessDenied")) is not None
    assert refusal(cancelled("None", "TransactionConflict")) is None
    assert refusal(cancelled("None", "ThrottlingError")) is None


def test_t04_what_cannot_be_done_is_told_by_its_number_and_its_fault() -> None:
    said = ("", "", "Missing the key id")
    refused = refusal(cancelled("None", "None", "ValidationError", said=said))
    assert str(refused) == "write 2: Missing the key id"


def test_i12_a_reason_that_nobody_knows_is_no_conflict() -> None:
    with pytest.raises(StoreUnavailable, match="write 1: Novelty"), errors("t"):
        raise cancelled("None", "Novelty")


def whole(code: str, operation: str = "TransactWriteItems") -> DuetickError:
    """Return the error for a request that was refused as a whole."""
    with pytest.raises(DuetickError) as told, errors("t"):
        raise ServiceRefusal(operation, code, "which")
    return told.value


@pytest.mark.parametrize("code", ["ValidationException", "AccessDeniedException"])
def test_t04_a_transaction_that_is_refused_as_a_whole_is_so_for_the_actions_own(code: str) -> None:
    assert isinstance(as_of_caller(whole(code)), EffectsRefused)


def test_t04_an_outage_is_not_the_actions_own() -> None:
    away = whole("InternalServerError")
    assert as_of_caller(away) is away


def test_t04_what_is_refused_outside_of_the_transaction_is_not_the_actions_own() -> None:
    gone = whole("ResourceNotFoundException", "GetItem")
    assert as_of_caller(gone) is gone


@pytest.mark.parametrize("part", ["Item size", "Item size to update"])
def test_i13_an_item_that_is_too_large_is_told_from_a_service_that_is_away(part: str) -> None:
    said = f"{part} has exceeded the maximum allowed size"
    with pytest.raises(ItemTooLarge, match="400 KB"), errors("t"):
        raise ServiceRefusal("PutItem", "ValidationException", said)

"""What DynamoDB answers, told apart: a conflict is decided anew, anything else says what it is."""

from collections.abc import Sequence

import pytest
from botocore.exceptions import ClientError
from duetick.domain.errors import StoreUnavailable
from duetick.stores.dynamodb.errors import Conflict, ItemTooLarge, Throttled, errors, refusal


def cancelled(*reasons: str, said: Sequence[str] = ()) -> ClientError:
    """A transaction that was not done, with a reason for each of its writes."""
    told = f"Transaction cancelled, please refer to the reasons [{', '.join(reasons)}]"
    error = ClientError(
        {"Error": {"Code": "TransactionCanceledException", "Message": told}}, "TransactWriteItems"
    )
    error.response["CancellationReasons"] = [
        {"Code": code, "Message": text, "Item": {}}
        for code, text in zip(reasons, said, strict=False)
    ]
    return error


@pytest.mark.parametrize("reason", ["ConditionalCheckFailed", "TransactionConflict"])
def test_i04_a_transaction_that_another_was_quicker_than_is_a_conflict(reason: str) -> None:
    with pytest.raises(Conflict), errors():
        raise cancelled("None", reason)


@pytest.mark.parametrize("reason", ["ThrottlingError", "ProvisionedThroughputExceeded"])
def test_i10_a_throttled_transaction_is_no_conflict(reason: str) -> None:
    with pytest.raises(Throttled), errors():
        raise cancelled(reason, "None")


def test_i12_a_transaction_that_cannot_be_done_says_why() -> None:
    said = ("Item size to update has exceeded the maximum allowed size",)
    with pytest.raises(StoreUnavailable, match="exceeded the maximum"), errors():
        raise cancelled("ValidationError", "None", said=said)


def test_t04_what_cannot_be_done_of_an_actions_own_is_its_own() -> None:
    assert refusal(cancelled("None", "ValidationError")) is not None
    assert refusal(cancelled("None", "ConditionalCheckFailed")) is not None
    assert refusal(cancelled("ConditionalCheckFailed", "None")) is None
    assert refusal(cancelled("None", "TransactionConflict")) is None


@pytest.mark.parametrize("part", ["Item size", "Item size to update"])
def test_i13_an_item_that_is_too_large_is_told_from_a_service_that_is_away(part: str) -> None:
    said = f"{part} has exceeded the maximum allowed size"
    with pytest.raises(ItemTooLarge, match="400 KB"), errors():
        raise ClientError({"Error": {"Code": "ValidationException", "Message": said}}, "PutItem")

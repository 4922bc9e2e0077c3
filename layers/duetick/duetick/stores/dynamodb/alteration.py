"""What is written together with a schedule's item, in one transaction.

A dated definition, an external id, a count and an input that has an item of its own must be true at
once with it. The item goes into a transaction even where it is alone: one whose answer was lost on
its way can be asked for again, and is not taken for somebody else's change.
"""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from duetick.domain.creation import Made, Repeatable
from duetick.stores.dynamodb.entities import put_revised
from duetick.stores.dynamodb.occurrences import maybe_number, number, text
from duetick.stores.dynamodb.table import Item, Key, keyed

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.type_defs import TransactWriteItemTypeDef, UpdateTypeDef


def count_key(user_id: str) -> Key:
    """The item that counts a user's schedules."""
    return f"C#{user_id}", "C"


def runs_of_minute(user_id: str, minute: int) -> Key:
    """The item that counts a user's runs by hand in a minute, beside that of the schedules."""
    return count_key(user_id)[0], f"R#{minute}"


def creations_partition(user_id: str) -> str:
    """Where what a user's repeatable creations made stands."""
    return f"R#{user_id}"


def read_made(item: Item, now: int) -> Made | None:
    """What `Alteration.keep_in_mind` wrote, until its end: the table may take days to drop it."""
    if int(item["u"]["N"]) <= now:
        return None
    return Made(item["d"]["S"], int(item["at"]["N"]), maybe_number(item, "nf"))


def external_key(external_id: str) -> Key:
    """The item that makes an outside id one schedule's alone."""
    return f"E#{external_id}", "E"


@dataclass(slots=True)
class Alteration:
    """What must be written together with a schedule's item."""

    table: str
    writes: "list[TransactWriteItemTypeDef]" = field(default_factory=list)

    def put(self, item: Item) -> None:
        """Put an item that nobody else writes."""
        self.writes.append({"Put": {"TableName": self.table, "Item": item}})

    def own(self, key: Key, owner: str) -> None:
        """Put the item, unless it is another's."""
        self.writes.append(
            {
                "Put": {
                    "TableName": self.table,
                    "Item": keyed(key) | {"o": text(owner)},
                    "ConditionExpression": "attribute_not_exists(p) OR o = :o",
                    "ExpressionAttributeValues": {":o": text(owner)},
                }
            }
        )

    def count(self, user_id: str, by: int, at_most: int | None) -> None:
        """Count a user's schedules up, unless they are `at_most` already, or down."""
        update: UpdateTypeDef = {
            "TableName": self.table,
            "Key": keyed(count_key(user_id)),
            "UpdateExpression": "ADD n :by",
            "ExpressionAttributeValues": {":by": number(by)},
        }
        if at_most is not None:
            none_yet = "attribute_not_exists(n) OR " if at_most > 0 else ""
            update["ConditionExpression"] = f"{none_yet}n < :most"
            update["ExpressionAttributeValues"] = {":by": number(by), ":most": number(at_most)}
        self.writes.append({"Update": update})

    def keep_in_mind(self, user_id: str, repeatable: Repeatable, made: Made) -> None:
        """Put what the creation made, unless another one is by that name."""
        item = keyed((creations_partition(user_id), repeatable.name)) | {
            "d": text(made.digest),
            "at": number(made.at),
            "u": number(repeatable.until),
            "ttl": number(repeatable.until // 1_000),
        }
        if made.next_fire_at is not None:
            item["nf"] = number(made.next_fire_at)
        self.writes.append(
            {
                "Put": {
                    "TableName": self.table,
                    "Item": item,
                    "ConditionExpression": "attribute_not_exists(p) OR u <= :at",
                    "ExpressionAttributeValues": {":at": number(made.at)},
                }
            }
        )

    def delete(self, key: Key) -> None:
        """Delete the item."""
        self.writes.append({"Delete": {"TableName": self.table, "Key": keyed(key)}})

    def put_revised(self, item: Item, rev: int) -> None:
        """Put the item, if it is there in that revision."""
        self.writes.append(put_revised(self.table, item, rev))

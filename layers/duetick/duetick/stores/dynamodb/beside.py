"""The writes of other items in one transaction with a schedule's item, and their keys."""

import json
from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, cast

from duetick.domain.attempts import CallerKey
from duetick.domain.creation import Made, Repeatable
from duetick.domain.definitions import Definition
from duetick.domain.ending import counts
from duetick.domain.errors import CreationStands, InvalidSchedule, refuse_job, refuse_schedule
from duetick.domain.expression import rules_of
from duetick.domain.identity import is_call, is_job
from duetick.domain.occurrence import Identity, Occurrence
from duetick.domain.policies import DAY
from duetick.domain.schedule import Record, dump_input
from duetick.ports import Counted, Terms
from duetick.stores.dynamodb.items import BookItem, body_key, input_key
from duetick.stores.dynamodb.occurrences import maybe_number, maybe_text, number, text
from duetick.stores.dynamodb.records import definition_expiry, definition_item, definition_key
from duetick.stores.dynamodb.table import Item, Key, Table, key_attributes, key_of

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.type_defs import TransactWriteItemTypeDef, UpdateTypeDef

COUNT: Final = "ADD n :by"
LARGEST_INLINE: Final = 400
LARGEST_RECORD: Final = 700
BODY_KEPT_MS: Final = 120 * DAY * 1_000
"""The time for which the body of a call is kept: what died of it may be retried for 90 days."""
"""An item of one kilobyte must have room for two occurrences besides the record."""


def count_key(user_id: str) -> Key:
    """Return the key of the item that counts a user's schedules."""
    return f"C#{user_id}", "C"


def job_count_key(user_id: str) -> Key:
    """Return the key of the item that counts a user's pending jobs."""
    return count_key(user_id)[0], "J"


def rate_of_minute(user_id: str, counted: Counted, minute: int) -> Key:
    """Return the key of the item that counts a user's runs or writes of a minute.

    The item is in the partition of the count of schedules.
    """
    return count_key(user_id)[0], f"{counted}#{minute}"


def creations_partition(user_id: str) -> str:
    """Return the partition of a user's repeatable creations."""
    return f"R#{user_id}"


def operations_partition(user_id: str | None) -> str:
    """Return the partition of the operations about a user, or about no user."""
    return "A" if user_id is None else f"A#{user_id}"


def external_key(external_id: str) -> Key:
    """Return the key of the item that makes an outside id unique."""
    return f"E#{external_id}", "E"


def caller_key(flow: str, key: str) -> Key:
    """Return the key of the item of a caller's key. A flow's name has no `#`: the first ends it."""
    return f"K#{flow}#{key}", "K"


def zone_key(digest: str) -> Key:
    """Return the key of the item that keeps a zone's rules."""
    return f"Z#{digest}", "Z"


def zone_item(digest: str, timezone: str | None) -> Item:
    """Return the item that keeps a zone's rules."""
    return key_attributes(zone_key(digest)) | {
        "rules": text(b64encode(rules_of(timezone)).decode())
    }


def note_key(name: str) -> Key:
    """Return the key of a note."""
    return f"N#{name}", "N"


def holder_of(item: Mapping[str, Any]) -> Identity:
    """Return the name of the occurrence that took a caller's key."""
    user_id, key, nominal_at, origin = json.loads(item["h"]["S"])
    return user_id, key, nominal_at, origin


def read_made(item: Item | None, now: int) -> Made | None:
    """Read the result of a creation; None after its end, although `ttl` may drop it days later."""
    if item is None or int(item["u"]["N"]) <= now:
        return None
    return Made.read(item["d"]["S"], int(item["at"]["N"]), maybe_number(item, "nf"))


class Beside:
    """The writes of other items with one book. `seen` is the item of the caller's key, if any."""

    def __init__(self, table: Table, terms: Terms, seen: Item | None, now: int) -> None:
        self._table = table
        self._terms = terms
        self._seen = seen
        self._now = now
        self.writes: list[TransactWriteItemTypeDef] = []

    def collect(self, found: BookItem) -> None:
        """Collect the writes of the book's changes; raise InvalidSchedule if an id is taken."""
        book, before, after = found.book, found.record, found.book.record
        if counts(before) != counts(after):
            self._count(place_of_count(found), 1 if counts(after) else -1)
        if before is None and after and self._terms.creation:
            first = book.row.next_fire_at if book.row else None
            self._keep_creation(after, self._terms.creation, first)
        self._move_external_id(before, after)
        self._place_input(found)
        self.writes += [write for one in book.definitions for write in self._define(one)]
        if self._terms.key and book.made:
            self.writes.append(self._take_key(self._terms.key, book.made[0]))
        if self._terms.body is not None and book.made:
            self.writes.append(self._keep_body(book.made[0], self._terms.body))
        self.writes += [self._delete(body_key(one)) for one in book.discarded if is_call(one[3])]
        if book.bell:
            self.writes.append({"Update": _make_bell_pending(self._table.name, found)})

    def check(self, found: BookItem, counted: int = 0) -> None:
        """Raise QuotaReached or VersionConflict if that is why the transaction was refused. So many
        others are `counted` in the same transaction.
        """
        user_id, at_most = found.book.user_id, self._terms.at_most
        if not counts(found.book.record) or counts(found.record):
            return
        if at_most is not None:
            item = self._table.get(place_of_count(found)) or {}
            known = (maybe_number(item, "n") or 0) + counted - self._terms.ending
            if known >= at_most:
                raise refuse_job(at_most) if is_job(found.name[1]) else refuse_schedule(at_most)
        if self._terms.creation and found.record is None:
            place = creations_partition(user_id), self._terms.creation.name
            stands = read_made(self._table.get(place), self._now)
            if stands:
                raise CreationStands(stands.digest)

    def _define(self, one: Definition) -> "Iterator[TransactWriteItemTypeDef]":
        """Yield the writes of a definition, and of the expiry of the one before."""
        yield self._put(definition_item(one))
        if one.before:
            place = definition_key(one.user_id, one.key, one.before)
            yield {
                "Update": {
                    "TableName": self._table.name,
                    "Key": key_attributes(place),
                    "UpdateExpression": "SET #ttl = :at",
                    "ExpressionAttributeNames": {"#ttl": "ttl"},
                    "ExpressionAttributeValues": {":at": number(definition_expiry(one))},
                }
            }

    def _put(self, item: Item) -> "TransactWriteItemTypeDef":
        return {"Put": {"TableName": self._table.name, "Item": item}}

    def _delete(self, key: Key) -> "TransactWriteItemTypeDef":
        return {"Delete": {"TableName": self._table.name, "Key": key_attributes(key)}}

    def _count(self, place: Key, by: int) -> None:
        """Count a user's schedules, or jobs, up or down. The write fails if there would be too
        many.
        """
        update: UpdateTypeDef = {
            "TableName": self._table.name,
            "Key": key_attributes(place),
            "UpdateExpression": COUNT,
            "ExpressionAttributeValues": {":by": number(by)},
        }
        if by > 0 and self._terms.at_most is not None:
            at_most = self._terms.at_most + self._terms.ending
            none_yet = "attribute_not_exists(n) OR " if at_most > 0 else ""
            update["ConditionExpression"] = f"{none_yet}n < :most"
            update["ExpressionAttributeValues"] = {":by": number(by), ":most": number(at_most)}
        self.writes.append({"Update": update})

    def _keep_creation(self, record: Record, creation: Repeatable, first: int | None) -> None:
        """Keep the result of the creation. The write fails if another creation has its name."""
        item = key_attributes((creations_partition(record.user_id), creation.name)) | {
            "d": text(creation.note(record)),
            "at": number(record.created_at),
            "u": number(creation.until),
            "ttl": number(creation.until // 1_000),
        }
        if first is not None:
            item["nf"] = number(first)
        self.writes.append(
            {
                "Put": {
                    "TableName": self._table.name,
                    "Item": item,
                    "ConditionExpression": "attribute_not_exists(p) OR u <= :at",
                    "ExpressionAttributeValues": {":at": number(record.created_at)},
                }
            }
        )

    def _move_external_id(self, before: Record | None, after: Record | None) -> None:
        """Take the new outside id, and free the old one."""
        old, new = (one.external_id if one else None for one in (before, after))
        if old and old != new:
            self.writes.append(self._delete(external_key(old)))
        if not (after and new) or old == new:
            return
        place, owner = external_key(new), text(owner_of(after))
        taken = self._table.get(place)
        if taken and taken["o"] != owner:
            said = "is already another schedule's; choose another."
            raise InvalidSchedule("external_id", said, "taken")
        self.writes.append(
            {
                "Put": {
                    "TableName": self._table.name,
                    "Item": key_attributes(place) | {"o": owner},
                    "ConditionExpression": "attribute_not_exists(p) OR o = :o",
                    "ExpressionAttributeValues": {":o": owner},
                }
            }
        )

    def _place_input(self, found: BookItem) -> None:
        """Give the input an item of its own if the schedule's item would exceed a kilobyte."""
        record, was_apart, place = found.book.record, found.apart, input_key(*found.name)
        if record is None or _version(record) == _version(found.record):
            if record is None and was_apart:
                self.writes.append(self._delete(place))
                found.apart = False
            return
        dumped = dump_input(record.input)
        size = len(dumped) + _record_size(record)
        large = len(dumped) > LARGEST_INLINE or size > LARGEST_RECORD
        found.apart = record.input is not None and large
        if found.apart:
            self.writes.append(self._put(key_attributes(place) | {"in": text(dumped)}))
        elif was_apart:
            self.writes.append(self._delete(place))

    def _keep_body(self, made: Occurrence, body: str) -> "TransactWriteItemTypeDef":
        expires = (self._now + BODY_KEPT_MS) // 1_000
        return self._put(
            key_attributes(body_key(made.identity)) | {"body": text(body), "ttl": number(expires)}
        )

    def _take_key(self, key: CallerKey, taker: Occurrence) -> "TransactWriteItemTypeDef":
        """Return the write of the caller's key. It fails if the key changed since it was seen."""
        until, seen = self._now + key.window_ms, self._seen
        item = key_attributes(caller_key(key.flow, key.key)) | {
            "h": text(json.dumps(taker.identity, ensure_ascii=False)),
            "u": number(until),
            "ttl": number(until // 1_000 + DAY),
        }
        unchanged = "attribute_not_exists(p)" if seen is None else "h = :h AND u = :u"
        put: TransactWriteItemTypeDef = {
            "Put": {"TableName": self._table.name, "Item": item, "ConditionExpression": unchanged}
        }
        if seen is not None:
            put["Put"]["ExpressionAttributeValues"] = {":h": seen["h"], ":u": seen["u"]}
        return put


def _make_bell_pending(table: str, found: BookItem) -> "UpdateTypeDef":
    """Return the update that makes the book's bell pending. A managed store alone loads it."""
    from duetick.stores.dynamodb.bells import pending_update

    if found.book.bell is None:
        raise AssertionError("the bell is not pending")
    return pending_update(table, found.name, found.book.bell)


def place_of_count(found: BookItem) -> Key:
    """Return the key of the item that counts a book: as one of its user's schedules, or jobs."""
    user_id, key = found.name
    return job_count_key(user_id) if is_job(key) else count_key(user_id)


def counted(writes: "Sequence[TransactWriteItemTypeDef]", place: Key) -> int:
    """Return the number by which writes count a place up."""
    updates = [one["Update"] for one in writes if _place_counted(one) == place]
    return sum(int(_values_of(one)[":by"]["N"]) for one in updates)


def add_write(writes: "list[TransactWriteItemTypeDef]", one: "TransactWriteItemTypeDef") -> None:
    """Add a write. DynamoDB takes one of each item, so counts of one item become one."""
    place = _place_counted(one)
    for at, other in enumerate(writes):
        if place is not None and _place_counted(other) == place:
            writes[at] = _count_both(other, one)
            return
    writes.append(one)


def _place_counted(write: "TransactWriteItemTypeDef") -> Key | None:
    """Return the key of the item in which a write counts; None if it does not."""
    update = write.get("Update", {})
    key = update.get("Key")
    is_count = key and "p" in key and update.get("UpdateExpression") == COUNT
    return key_of(key) if key and is_count else None


def _count_both(
    one: "TransactWriteItemTypeDef", other: "TransactWriteItemTypeDef"
) -> "TransactWriteItemTypeDef":
    """Return the write of two counts of an item, under the same limit: what counts up beside a
    limited count takes room of it.
    """
    limited, free = sorted((one["Update"], other["Update"]), key=_is_free)
    values, more = _values_of(limited), int(_values_of(free)[":by"]["N"])
    values[":by"] = number(int(values[":by"]["N"]) + more)
    if ":most" in values:
        values[":most"] = number(int(values[":most"]["N"]) - max(0, more))
    return {"Update": {**limited, "ExpressionAttributeValues": values}}


def _values_of(update: "UpdateTypeDef") -> Item:
    return cast("Item", {**update["ExpressionAttributeValues"]})


def _is_free(update: "UpdateTypeDef") -> bool:
    return "ConditionExpression" not in update


def owner_of(record: Record) -> str:
    """Return the owner of an outside id as text. A user id has no slash: the first ends it."""
    return f"{record.user_id}/{record.key}"


def owner_name(item: Item) -> tuple[str, str]:
    """Return the user and key that own an outside id."""
    user_id, _, key = (maybe_text(item, "o") or "").partition("/")
    return user_id, key


def _version(record: Record | None) -> int:
    return record.version if record else 0


def _record_size(record: Record) -> int:
    """Estimate the bytes of a record in its item, without the input."""
    texts = [
        *(owner_of(record), record.cron, record.timezone, record.flow, record.action),
        *(record.external_id, record.policies.dump()),
        *(part for pair in record.labels.items() for part in pair),
    ]
    principal = len(json.dumps(record.principal, default=str)) if record.principal else 0
    return 160 + principal + sum(len((part or "").encode()) for part in texts)

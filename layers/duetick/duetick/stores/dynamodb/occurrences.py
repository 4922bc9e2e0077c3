"""Conversions between an occurrence and its map in an item."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from duetick.domain.ending import KEPT_GONE_MS
from duetick.domain.failures import Event
from duetick.domain.firing import Times
from duetick.domain.identity import SCHEDULE_ORIGIN, is_failure_hook, is_job
from duetick.domain.occurrence import Death
from duetick.domain.policies import DAY, Policies
from duetick.domain.retention import KEPT_AT_LEAST, Retention
from duetick.domain.schedule import IndexRow, Occurrence, Record
from duetick.domain.states import Reason, State
from duetick.stores.dynamodb.table import Item, Key

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.type_defs import AttributeValueTypeDef

RowDefinition: TypeAlias = tuple[str, str | None, str, int, Policies]
"""The fields that an occurrence has from its row: cron, timezone, flow, redefined_at, policies."""

LONGEST_ERROR: Final = 500
LONGEST_NOTE: Final = 200
MOST_EVENTS: Final = 20
MOST_OPEN: Final = 50
"""The most occurrences of a schedule that may be under way. Without room, its row waits."""

ROOM_FOR_EVENTS: Final = 400
"""The most events of all occurrences under way: one item of at most 400 KB has them."""

LARGEST_ITEM: Final = 390 * 1024
"""The most bytes of an item as it is written: the next begin or settle has the others."""

ROOM_FOR_ENTRIES: Final = 300 * 1024
LARGEST_ENTRY: Final = 2_500
"""The most bytes of an entry without its labels, its texts and its trace."""


@dataclass(frozen=True, slots=True)
class Entry:
    """An occurrence in an item, with its trace and the token of its last begin."""

    occurrence: Occurrence
    events: tuple[Event, ...] = ()
    token: str | None = None

    def trace(self, event: Event) -> "Entry":
        """Return the entry with one more event. Beyond `MOST_EVENTS` the oldest are dropped."""
        told = event.told and event.told[:LONGEST_NOTE]
        short = replace(event, note=event.note[:LONGEST_NOTE], told=told)
        return replace(self, events=(*self.events, short)[-MOST_EVENTS:])

    def within(self, events: int, characters: int) -> "Entry":
        """Return the entry with its newest events, and the beginning of its texts."""
        o = self.occurrence
        error, told = ((one or "")[:characters] or None for one in (o.error, o.told))
        if (error, told) != (o.error, o.told):
            o = replace(o, error=error, told=told)
        return Entry(o, self.events[max(0, len(self.events) - events) :], self.token)


def most_open(labels: int) -> int:
    """Return the most occurrences under way whose item has room for labels of so many bytes in
    each.
    """
    return min(MOST_OPEN, ROOM_FOR_ENTRIES // (LARGEST_ENTRY + labels))


def size_of(value: Mapping[str, Any]) -> int:
    """Return the bytes of an attribute, as DynamoDB counts them, or more."""
    ((kind, held),) = value.items()
    if kind == "M":
        return 3 + sum(len(name.encode()) + 1 + size_of(one) for name, one in held.items())
    if kind == "L":
        return 3 + sum(1 + size_of(one) for one in held)
    return len(held.encode())


def text(value: str) -> "AttributeValueTypeDef":
    """Return a string attribute."""
    return {"S": value}


def number(value: int) -> "AttributeValueTypeDef":
    """Return a number attribute."""
    return {"N": str(value)}


def put_text(item: Item, name: str, value: str | None) -> None:
    """Set the attribute, unless the value is None or empty."""
    if value:
        item[name] = text(value)


def put_number(item: Item, name: str, value: int | None) -> None:
    """Set the attribute, unless the value is None."""
    if value is not None:
        item[name] = number(value)


def maybe_text(item: Mapping[str, Any], name: str) -> str | None:
    """Return the attribute, or None if it is absent."""
    found = item.get(name)
    return found["S"] if found else None


def maybe_number(item: Mapping[str, Any], name: str) -> int | None:
    """Return the attribute, or None if it is absent."""
    found = item.get(name)
    return int(found["N"]) if found else None


def dump_labels(value: Mapping[str, str]) -> str | None:
    """Return labels as JSON, or None if there are none."""
    if not value:
        return None
    return json.dumps(dict(value), sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def definition_of(source: Occurrence | IndexRow | Record) -> RowDefinition:
    """Return the definition of a record or a row, or the definition that an occurrence has."""
    return source.cron, source.timezone, source.flow, source.redefined_at, source.policies


def _dump_definition(definition: RowDefinition) -> str:
    *plain, policies = definition
    return json.dumps([*plain, policies.dump()], separators=(",", ":"), ensure_ascii=False)


def _load_definition(dumped: str) -> RowDefinition:
    cron, timezone, flow, redefined_at, policies = json.loads(dumped)
    return cron, timezone, flow, redefined_at, Policies.load(policies)


def slot(nominal_at: int, origin: str) -> str:
    """Return the name of an occurrence within its schedule."""
    return str(nominal_at) if origin == SCHEDULE_ORIGIN else f"{nominal_at}#{origin}"


def slot_of(occurrence: Occurrence) -> str:
    """See `slot`."""
    return slot(occurrence.nominal_at, occurrence.origin)


def history_partition(user_id: str, key: str) -> str:
    """Return the partition of a schedule's history. A user id has no slash: the first ends it."""
    return f"O#{user_id}/{key}"


def history_sort(nominal_at: int, origin: str = "") -> str:
    """Return a sort key in the order of nominal times, from 300,000 years before the epoch on."""
    return f"{nominal_at + 10**16:017d}#{origin}"


def history_key(user_id: str, key: str, nominal_at: int, origin: str) -> Key:
    """Return the key of a finished occurrence."""
    return history_partition(user_id, key), history_sort(nominal_at, origin)


def write_entry(entry: Entry, usual: RowDefinition | None) -> Item:
    """Write the map of an entry. It has the definition only if that is not the usual one."""
    o = entry.occurrence
    item: Item = {
        "q": text(o.state),
        "f": number(o.fence),
        "a": number(o.attempts),
        "c": number(o.created_at),
        "m": number(o.updated_at),
    }
    put_text(item, "i", o.id)
    put_text(item, "r", o.reason)
    put_number(item, "u", None if o.due_at == o.nominal_at else o.due_at)
    put_number(item, "l", o.lease_until)
    put_number(item, "b", o.begun_at)
    put_text(item, "e", (o.error or "")[:LONGEST_ERROR])
    put_text(item, "te", (o.told or "")[:LONGEST_ERROR])
    put_number(item, "pr", None if o.priority == o.policies.priority else o.priority)
    put_number(item, "re", o.range_end)
    put_number(item, "n", None if o.count == 1 else o.count)
    put_text(item, "ik", o.idempotency_key)
    put_text(item, "la", dump_labels(o.labels))
    put_text(item, "dd", o.death and o.death.dump())
    put_text(item, "w", entry.token)
    if entry.events:
        item["h"] = {"L": [dump_event(one) for one in entry.events]}
    if definition_of(o) != usual:
        item["d"] = text(_dump_definition(definition_of(o)))
    return item


def dump_event(event: Event) -> "AttributeValueTypeDef":
    """Return an event as an element of a trace."""
    parts = [event.at, event.before, event.after, event.note[:LONGEST_NOTE]]
    if event.told:
        parts.append(event.told[:LONGEST_NOTE])
    return text(json.dumps(parts, separators=(",", ":"), ensure_ascii=False))


def _load_events(item: Mapping[str, Any]) -> tuple[Event, ...]:
    listed = item.get("h", {"L": ()})["L"]
    found = (json.loads(one["S"]) for one in listed)
    return tuple(
        Event(at, State(before), State(after), *said) for at, before, after, *said in found
    )


def read_entry(
    item: Mapping[str, Any], user_id: str, key: str, name: str, usual: RowDefinition | None
) -> Entry:
    """Read the map that `write_entry` wrote under a `slot`."""
    nominal, _, origin = name.partition("#")
    definition = maybe_text(item, "d")
    cron, timezone, flow, redefined_at, policies = (
        usual if usual and definition is None else _load_definition(definition or "")
    )
    reason, labels = maybe_text(item, "r"), maybe_text(item, "la")
    priority, due_at = maybe_number(item, "pr"), maybe_number(item, "u")
    occurrence = Occurrence(
        user_id=user_id,
        key=key,
        cron=cron,
        timezone=timezone,
        nominal_at=int(nominal),
        fence=int(item["f"]["N"]),
        origin=origin or SCHEDULE_ORIGIN,
        id=maybe_text(item, "i") or "",
        flow=flow,
        state=State(item["q"]["S"]),
        reason=Reason(reason) if reason else None,
        due_at=int(nominal) if due_at is None else due_at,
        attempts=int(item["a"]["N"]),
        priority=policies.priority if priority is None else priority,
        lease_until=maybe_number(item, "l"),
        redefined_at=redefined_at,
        policies=policies,
        range_end=maybe_number(item, "re"),
        count=maybe_number(item, "n") or 1,
        error=maybe_text(item, "e"),
        idempotency_key=maybe_text(item, "ik"),
        labels=json.loads(labels) if labels else {},
        created_at=int(item["c"]["N"]),
        begun_at=maybe_number(item, "b"),
        updated_at=int(item["m"]["N"]),
        told=maybe_text(item, "te"),
        death=Death.load(maybe_text(item, "dd")),
    )
    return Entry(occurrence, _load_events(item), maybe_text(item, "w"))


def write_history(entry: Entry, retention: Retention) -> Item:
    """Return the item of a finished occurrence. It is the same whenever it is written again."""
    o = entry.occurrence
    partition, sort = history_key(o.user_id, o.key, o.nominal_at, o.origin)
    # The token is of use only while the attempt is under way.
    item = write_entry(replace(entry, token=None), None) | {
        "p": text(partition),
        "s": text(sort),
        "ttl": number(_expires_at(o, retention)),
    }
    if o.state is State.DEAD:
        item |= {"att": text("dead"), "aat": number(o.nominal_at)}
    return item


def _expires_at(o: Occurrence, retention: Retention) -> int:
    """Return the expiry in seconds: the retention's, but not before twenty more fires of the
    schedule.

    An occurrence of another origin waits for these fires `KEPT_GONE_MS` at most: there may be any
    number of such occurrences. A poisoned one, whose cron nobody can read, stays so long too. A
    failure hook and a job wait for none.
    """
    ends = retention.expires_at(o)
    if is_failure_hook(o.origin) or is_job(o.origin):
        return ends // 1_000
    longest = o.updated_at + KEPT_GONE_MS
    if o.reason is Reason.POISONED:
        return max(ends, longest) // 1_000
    last = _last_of(o.cron, o.timezone, o.policies, o.nominal_at) + DAY * 1_000
    if o.origin != SCHEDULE_ORIGIN:
        last = min(last, longest)
    return max(ends, last) // 1_000


@lru_cache(maxsize=1_024)
def _last_of(cron: str, timezone: str | None, policies: Policies, nominal_at: int) -> int:
    """Return the twentieth fire time after it; if the schedule has fewer, the last one."""
    times, last = Times(cron, timezone, nominal_at, policies), nominal_at
    try:
        for _ in range(KEPT_AT_LEAST):
            last = times.after(last) or last
    except ValueError:
        return nominal_at
    return last


def read_history(item: Mapping[str, Any]) -> Entry:
    """Read the item that `write_history` wrote."""
    user_id, _, key = item["p"]["S"].removeprefix("O#").partition("/")
    padded, _, origin = item["s"]["S"].partition("#")
    return read_entry(item, user_id, key, slot(int(padded) - 10**16, origin), None)

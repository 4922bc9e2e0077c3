"""Between an occurrence and the map that stands for it in an item."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from duetick.domain.firing import Times
from duetick.domain.identity import SCHEDULE_ORIGIN
from duetick.domain.policies import DAY, Policies
from duetick.domain.schedule import IndexRow, Occurrence, Schedule
from duetick.domain.states import Reason, State
from duetick.ports import Event
from duetick.stores.dynamodb.table import Item, Key

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.type_defs import AttributeValueTypeDef

Definition: TypeAlias = tuple[str, str | None, str, int, Policies]
"""What an occurrence has from its row: cron, timezone, flow, timing, policies."""

LONGEST_ERROR: Final = 500
MOST_EVENTS: Final = 20
KEPT_SECONDS: Final = 30 * DAY
KEPT_DEAD_SECONDS: Final = 90 * DAY
KEPT_AT_LEAST: Final = 20

FEW: Final = 10
"""So many cannot fill an item with what is told of them."""

MOST_TOLD: Final = 200_000
"""Bytes of traces and errors in an item, which has room for twice as many in all."""


@dataclass(frozen=True, slots=True)
class Entry:
    """An occurrence as an item holds it: with its trace, and who began its last attempt."""

    occurrence: Occurrence
    events: tuple[Event, ...] = ()
    token: str | None = None

    def become(self, after: Occurrence, note: str | None = None) -> "Entry":
        """The same after a transition; with a note where its own fields do not tell it."""
        events = self.events
        if note is not None:
            at, before = after.updated_at, self.occurrence.state
            events = (*events, Event(at, before, after.state, note[:200]))[-MOST_EVENTS:]
        return Entry(after, events, self.token)


def text(value: str) -> "AttributeValueTypeDef":
    """A string attribute."""
    return {"S": value}


def number(value: int) -> "AttributeValueTypeDef":
    """A number attribute."""
    return {"N": str(value)}


def put_text(item: Item, name: str, value: str | None) -> None:
    """Set the attribute, unless there is nothing to say: nothing is stored for None."""
    if value:
        item[name] = text(value)


def put_number(item: Item, name: str, value: int | None) -> None:
    """Set the attribute, unless there is nothing to say: nothing is stored for None."""
    if value is not None:
        item[name] = number(value)


def maybe_text(item: Mapping[str, Any], name: str) -> str | None:
    """The attribute, None where it is absent."""
    found = item.get(name)
    return found["S"] if found else None


def maybe_number(item: Mapping[str, Any], name: str) -> int | None:
    """The attribute, None where it is absent."""
    found = item.get(name)
    return int(found["N"]) if found else None


def dump_map(value: Mapping[str, str]) -> str | None:
    """Labels as JSON, None where there are none."""
    return json.dumps(dict(value), sort_keys=True, separators=(",", ":")) if value else None


def definition_of(source: Occurrence | IndexRow | Schedule) -> Definition:
    """What `source` gives to its occurrences, or has from its row."""
    return source.cron, source.timezone, source.flow, source.timing, source.policies


def _dump_definition(definition: Definition) -> str:
    *plain, policies = definition
    return json.dumps([*plain, policies.dump()], separators=(",", ":"), ensure_ascii=False)


def _load_definition(dumped: str) -> Definition:
    cron, timezone, flow, timing, policies = json.loads(dumped)
    return cron, timezone, flow, timing, Policies.load(policies)


def slot(nominal_at: int, origin: str) -> str:
    """The name of an occurrence among those of its schedule."""
    return str(nominal_at) if origin == SCHEDULE_ORIGIN else f"{nominal_at}#{origin}"


def slot_of(occurrence: Occurrence) -> str:
    """See `slot`."""
    return slot(occurrence.nominal_at, occurrence.origin)


def history_partition(user_id: str, key: str) -> str:
    """A user has no slash in it: the first one ends it."""
    return f"O#{user_id}/{key}"


def history_sort(nominal_at: int, origin: str = "") -> str:
    """Sorts as the nominal time does, down to a million years before and after the epoch."""
    return f"{nominal_at + 10**16:017d}#{origin}"


def history_key(user_id: str, key: str, nominal_at: int, origin: str) -> Key:
    """Where an occurrence goes when it has ended."""
    return history_partition(user_id, key), history_sort(nominal_at, origin)


def write_entry(entry: Entry, usual: Definition | None) -> Item:
    """The map of an entry; its definition stands in it only where it is not the usual one."""
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
    put_number(item, "pr", None if o.priority == o.policies.priority else o.priority)
    put_number(item, "re", o.range_end)
    put_number(item, "n", None if o.count == 1 else o.count)
    put_text(item, "co", o.correlation_id)
    put_text(item, "ik", o.idempotency_key)
    put_text(item, "la", dump_map(o.labels))
    put_text(item, "w", entry.token)
    if entry.events:
        item["h"] = text(_dump_events(entry.events))
    if definition_of(o) != usual:
        item["d"] = text(_dump_definition(definition_of(o)))
    return item


def shed(entries: Sequence[Item]) -> None:
    """Drop traces, then errors, where hundreds of them would fill the item; the first of them."""
    if len(entries) <= FEW:
        return
    spare = sum(_bytes(entry, name) for entry in entries for name in "he") - MOST_TOLD
    for name in "he":
        for entry in entries:
            if spare <= 0:
                return
            spare -= _bytes(entry, name)
            entry.pop(name, None)


def _bytes(entry: Item, name: str) -> int:
    return len((maybe_text(entry, name) or "").encode())


def _dump_events(events: tuple[Event, ...]) -> str:
    return json.dumps(
        [[e.at, e.before, e.after, e.note] for e in events],
        separators=(",", ":"),
        ensure_ascii=False,
    )


def _load_events(dumped: str | None) -> tuple[Event, ...]:
    return tuple(
        Event(at, State(before), State(after), note)
        for at, before, after, note in (json.loads(dumped) if dumped else ())
    )


def read_entry(
    item: Mapping[str, Any], user_id: str, key: str, name: str, usual: Definition | None
) -> Entry:
    """What `write_entry` wrote under a `slot`."""
    nominal, _, origin = name.partition("#")
    definition = maybe_text(item, "d")
    cron, timezone, flow, timing, policies = (
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
        timing=timing,
        policies=policies,
        range_end=maybe_number(item, "re"),
        count=maybe_number(item, "n") or 1,
        error=maybe_text(item, "e"),
        correlation_id=maybe_text(item, "co"),
        idempotency_key=maybe_text(item, "ik"),
        labels=json.loads(labels) if labels else {},
        created_at=int(item["c"]["N"]),
        begun_at=maybe_number(item, "b"),
        updated_at=int(item["m"]["N"]),
    )
    return Entry(occurrence, _load_events(maybe_text(item, "h")), maybe_text(item, "w"))


def write_history(entry: Entry) -> Item:
    """The item of an occurrence that has ended: the same whoever writes it, and whenever."""
    o = entry.occurrence
    partition, sort = history_key(o.user_id, o.key, o.nominal_at, o.origin)
    # The token serves an attempt that is under way, and nobody after that.
    item = write_entry(replace(entry, token=None), None) | {
        "p": text(partition),
        "s": text(sort),
        "ttl": number(_expires_at(o)),
    }
    if o.state is State.DEAD:
        item |= {"att": text("dead"), "aat": number(o.nominal_at)}
    return item


def _expires_at(o: Occurrence) -> int:
    """In seconds: a month after its end, a dead one's three, and not before twenty more fired."""
    kept = KEPT_DEAD_SECONDS if o.state is State.DEAD else KEPT_SECONDS
    ends = o.updated_at // 1_000 + kept
    if o.origin != SCHEDULE_ORIGIN:
        return ends
    return max(ends, _last_of(o.cron, o.timezone, o.policies, o.nominal_at) // 1_000 + DAY)


@lru_cache(maxsize=1_024)
def _last_of(cron: str, timezone: str | None, policies: Policies, nominal_at: int) -> int:
    """When the twentieth after it fires; of a schedule with fewer to come, the last one."""
    times, last = Times(cron, timezone, nominal_at, policies), nominal_at
    try:
        for _ in range(KEPT_AT_LEAST):
            last = times.after(last) or last
    except ValueError:
        return nominal_at
    return last


def read_history(item: Mapping[str, Any]) -> Entry:
    """What `write_history` wrote."""
    user_id, _, key = item["p"]["S"].removeprefix("O#").partition("/")
    padded, _, origin = item["s"]["S"].partition("#")
    return read_entry(item, user_id, key, slot(int(padded) - 10**16, origin), None)

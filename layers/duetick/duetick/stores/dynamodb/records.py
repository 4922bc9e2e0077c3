"""The record and the row as attributes of an item: their names and forms."""

import json
from collections.abc import Mapping
from typing import Any, get_args

from duetick.domain.definitions import Definition, Standing
from duetick.domain.ending import KEPT_GONE_MS
from duetick.domain.policies import Policies
from duetick.domain.rows import row_of
from duetick.domain.schedule import IndexRow, Pause, Principal, Record, dump_input
from duetick.stores.dynamodb.occurrences import (
    dump_labels,
    maybe_number,
    maybe_text,
    number,
    put_number,
    put_text,
    text,
)
from duetick.stores.dynamodb.table import Item, Key, key_attributes


def write_record(item: Item, record: Record, *, apart: bool) -> None:
    """Put the record into the item. With `apart`, its input has an item of its own."""
    item["v"], item["cron"] = number(record.version), text(record.cron)
    item["flow"], item["act"] = text(record.flow), text(record.action)
    item["tim"], item["anc"] = number(record.redefined_at), number(record.anchor)
    item["cre"], item["upd"] = number(record.created_at), number(record.updated_at)
    put_text(item, "tz", record.timezone)
    put_text(item, "pr", _dump_principal(record.principal))
    put_text(item, "pol", record.policies.dump())
    put_text(item, "lab", dump_labels(record.labels))
    put_text(item, "ext", record.external_id)
    put_text(item, "pau", record.pause.dump() if record.pause else None)
    put_number(item, "lra", record.last_run_at)
    put_number(item, "max", record.policies.max_runs)
    put_number(item, "ran", record.runs or None)
    put_number(item, "dn", record.done_at)
    put_number(item, "lat", record.purge_at)
    if not record.enabled:
        item["off"] = number(1)
    if apart:
        item["ia"] = number(1)
    elif record.input is not None:
        item["in"] = text(dump_input(record.input))


def dump_row(row: IndexRow) -> str:
    """Return a row's definition as text."""
    dumped = [row.cron, row.timezone, row.flow, row.anchor, row.redefined_at, row.policies.dump()]
    return json.dumps(dumped, separators=(",", ":"), ensure_ascii=False)


def _dump_principal(principal: Principal | None) -> str | None:
    if principal is None:
        return None
    parts = [principal.user_id, principal.org_id, dict(principal.attributes)]
    return json.dumps(parts, separators=(",", ":"), ensure_ascii=False)


def read_record(item: Mapping[str, Any], user_id: str, key: str) -> Record:
    """Read the record that `write_record` wrote."""
    principal, labels = maybe_text(item, "pr"), maybe_text(item, "lab")
    dumped_input = maybe_text(item, "in")
    return Record(
        user_id=user_id,
        key=key,
        cron=item["cron"]["S"],
        flow=item["flow"]["S"],
        action=item["act"]["S"],
        timezone=maybe_text(item, "tz"),
        input=json.loads(dumped_input) if dumped_input else None,
        principal=Principal(*json.loads(principal)) if principal else None,
        enabled="off" not in item,
        policies=Policies.load(maybe_text(item, "pol")),
        labels=json.loads(labels) if labels else {},
        external_id=maybe_text(item, "ext"),
        pause=Pause.load(maybe_text(item, "pau")),
        version=int(item["v"]["N"]),
        redefined_at=int(item["tim"]["N"]),
        anchor=int(item["anc"]["N"]),
        created_at=int(item["cre"]["N"]),
        updated_at=int(item["upd"]["N"]),
        last_run_at=maybe_number(item, "lra"),
        runs=maybe_number(item, "ran") or 0,
        done_at=maybe_number(item, "dn"),
        purge_at=maybe_number(item, "lat"),
    )


def read_row(item: Mapping[str, Any], user_id: str, key: str, record: Record | None) -> IndexRow:
    """Read the row. Its definition is the record's, unless the item has another one."""
    next_fire_at, definition = int(item["run"]["N"]), maybe_text(item, "x")
    if definition is None and record:
        return row_of(record, next_fire_at)
    cron, timezone, flow, anchor, redefined_at, policies = json.loads(definition or "null")
    return IndexRow(
        user_id=user_id,
        key=key,
        cron=cron,
        timezone=timezone,
        next_fire_at=next_fire_at,
        flow=flow,
        anchor=anchor,
        redefined_at=redefined_at,
        policies=Policies.load(policies),
    )


def definition_partition(user_id: str, key: str) -> str:
    """Return the partition of a schedule's dated definitions."""
    return f"V#{user_id}/{key}"


def definition_key(user_id: str, key: str, since: int) -> Key:
    """Return the key of the definition that applies from `since` on."""
    return definition_partition(user_id, key), f"{since:016d}"


def definition_item(one: Definition) -> Item:
    """Return the item of a definition, which applies from `since` on.

    The last definition of a schedule that is gone expires.
    """
    item: Item = {
        **key_attributes(definition_key(one.user_id, one.key, one.since)),
        "cron": text(one.cron),
        "anc": number(one.anchor),
        "is": text(one.standing),
        "tzdata": text(one.tzdata),
    }
    put_number(item, "pu", one.paused_until)
    put_text(item, "zr", one.zone)
    put_text(item, "tz", one.timezone)
    put_text(item, "pol", one.policies.dump())
    put_text(item, "flow", one.flow)
    if one.is_last:
        item["ttl"] = number(definition_expiry(one))
    return item


def read_definition(item: Mapping[str, Any], user_id: str, key: str) -> Definition:
    """Read the item that `definition_item` wrote. Earlier releases wrote no standing."""
    return Definition(
        user_id=user_id,
        key=key,
        since=int(item["s"]["S"]),
        cron=item["cron"]["S"],
        timezone=maybe_text(item, "tz"),
        policies=Policies.load(maybe_text(item, "pol")),
        anchor=int(item["anc"]["N"]),
        standing=_standing(item),
        paused_until=maybe_number(item, "pu"),
        zone=maybe_text(item, "zr"),
        tzdata=item["tzdata"]["S"],
        flow=maybe_text(item, "flow"),
    )


def _standing(item: Mapping[str, Any]) -> Standing:
    known: dict[str | None, Standing] = {one: one for one in get_args(Standing)}
    return known.get(maybe_text(item, "is"), "unknown")


def definition_expiry(one: Definition) -> int:
    """Return the expiry in seconds of a definition that ends with this one."""
    return (one.since + KEPT_GONE_MS) // 1_000

"""The record and the index row as attributes: what each is called, and how it is written."""

import json
from collections.abc import Mapping
from typing import Any

from duetick.domain.mirror import row_of
from duetick.domain.policies import Policies
from duetick.domain.schedule import IndexRow, Pause, Principal, Schedule, dump_input
from duetick.stores.dynamodb.occurrences import (
    dump_map,
    maybe_number,
    maybe_text,
    number,
    put_number,
    put_text,
    text,
)
from duetick.stores.dynamodb.table import Item


def write_record(item: Item, record: Schedule, *, apart: bool) -> None:
    """Put the record into the item, its input unless that is apart."""
    item["v"], item["cron"] = number(record.version), text(record.cron)
    item["flow"], item["act"] = text(record.flow), text(record.action)
    item["tim"], item["anc"] = number(record.timing), number(record.anchor)
    item["cre"], item["upd"] = number(record.created_at), number(record.updated_at)
    put_text(item, "tz", record.timezone)
    put_text(item, "pr", _dump_principal(record.principal))
    put_text(item, "pol", record.policies.dump())
    put_text(item, "lab", dump_map(record.labels))
    put_text(item, "ext", record.external_id)
    put_text(item, "pau", record.pause.dump() if record.pause else None)
    put_number(item, "dis", record.disabled_at)
    put_number(item, "lra", record.last_run_at)
    put_number(item, "max", record.policies.max_runs)
    put_number(item, "ran", record.runs or None)
    if not record.enabled:
        item["off"] = number(1)
    if apart:
        item["ia"] = number(1)
    elif record.input is not None:
        item["in"] = text(dump_input(record.input))


def dump_row(row: IndexRow) -> str:
    """An index row's own definition."""
    dumped = [row.cron, row.timezone, row.flow, row.anchor, row.timing, row.policies.dump()]
    return json.dumps(dumped, separators=(",", ":"), ensure_ascii=False)


def _dump_principal(principal: Principal | None) -> str | None:
    if principal is None:
        return None
    parts = [principal.user_id, principal.org_id, dict(principal.attributes)]
    return json.dumps(parts, separators=(",", ":"), ensure_ascii=False)


def read_record(item: Mapping[str, Any], user_id: str, key: str) -> Schedule:
    """What `write_record` wrote."""
    principal, labels = maybe_text(item, "pr"), maybe_text(item, "lab")
    given = maybe_text(item, "in")
    return Schedule(
        user_id=user_id,
        key=key,
        cron=item["cron"]["S"],
        flow=item["flow"]["S"],
        action=item["act"]["S"],
        timezone=maybe_text(item, "tz"),
        input=json.loads(given) if given else None,
        principal=Principal(*json.loads(principal)) if principal else None,
        enabled="off" not in item,
        policies=Policies.load(maybe_text(item, "pol")),
        labels=json.loads(labels) if labels else {},
        external_id=maybe_text(item, "ext"),
        pause=Pause.load(maybe_text(item, "pau")),
        version=int(item["v"]["N"]),
        timing=int(item["tim"]["N"]),
        anchor=int(item["anc"]["N"]),
        created_at=int(item["cre"]["N"]),
        updated_at=int(item["upd"]["N"]),
        disabled_at=maybe_number(item, "dis"),
        last_run_at=maybe_number(item, "lra"),
        runs=maybe_number(item, "ran") or 0,
    )


def read_row(item: Mapping[str, Any], user_id: str, key: str, record: Schedule | None) -> IndexRow:
    """The index row: as the record has it, unless it has a definition of its own."""
    next_fire_at, own = int(item["run"]["N"]), maybe_text(item, "x")
    if own is None and record:
        return row_of(record, next_fire_at)
    cron, timezone, flow, anchor, timing, policies = json.loads(own or "null")
    return IndexRow(
        user_id=user_id,
        key=key,
        cron=cron,
        timezone=timezone,
        next_fire_at=next_fire_at,
        flow=flow,
        anchor=anchor,
        timing=timing,
        policies=Policies.load(policies),
    )

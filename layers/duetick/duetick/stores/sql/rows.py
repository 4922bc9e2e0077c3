"""Conversions between rows of the database and types of the domain."""

import json
from base64 import b64encode
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from duetick.domain.attempts import Begun
from duetick.domain.book import Unreadable
from duetick.domain.creation import Made
from duetick.domain.definitions import Definition
from duetick.domain.ending import KEPT_GONE_MS
from duetick.domain.expression import rules_of
from duetick.domain.failures import Event
from duetick.domain.occurrence import Death, Identity, IndexRow, Occurrence
from duetick.domain.paging import make_cursor
from duetick.domain.policies import Overlap, Policies
from duetick.domain.schedule import Pause, Principal, Record, dump_input
from duetick.domain.states import Reason, State
from duetick.ports import Listed
from duetick.stores.sql.session import Params, Row, Value

if TYPE_CHECKING:
    from duetick.domain.jobs import Job
    from duetick.domain.workers import Worker

INDEX_COLUMNS: Final = 9
OCCURRENCE_COLUMNS: Final = 27
ATTEMPTS: Final = 12
"""The place of this field in `occurrence_columns`."""


def read_index(row: Row) -> IndexRow:
    """Read a row of `index_columns`."""
    user_id, key, cron, timezone, next_fire_at, flow, anchor, redefined_at, policies, *_ = row
    times = (cron, timezone, next_fire_at, flow, anchor, redefined_at)
    return IndexRow(user_id, key, *times, Policies.load(policies))


def index_params(row: IndexRow) -> dict[str, Value]:
    """Return the parameters of `index_put` and `unreadable_put`."""
    return {
        "user_id": row.user_id,
        "key": row.key,
        "cron": row.cron,
        "timezone": row.timezone,
        "next_fire_at": row.next_fire_at,
        "flow": row.flow,
        "anchor": row.anchor,
        "redefined_at": row.redefined_at,
        "policies": row.policies.dump(),
    }


def read_unreadable(row: Row) -> Unreadable:
    """Read a row of `unreadable_columns`."""
    return Unreadable(read_index(row), row[INDEX_COLUMNS], row[INDEX_COLUMNS + 1])


def unreadable_params(one: Unreadable) -> Params:
    """Return the parameters of `unreadable_put`."""
    return index_params(one.row) | {"error": one.error, "at": one.at}


def read_record(row: Row) -> Record:
    """Read a row of `schedule_columns`."""
    return Record(
        user_id=row[0],
        key=row[1],
        cron=row[2],
        flow=row[3],
        action=row[4],
        timezone=row[5],
        input=json.loads(row[6]),
        principal=Principal(**json.loads(row[7])) if row[7] else None,
        enabled=bool(row[8]),
        policies=Policies.load(row[9]),
        labels=_read_labels(row[10]),
        external_id=row[11],
        pause=Pause.load(row[12]),
        version=row[13],
        redefined_at=row[14],
        anchor=row[15],
        created_at=row[16],
        updated_at=row[17],
        runs=row[18],
        done_at=row[19],
        purge_at=row[20],
        next_fire_at=row[21],
        last_run_at=row[22],
        defect=row[23],
    )


def record_params(record: Record) -> dict[str, Value]:
    """Return the parameters of `schedule_put`: all stored fields of a record."""
    return {
        "user_id": record.user_id,
        "key": record.key,
        "cron": record.cron,
        "timezone": record.timezone,
        "flow": record.flow,
        "action": record.action,
        "input": dump_input(record.input),
        "principal": _dump_principal(record.principal),
        "enabled": int(record.enabled),
        "policies": record.policies.dump(),
        "labels": _dump_labels(record.labels),
        "external_id": record.external_id,
        "pause": record.pause.dump() if record.pause else None,
        "version": record.version,
        "redefined_at": record.redefined_at,
        "anchor": record.anchor,
        "created_at": record.created_at,
        "updated_at": record.updated_at,
        "runs": record.runs,
        "done_at": record.done_at,
        "purge_at": record.purge_at,
        "last_run_at": record.last_run_at,
        "lease_ms": record.policies.lease_ms,
        "exclusive": int(record.policies.overlap is not Overlap.ALLOW),
        "limited": int(record.policies.max_runs is not None),
    }


def read_listed(row: Row) -> Listed:
    """Read a row of `books`."""
    user_id, key, unreadable, mark, zone, *columns = row
    record, index = columns[: -INDEX_COLUMNS - 1], columns[-INDEX_COLUMNS - 1 :]
    return Listed(
        user_id,
        key,
        read_record(record) if record[0] is not None else None,
        read_index(index) if index[0] is not None else None,
        bool(unreadable),
        later_of(mark, index[-1]),
        zone,
        make_cursor(user_id, key),
    )


def read_occurrence(row: Row) -> Occurrence:
    """Read a row of `occurrence_columns`: they have the order of the fields."""
    fields = [*row[:OCCURRENCE_COLUMNS]]
    fields[9] = State(row[9])
    fields[10] = Reason(row[10]) if row[10] else None
    fields[16] = Policies.load(row[16])
    fields[21] = _read_labels(row[21])
    fields[26] = Death.load(row[26])
    return Occurrence(*fields)


RECORD_COLUMNS: Final = 24


def read_job(row: Row) -> "Job":
    """Read a row of `job_list`."""
    from duetick.domain.jobs import Job

    return Job(read_record(row), read_occurrence(row[RECORD_COLUMNS:]))


def job_end_params(lost: Occurrence) -> Params:
    """Return the parameters of `job_end`, for a job that was lost."""
    from duetick.domain.jobs import KEPT_DEAD_MS

    at = lost.updated_at
    ends: Params = {"done_at": at, "purge_at": at + KEPT_DEAD_MS}
    return {"user_id": lost.user_id, "key": lost.key, **ends}


def read_begun(occurrence: Row, records: Sequence[Row]) -> Begun:
    """Read a row of `occurrence_columns`, and a row of `schedule_columns` if there is a record."""
    return Begun(read_occurrence(occurrence), read_record(records[0]) if records else None)


def identity_params(identity: Identity) -> dict[str, Value]:
    """Return the parameters that name an occurrence."""
    user_id, key, nominal_at, origin = identity
    return {"user_id": user_id, "key": key, "nominal_at": nominal_at, "origin": origin}


def occurrence_params(one: Occurrence) -> Params:
    """Return the parameters of `occurrence_put` and `range_put`."""
    return {
        "user_id": one.user_id,
        "key": one.key,
        "cron": one.cron,
        "timezone": one.timezone,
        "nominal_at": one.nominal_at,
        "fence": one.fence,
        "origin": one.origin,
        "id": one.id,
        "flow": one.flow,
        "state": one.state.value,
        "reason": one.reason,
        "due_at": one.due_at,
        "attempts": one.attempts,
        "priority": one.priority,
        "lease_until": one.lease_until,
        "exclusive": int(one.policies.overlap is not Overlap.ALLOW),
        "redefined_at": one.redefined_at,
        "policies": one.policies.dump(),
        "range_end": one.range_end,
        "count": one.count,
        "error": one.error,
        "told": one.told,
        "idempotency_key": one.idempotency_key,
        "labels": _dump_labels(one.labels),
        "created_at": one.created_at,
        "begun_at": one.begun_at,
        "updated_at": one.updated_at,
        "death": one.death and one.death.dump(),
    }


def move_params(one: Occurrence) -> Params:
    """Return the parameters of `occurrence_move`: the fields that a transition may change."""
    return {
        "user_id": one.user_id,
        "key": one.key,
        "nominal_at": one.nominal_at,
        "origin": one.origin,
        "state": one.state.value,
        "reason": one.reason,
        "due_at": one.due_at,
        "attempts": one.attempts,
        "fence": one.fence,
        "lease_until": one.lease_until,
        "exclusive": int(one.policies.overlap is not Overlap.ALLOW),
        "policies": one.policies.dump(),
        "redefined_at": one.redefined_at,
        "labels": _dump_labels(one.labels),
        "error": one.error,
        "told": one.told,
        "begun_at": one.begun_at,
        "updated_at": one.updated_at,
        "death": one.death and one.death.dump(),
    }


NEW_LEASE: Final = (
    *("state", "reason", "due_at", "fence", "lease_until", "updated_at"),
    *("user_id", "key", "nominal_at", "origin"),
)
"""The parameters of `occurrence_lease`: the fields that a new lease changes, and the name."""


def lease_values(one: Occurrence) -> tuple[Value, ...]:
    """Return the values of `NEW_LEASE`."""
    lease = one.state.value, one.reason, one.due_at, one.fence, one.lease_until, one.updated_at
    return lease + one.identity


def event_params(identity: Identity, event: Event) -> Params:
    """Return the parameters of `event_put`."""
    return identity_params(identity) | {
        "at": event.at,
        "before": event.before,
        "after": event.after,
        "note": event.note,
        "told": event.told,
    }


def read_event(row: Row) -> Event:
    """Read a row of `events_of`."""
    at, before, after, note, told = row
    return Event(at, State(before), State(after), note, told)


def definition_params(one: Definition) -> Params:
    """Return the parameters of `definition_put`."""
    return {
        "user_id": one.user_id,
        "key": one.key,
        "since": one.since,
        "cron": one.cron,
        "timezone": one.timezone,
        "policies": one.policies.dump(),
        "anchor": one.anchor,
        "enabled": int(one.standing == "active"),
        "standing": one.standing,
        "paused_until": one.paused_until,
        "zone": one.zone,
        "tzdata": one.tzdata,
        "kept_until": one.since + KEPT_GONE_MS if one.is_last else None,
        "flow": one.flow,
    }


def ended_params(one: Definition) -> Params:
    """Return the parameters of `definition_end`, for the definition before this one."""
    name: Params = {"user_id": one.user_id, "key": one.key}
    return {**name, "before": one.before, "kept_until": one.since + KEPT_GONE_MS}


def read_definition(row: Row) -> Definition:
    """Read a row of `definition_columns`."""
    user_id, key, since, cron, timezone, policies, *others, flow = row
    found = Definition(user_id, key, since, cron, timezone, Policies.load(policies), *others)
    return found._replace(flow=flow)


def worker_params(worker: "Worker") -> Params:
    """Return the parameters of `worker_put`."""
    return {
        "id": worker.id,
        "kind": worker.kind,
        "started_at": worker.started_at,
        "silent_at": worker.silent_at,
        "ended_at": worker.ended_at,
        "lost_at": worker.lost_at,
        "lateness_ms": worker.lateness_ms,
        "counts": json.dumps(dict(worker.counts), sort_keys=True),
    }


def read_worker(row: Row) -> "Worker":
    """Read a row of `workers_list`. Its module is loaded for operators alone."""
    from duetick.domain.workers import Worker

    name, kind, started_at, silent_at, ended_at, lost_at, lateness_ms, counts = row
    ends = ended_at, lost_at, lateness_ms
    return Worker(name, kind, started_at, silent_at, *ends, json.loads(counts))


def zone_params(timezone: str | None, digest: str) -> Params:
    """Return the parameters of `zone_put`."""
    return {"digest": digest, "rules": b64encode(rules_of(timezone)).decode()}


def read_made(row: Row) -> Made:
    """Read a row of `creation_get`."""
    return Made.read(*row)


def later_of(one: int | None, other: int | None) -> int | None:
    """Return the later of two marks; each may be None."""
    return max((mark for mark in (one, other) if mark is not None), default=None)


def _read_labels(text: str | None) -> dict[str, str]:
    return json.loads(text) if text else {}


def _dump_labels(labels: Mapping[str, str]) -> str | None:
    return json.dumps(dict(labels), sort_keys=True) if labels else None


def _dump_principal(principal: Principal | None) -> str | None:
    if principal is None:
        return None
    return json.dumps(
        {
            "user_id": principal.user_id,
            "org_id": principal.org_id,
            "attributes": dict(principal.attributes),
        }
    )

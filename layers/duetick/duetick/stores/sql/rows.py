"""Between rows of the database and the words of the domain."""

import json
from dataclasses import replace
from functools import lru_cache
from typing import Literal, cast

from duetick.domain.creation import Made
from duetick.domain.occurrences import poisoned
from duetick.domain.policies import Overlap, Policies
from duetick.domain.schedule import IndexRow, Occurrence, Pause, Principal, Schedule, dump_input
from duetick.domain.states import Reason, State
from duetick.ports import Begun, Difference, Refused
from duetick.stores.sql.session import Params, Row, Value


def _text(value: object) -> str:
    return cast("str", value)


def _int(value: object) -> int:
    return cast("int", value)


def _maybe_int(value: object) -> int | None:
    return cast("int | None", value)


def _maybe_text(value: object) -> str | None:
    return cast("str | None", value)


@lru_cache(maxsize=1_000)
def dump_policies(policies: Policies) -> str | None:
    """`Policies.dump`, remembered: a claim writes the same ones for each of its rows."""
    return policies.dump()


def _labels(value: object) -> dict[str, str]:
    return json.loads(_text(value)) if value else {}


def dump_labels(schedule: Schedule | Occurrence) -> str | None:
    """Its labels as JSON, None where it has none."""
    return json.dumps(dict(schedule.labels), sort_keys=True) if schedule.labels else None


def read_index(row: Row) -> IndexRow:
    """A row of `index_columns`."""
    columns = cast("tuple[str, str, str, str | None, int, str, int, int]", tuple(row[:8]))
    return IndexRow(*columns, Policies.load(_maybe_text(row[8])))


def read_poisoned(row: Row) -> Occurrence:
    """A row of `poison_list`."""
    return poisoned(read_index(row), ValueError(_text(row[9])), _int(row[10]))


def index_params(row: IndexRow) -> dict[str, Value]:
    """The parameters of `index_upsert`."""
    return {
        "user_id": row.user_id,
        "key": row.key,
        "cron": row.cron,
        "timezone": row.timezone,
        "next_fire_at": row.next_fire_at,
        "flow": row.flow,
        "anchor": row.anchor,
        "timing": row.timing,
        "policies": row.policies.dump(),
    }


def _read_principal(value: object) -> Principal | None:
    return Principal(**json.loads(_text(value))) if value else None


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


def read_schedule(row: Row) -> Schedule:
    """A row of `schedule_columns`."""
    return Schedule(
        user_id=_text(row[0]),
        key=_text(row[1]),
        cron=_text(row[2]),
        flow=_text(row[3]),
        action=_text(row[4]),
        timezone=_maybe_text(row[5]),
        input=json.loads(_text(row[6])),
        principal=_read_principal(row[7]),
        enabled=bool(row[8]),
        policies=Policies.load(_maybe_text(row[9])),
        labels=_labels(row[10]),
        external_id=_maybe_text(row[11]),
        version=_int(row[12]),
        timing=_int(row[13]),
        anchor=_int(row[14]),
        created_at=_int(row[15]),
        updated_at=_int(row[16]),
        disabled_at=_maybe_int(row[17]),
        next_fire_at=_maybe_int(row[18]),
        last_run_at=_maybe_int(row[19]),
        defect=_maybe_text(row[20]),
        runs=_int(row[21]),
        pause=Pause.load(_maybe_text(row[22])),
    )


def schedule_params(schedule: Schedule) -> dict[str, Value]:
    """The parameters of `schedule_put`."""
    return {
        "user_id": schedule.user_id,
        "key": schedule.key,
        "cron": schedule.cron,
        "timezone": schedule.timezone,
        "flow": schedule.flow,
        "action": schedule.action,
        "input": dump_input(schedule.input),
        "principal": _dump_principal(schedule.principal),
        "enabled": int(schedule.enabled),
        "policies": schedule.policies.dump(),
        "labels": dump_labels(schedule),
        "external_id": schedule.external_id,
        "pause": schedule.pause.dump() if schedule.pause else None,
        "version": schedule.version,
        "timing": schedule.timing,
        "anchor": schedule.anchor,
        "created_at": schedule.created_at,
        "updated_at": schedule.updated_at,
        "disabled_at": schedule.disabled_at,
    }


def read_occurrence(row: Row) -> Occurrence:
    """A row of `occurrence_columns`."""
    return Occurrence(
        user_id=_text(row[0]),
        key=_text(row[1]),
        cron=_text(row[2]),
        timezone=_maybe_text(row[3]),
        nominal_at=_int(row[4]),
        fence=_int(row[5]),
        origin=_text(row[6]),
        id=_text(row[7]),
        flow=_text(row[8]),
        state=State(_text(row[9])),
        reason=Reason(_text(row[10])) if row[10] else None,
        due_at=_int(row[11]),
        attempts=_int(row[12]),
        priority=_int(row[13]),
        lease_until=_maybe_int(row[14]),
        timing=_int(row[15]),
        policies=Policies.load(_maybe_text(row[16])),
        range_end=_maybe_int(row[17]),
        count=_int(row[18]),
        error=_maybe_text(row[19]),
        correlation_id=_maybe_text(row[20]),
        idempotency_key=_maybe_text(row[21]),
        labels=_labels(row[22]),
        created_at=_int(row[23]),
        begun_at=_maybe_int(row[24]),
        updated_at=_int(row[25]),
    )


def read_begin(row: Row) -> Begun | Refused:
    """A verdict, then `occurrence_columns` and `schedule_columns`, null where there is none."""
    if row[0] == "unknown":
        return Refused("unknown")
    held = read_occurrence(row[1:27])
    if row[0] == "begun":
        record = None if row[27] is None else read_schedule(row[27:])
        return Begun(held, record and replace(record, last_run_at=held.begun_at))
    verdict = cast('Literal["stale", "duplicate", "in_progress", "cancelled"]', row[0])
    return Refused(verdict, held.state, held.reason)


def identity_params(occurrence: Occurrence) -> dict[str, Value]:
    """What names an occurrence."""
    return {
        "user_id": occurrence.user_id,
        "key": occurrence.key,
        "nominal_at": occurrence.nominal_at,
        "origin": occurrence.origin,
    }


def move_params(occurrence: Occurrence) -> dict[str, Value]:
    """The parameters of `occurrence_move`: what a transition may change."""
    return identity_params(occurrence) | {
        "state": occurrence.state,
        "reason": occurrence.reason,
        "due_at": occurrence.due_at,
        "attempts": occurrence.attempts,
        "fence": occurrence.fence,
        "lease_until": occurrence.lease_until,
        "exclusive": int(occurrence.policies.overlap is not Overlap.ALLOW),
        "policies": dump_policies(occurrence.policies),
        "error": storable(occurrence.error),
        "begun_at": occurrence.begun_at,
        "updated_at": occurrence.updated_at,
    }


def occurrence_params(occurrence: Occurrence) -> Params:
    """The parameters of `occurrence_insert`. A claim does this for each row: one dict, at once."""
    return {
        "user_id": occurrence.user_id,
        "key": occurrence.key,
        "cron": occurrence.cron,
        "timezone": occurrence.timezone,
        "nominal_at": occurrence.nominal_at,
        "fence": occurrence.fence,
        "origin": occurrence.origin,
        "id": occurrence.id,
        "flow": occurrence.flow,
        "state": occurrence.state.value,
        "reason": occurrence.reason,
        "due_at": occurrence.due_at,
        "attempts": occurrence.attempts,
        "priority": occurrence.priority,
        "lease_until": occurrence.lease_until,
        "exclusive": int(occurrence.policies.overlap is not Overlap.ALLOW),
        "timing": occurrence.timing,
        "policies": dump_policies(occurrence.policies),
        "range_end": occurrence.range_end,
        "count": occurrence.count,
        "error": occurrence.error,
        "correlation_id": occurrence.correlation_id,
        "idempotency_key": occurrence.idempotency_key,
        "labels": dump_labels(occurrence),
        "created_at": occurrence.created_at,
        "begun_at": occurrence.begun_at,
        "updated_at": occurrence.updated_at,
    }


def read_difference(row: Row) -> Difference:
    """A row of `differences`."""
    problem = cast('Literal["missing", "stray", "stale", "unreadable"]', row[2])
    return Difference(_text(row[0]), _text(row[1]), problem)


def read_version(row: Row) -> tuple[int, int]:
    """The row of `schema_version`."""
    return _int(row[0]), _int(row[1])


def read_number(value: object) -> int:
    """A count, or a clock."""
    return _int(value)


def storable(text: str | None) -> str | None:
    """A text that came from anywhere, such as an error, without what databases refuse to keep."""
    if text is None:
        return None
    return text.replace("\0", "\N{REPLACEMENT CHARACTER}").encode(errors="replace").decode()


def read_made(row: Row) -> Made:
    """A row of `creation_get`."""
    return Made(_text(row[0]), _int(row[1]), _maybe_int(row[2]))


def read_mark(value: object) -> int | None:
    """A high-water mark, None where nothing was claimed yet."""
    return _maybe_int(value)

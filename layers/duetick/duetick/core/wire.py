"""How things look in JSON: on the API, and between tick and dispatch. Names are camelCase."""

import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Final

from duetick.domain.errors import InvalidSchedule
from duetick.domain.pausing import is_paused, resumed
from duetick.domain.policies import DAY, LAST_INSTANT, Policies
from duetick.domain.redaction import redact_text
from duetick.domain.schedule import Json, Occurrence, Pause, Schedule

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
WRITABLE: Final = (
    "cron", "timezone", "flow", "action", "input", "enabled", "policies", "labels", "externalId",
)  # fmt: skip


@lru_cache(1_024)
def iso(instant: int | None) -> str | None:
    """Milliseconds since the epoch as UTC text: 2026-12-01T09:00:00Z."""
    if instant is None:
        return None
    moment = EPOCH + timedelta(milliseconds=instant)
    text = moment.isoformat(timespec="milliseconds" if instant % 1_000 else "seconds")
    return text.replace("+00:00", "Z")


def instant(name: str, value: Json) -> int | None:
    """What `iso` wrote, or milliseconds; None where there is none."""
    if value is None:
        return None
    if isinstance(value, int) and 0 <= value <= LAST_INSTANT and not isinstance(value, bool):
        return value
    try:
        moment = datetime.fromisoformat(str(value))
    except ValueError:
        moment = None
    if moment is not None and moment.tzinfo is not None:
        told = (moment - EPOCH) // timedelta(milliseconds=1)
        if 0 <= told <= LAST_INSTANT:
            return told
    raise InvalidSchedule(
        name, f"expected a time like 2026-12-01T09:00:00Z, got {str(value)[:40]!r}."
    )


def read_object(text: str | bytes | None) -> dict[str, Json]:
    """A JSON object; an empty, unreadable or other body counts as {}."""
    try:
        value = json.loads(text or "{}")
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def require_object(text: str) -> dict[str, Json]:
    """A JSON object; raise InvalidSchedule where it is none."""
    try:
        value = json.loads(text)
    except ValueError as problem:
        raise InvalidSchedule("body", f"is not JSON: {problem}.") from None
    except RecursionError:
        raise InvalidSchedule("body", "is nested too deeply.") from None
    if not isinstance(value, dict):
        raise InvalidSchedule("body", f"expected a JSON object, got {type(value).__name__}.")
    return value


def camel(name: str) -> str:
    """next_fire_at as nextFireAt."""
    first, *rest = name.split("_")
    return first + "".join(part.capitalize() for part in rest)


def snake(name: str) -> str:
    """What `camel` was given."""
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)


def schedule_json(given: Schedule, now: int = 0) -> dict[str, Json]:
    """A schedule as its owner sees it: as it was written, its pause apart."""
    schedule = resumed(given) if given.pause else given
    paused = is_paused(given, now)
    return {
        "key": schedule.key,
        "cron": schedule.cron,
        "timezone": schedule.timezone,
        "flow": schedule.flow,
        "action": schedule.action,
        "input": schedule.input,
        "enabled": not paused,
        "paused": _pause_json(given.pause) if given.pause and paused else None,
        "policies": _policies_json(schedule.policies),
        "labels": dict(schedule.labels),
        "externalId": schedule.external_id,
        "version": schedule.version,
        "createdAt": iso(schedule.created_at),
        "updatedAt": iso(schedule.updated_at),
        "nextFireAt": iso(schedule.next_fire_at),
        "lastRunAt": iso(schedule.last_run_at),
        "runs": schedule.runs,
        "defect": schedule.defect,
    }


def _pause_json(pause: Pause) -> dict[str, Json]:
    return {"since": iso(pause.since), "note": pause.note, "until": iso(pause.until)}


def definition_json(schedule: Schedule) -> dict[str, Json]:
    """As much of it as `read_schedule` takes."""
    shown = schedule_json(schedule)
    return {name: shown[name] for name in WRITABLE}


def static_json(key: str, schedule: Schedule) -> dict[str, Json]:
    """A static schedule as its flow declares it."""
    return {
        "id": key,
        "cron": schedule.cron,
        "timezone": schedule.timezone,
        "action": schedule.action,
        "input": schedule.input,
        "policies": _policies_json(schedule.policies),
    }


def _policies_json(policies: Policies) -> dict[str, Json]:
    window: dict[str, Json] = {
        "startsAt": iso(policies.starts_at),
        "endsAt": iso(policies.ends_at),
    }
    return _dataclass_json(policies) | window


def _read_policies(given: Mapping[str, Json]) -> Policies:
    values = _snake_keys("policies", given, _policies_json(Policies()))
    for name in ("starts_at", "ends_at"):
        if name in values:
            values[name] = instant(f"policies.{camel(name)}", values[name])
    try:
        return Policies.of(values)
    except InvalidSchedule as problem:
        raise InvalidSchedule(camel(problem.field), problem.problem) from None


def _dataclass_json(value: object) -> dict[str, Json]:
    if not is_dataclass(value):
        raise TypeError(value)
    pairs = ((camel(f.name), getattr(value, f.name)) for f in fields(value))
    return {name: _dataclass_json(v) if is_dataclass(v) else v for name, v in pairs}


def read_schedule(user_id: str, key: str, body: Mapping[str, Json]) -> Schedule:
    """The schedule that a body asks for; raise InvalidSchedule naming the field that is wrong."""
    for name in body:
        if name not in WRITABLE:
            known = ", ".join(WRITABLE)
            raise InvalidSchedule(str(name)[:40], f"is not a field; the fields are {known}.")
    policies, labels = body.get("policies") or {}, body.get("labels") or {}
    if not isinstance(policies, dict) or not isinstance(labels, dict):
        raise InvalidSchedule("policies", "and labels are objects.")
    return Schedule(
        user_id=user_id,
        key=key,
        cron=_text(body, "cron"),
        flow=_text(body, "flow"),
        action=_text(body, "action"),
        timezone=_text(body, "timezone") if body.get("timezone") is not None else None,
        input=body.get("input"),
        enabled=_enabled(body),
        policies=_read_policies(policies),
        labels={str(name): str(value) for name, value in labels.items()},
        external_id=_text(body, "externalId") if body.get("externalId") is not None else None,
    )


def _snake_keys(
    field: str, given: Mapping[str, Json], known: Mapping[str, Json]
) -> dict[str, Json]:
    """The names of the domain; raise InvalidSchedule where one is none of the API's."""
    values: dict[str, Json] = {}
    for name, value in given.items():
        if name not in known:
            names = ", ".join(known)
            raise InvalidSchedule(field, f"{name[:40]!r} is not known; known are {names}.")
        inner = known[name]
        values[snake(name)] = (
            _snake_keys(f"{field}.{name}", value, inner)
            if isinstance(value, dict) and isinstance(inner, dict)
            else value
        )
    return values


def _text(body: Mapping[str, Json], name: str) -> str:
    value = body.get(name)
    if not isinstance(value, str):
        raise InvalidSchedule(name, f"expected text, got {type(value).__name__}.")
    if not value:
        raise InvalidSchedule(name, "must not be empty.")
    return value


def _enabled(body: Mapping[str, Json]) -> bool:
    value = body.get("enabled", True)
    if not isinstance(value, bool):
        raise InvalidSchedule("enabled", f"expected true or false, got {type(value).__name__}.")
    return value


def occurrence_json(occurrence: Occurrence) -> dict[str, Json]:
    """One line of a schedule's history."""
    return {
        "id": occurrence.id,
        "nominalFireTime": iso(occurrence.nominal_at),
        "origin": occurrence.origin,
        "state": occurrence.state,
        "reason": occurrence.reason,
        "attempts": occurrence.attempts,
        "until": iso(occurrence.range_end),
        "count": occurrence.count,
        "error": redact_text(occurrence.error),
        "begunAt": iso(occurrence.begun_at),
        "updatedAt": iso(occurrence.updated_at),
    }


def delivery_json(occurrence: Occurrence) -> dict[str, Json]:
    """What is sent of an occurrence: a tick's under its lease, a run by hand under its key."""
    key = None if occurrence.fence else occurrence.idempotency_key
    once: dict[str, Json] = {"idempotencyKey": key, "idempotencyWindow": DAY} if key else {}
    return once | {
        "userId": occurrence.user_id,
        "key": occurrence.key,
        "nominalFireTime": iso(occurrence.nominal_at),
        "origin": occurrence.origin,
        "fence": occurrence.fence,
        "occurrence": occurrence.id,
        "cron": occurrence.cron,
        "timezone": occurrence.timezone,
        "timing": occurrence.timing,
    }

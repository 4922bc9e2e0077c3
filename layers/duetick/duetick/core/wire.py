"""The JSON of the API, and of deliveries from tick to dispatch. Names are camelCase."""

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Final, NoReturn, TypeAlias

from duetick.core.correlation import tick_id
from duetick.core.log_lines import NEVER_ENDED, explain_lost, loss_in_words
from duetick.domain.ending import done_since, state_of
from duetick.domain.errors import Flaw, InvalidSchedule, kind_of
from duetick.domain.failure_hooks import origin_of_hook
from duetick.domain.failures import Event, Failure, failure_of, without_operator
from duetick.domain.group_pauses import NO_PAUSES, GroupPause, Pauses
from duetick.domain.limits import Limit
from duetick.domain.occurrence import Death
from duetick.domain.pausing import is_paused, resume
from duetick.domain.policies import DAY, LAST_INSTANT, Policies
from duetick.domain.schedule import Json, Occurrence, Pause, Principal, Record, Schedule
from duetick.domain.states import WAITING, Reason
from duetick.ports import Deliverable

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
FAILED: Final = "The action failed."
"""The error that a user reads if the action chose no message."""

LARGEST_BODY: Final = 256 * 1024
"""The most bytes of a request body."""
MILLISECONDS: Final = "[0-9]{9,20}"
"""A number that counts milliseconds. One of eight digits is a date: 20261201."""

_Link: TypeAlias = tuple["_Link", str | int] | None
"""The place of a part in a value: the place of its parent, and its name or number in it."""

WRITABLE: Final = (
    "cron", "timezone", "flow", "action", "input", "enabled", "policies", "labels", "externalId",
    "principal",
)  # fmt: skip


@lru_cache(1_024)
def iso(instant: int | None) -> str | None:
    """Return milliseconds since the epoch as UTC text: 2026-12-01T09:00:00Z."""
    if instant is None:
        return None
    moment = EPOCH + timedelta(milliseconds=instant)
    text = moment.isoformat(timespec="milliseconds" if instant % 1_000 else "seconds")
    return text.replace("+00:00", "Z")


def instant(name: str, value: Json) -> int | None:
    """Return the milliseconds of a text of `iso`, or of a number; None for None."""
    if value is None:
        return None
    if isinstance(value, int) and 0 <= value <= LAST_INSTANT and not isinstance(value, bool):
        return value
    try:
        moment = datetime.fromisoformat(str(value))
    except ValueError:
        moment = None
    if moment is not None and moment.tzinfo is not None:
        found = (moment - EPOCH) // timedelta(milliseconds=1)
        if 0 <= found <= LAST_INSTANT:
            return found
    got = repr(value[:40]) if isinstance(value, str) else kind_of(value)
    wanted = f"expected a time like 2026-12-01T09:00:00Z, got {got}."
    raise InvalidSchedule(name, wanted, "invalid_time")


def moment(name: str, value: Json) -> int | None:
    """Return an instant as `instant` does, also of milliseconds that are written as text."""
    if isinstance(value, str) and re.fullmatch(MILLISECONDS, value):
        return instant(name, int(value))
    return instant(name, value)


def is_too_large(body: str) -> bool:
    """Return True if the body has more bytes than are read."""
    return len(body.encode(errors="surrogatepass")) > LARGEST_BODY


def read_object(text: str | bytes | None) -> dict[str, Json]:
    """Return a JSON object; {} if the body is empty, unreadable or something else."""
    try:
        value = json.loads(text or "{}")
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def require_object(text: str) -> dict[str, Json]:
    """Return a JSON object. Raises InvalidSchedule if the text is none."""
    value = require_json(text, "the body")
    if not isinstance(value, dict):
        wanted = f"The body is {kind_of(value)}, and has to be a JSON object."
        raise InvalidSchedule((), wanted, "wrong_type")
    return value


def require_json(text: str, name: str) -> Json:
    """Return a JSON value. Raises InvalidSchedule if the text is none, or repeats a key.

    `name` names the text in the message.
    """
    doubled: list[tuple[dict[str, Json], list[str]]] = []

    def build(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
        found = dict(pairs)
        if len(found) < len(pairs):
            times = Counter(key for key, _ in pairs)
            doubled.append((found, [key for key, count in times.items() if count > 1]))
        return found

    try:
        value: Json = json.loads(text, object_pairs_hook=build, parse_constant=_refuse_number)
    except json.JSONDecodeError as problem:
        where = f"look at line {problem.lineno}, column {problem.colno}."
        raise _not_json(name, where) from None
    except RecursionError:
        raise _not_json(name, "it is nested too deeply.") from None
    except ValueError:
        raise _not_json(name, "it holds a number that JSON does not know.") from None
    if doubled:
        why = f"comes twice in {name}; leave one of them out."
        paths = _paths(value, {id(found): keys for found, keys in doubled})
        raise InvalidSchedule.of(Flaw(path, "duplicate_key", why) for path in paths)
    return value


def _paths(value: Json, keys: Mapping[int, Sequence[str]]) -> Iterator[tuple[str | int, ...]]:
    """Yield the path of each key, in one walk. The keys are listed by the `id` of their object."""
    pending: list[tuple[_Link, Json]] = [(None, value)]
    while pending:
        link, part = pending.pop()
        yield from ((*_path(link), key) for key in keys.get(id(part), ()))
        parts: Iterable[tuple[str | int, Json]] = ()
        if isinstance(part, dict):
            parts = part.items()
        elif isinstance(part, list):
            parts = enumerate(part)
        pending += reversed([((link, name), inner) for name, inner in parts])


def _path(link: _Link) -> Sequence[str | int]:
    names = list[str | int]()
    while link:
        link, name = link
        names.append(name)
    return names[::-1]


def _not_json(name: str, why: str) -> InvalidSchedule:
    return InvalidSchedule((), f"{name[0].upper()}{name[1:]} is not JSON: {why}", "not_json")


def _refuse_number(text: str) -> NoReturn:
    raise ValueError(text)


def camel(name: str) -> str:
    """Return a name in camelCase: nextFireAt for next_fire_at."""
    first, *rest = name.split("_")
    return first + "".join(part.capitalize() for part in rest)


def snake(name: str) -> str:
    """Return a name in snake_case: next_fire_at for nextFireAt."""
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)


def in_json(flaw: Flaw) -> Flaw:
    """Return the flaw for an answer: our names in camelCase, and without the advice.

    Names inside an input or a day map, names of labels and unknown fields stay as the caller wrote
    them.
    """
    path = flaw.path
    if flaw.code != "unknown_field":
        ours = path[:1] if path[:1] in (("input",), ("labels",), ("cron",)) else path
        named = (camel(part) if isinstance(part, str) else part for part in ours)
        path = (*named, *path[len(ours) :])
    return Flaw(path, flaw.code, flaw.problem)


def schedule_json(given: Record, now: int = 0, pauses: Pauses = NO_PAUSES) -> dict[str, Json]:
    """Return a schedule as its owner wrote it. Its pause is a separate field, and so is the pause
    of a group that holds it.
    """
    schedule = resume(given) if given.pause else given
    paused = is_paused(given, now)
    return {
        "key": schedule.key,
        "state": state_of(given, now),
        "cron": schedule.cron,
        "timezone": schedule.timezone,
        "flow": schedule.flow,
        "action": schedule.action,
        "input": schedule.input,
        "enabled": not paused,
        "paused": _pause_json(given.pause) if given.pause and paused else None,
        "heldBy": held_json(pauses.holding(given.user_id, given.flow, now)),
        "policies": policies_json(schedule.policies),
        "labels": dict(schedule.labels),
        "externalId": schedule.external_id,
        "version": schedule.version,
        "createdAt": iso(schedule.created_at),
        "updatedAt": iso(schedule.updated_at),
        "nextFireAt": iso(schedule.next_fire_at),
        "lastRunAt": iso(schedule.last_run_at),
        "doneAt": iso(done_since(given, now)),
        "runs": schedule.runs,
        "defect": schedule.defect,
    }


def _pause_json(pause: Pause) -> dict[str, Json]:
    return {"since": iso(pause.since), "note": pause.note, "until": iso(pause.until)}


def held_json(pause: GroupPause | None) -> dict[str, Json] | None:
    """Return the pause of a group that holds a schedule, without its note: operators read that."""
    if pause is None:
        return None
    return {"scope": pause.scope, "since": iso(pause.since), "until": iso(pause.until)}


def definition_json(schedule: Schedule) -> dict[str, Json]:
    """Return the fields of a schedule that `read_draft` takes."""
    shown = schedule_json(Record.of(schedule)) | {"principal": principal_json(schedule.principal)}
    return {name: shown[name] for name in WRITABLE}


def principal_json(one: Principal | None) -> Json:
    """Return the principal of a schedule, if the application named one."""
    if one is None:
        return None
    return {"userId": one.user_id, "orgId": one.org_id, "attributes": dict(one.attributes)}


def static_json(key: str, schedule: Schedule) -> dict[str, Json]:
    """Return a static schedule as its flow declares it."""
    return {
        "id": key,
        "cron": schedule.cron,
        "timezone": schedule.timezone,
        "action": schedule.action,
        "input": schedule.input,
        "policies": policies_json(schedule.policies),
    }


def policies_json(policies: Policies) -> dict[str, Json]:
    """Return the policies as the API shows them. Their names are the known ones of a request."""
    window: dict[str, Json] = {
        "startsAt": iso(policies.starts_at),
        "endsAt": iso(policies.ends_at),
    }
    return _dataclass_json(policies) | window


def _dataclass_json(value: object) -> dict[str, Json]:
    if not is_dataclass(value):
        raise TypeError(value)
    pairs = ((camel(f.name), getattr(value, f.name)) for f in fields(value))
    return {name: _dataclass_json(v) if is_dataclass(v) else v for name, v in pairs}


def group_pause_json(one: GroupPause, now: int) -> dict[str, Json]:
    """Return a pause of a group as JSON, for operators."""
    return {
        "scope": one.scope,
        "since": iso(one.since),
        "until": iso(one.until),
        "holds": one.covers(now),
        "note": _redact(one.note) or "",
        "by": one.by,
        "resumedAt": iso(one.resumed_at),
        "resumedBy": one.resumed_by,
    }


def limit_json(one: Limit, now: int) -> dict[str, Json]:
    """Return a limit as JSON, for operators, with the number that it lets run now."""
    return {
        "scope": one.scope,
        "parallel": one.parallel,
        "rate": one.rate,
        "per": one.per,
        "running": len(one.live(now)),
        "begun": one.in_window(now).counted,
        "fullUntil": iso(one.free_at(now)) if one.room(now) < 1 else None,
        "note": _redact(one.note) or "",
        "by": one.by,
        "changedAt": iso(one.changed_at),
    }


def occurrence_json(
    occurrence: Occurrence, failures: Iterable[Failure], *, operator: bool
) -> dict[str, Json]:
    """Return an occurrence as a line of the history, with the error that its reader may see."""
    o = occurrence
    labels: Json = dict(o.labels)
    return {
        "id": o.id,
        "nominalFireTime": iso(o.nominal_at),
        "origin": o.origin,
        "state": o.state,
        "reason": o.reason,
        "attempts": o.attempts,
        "labels": _without_secrets(labels) if operator and labels else labels,
        "until": iso(o.range_end),
        "count": o.count,
        "error": explain_lost(o) or _error(o.error, o.told, operator=operator),
        "failures": [failure_json(one, operator=operator) for one in failures],
        "failureHook": origin_of_hook(o),
        "death": death_json(o.death, operator=operator) if o.death else None,
        "nextAttemptAt": iso(o.due_at) if o.state in WAITING and o.due_at <= LAST_INSTANT else None,
        "begunAt": iso(o.begun_at),
        "updatedAt": iso(o.updated_at),
    }


def death_json(one: Death, *, operator: bool) -> dict[str, Json]:
    """Return the death that a failure hook tells of, with the error that its reader may see."""
    lost = loss_in_words(one.attempts) if one.reason is Reason.LOST else None
    return {
        "occurrence": one.occurrence,
        "origin": one.origin,
        "reason": one.reason,
        "attempts": one.attempts,
        "at": iso(one.at),
        "error": lost or _error(one.error, one.told, operator=operator),
    }


def event_json(one: Event, *, operator: bool) -> dict[str, Json]:
    """Return a transition, with the note that its reader may see: of a failure, its error."""
    failed = failure_of(one)
    note: Json = _redact(one.note) if operator else without_operator(one.note)
    if failed and not failed.lost:
        note = failure_json(failed, operator=operator)["error"]
    return {"at": iso(one.at), "before": one.before, "after": one.after, "note": note}


def failure_json(one: Failure, *, operator: bool) -> dict[str, Json]:
    """Return a failed attempt, with the error that its reader may see."""
    error = NEVER_ENDED if one.lost else _error(one.error or FAILED, one.told, operator=operator)
    return {"attempt": one.attempt, "at": iso(one.at), "error": error}


def _error(error: str | None, told: str | None, *, operator: bool) -> str | None:
    if error is None:
        return None
    return _redact(error if operator else told) or FAILED


def _without_secrets(value: Json) -> Json:
    from duetick.domain.redaction import redact

    return redact(value)


def _redact(text: str | None) -> str | None:
    """Return the text without secrets. Redaction is loaded here: a delivery does not need it."""
    from duetick.domain.redaction import redact_text

    return redact_text(text)


def delivery_json(occurrence: Deliverable) -> dict[str, Json]:
    """Return the body of a delivery. A tick's has the lease, a run by hand its key."""
    leased = occurrence if isinstance(occurrence, Occurrence) else None
    key = None if leased else occurrence.idempotency_key
    once: dict[str, Json] = {"idempotencyKey": key, "idempotencyWindow": DAY} if key else {}
    named: dict[str, Json] = {"tick": tick_id()} if tick_id() else {}
    return {
        **once,
        **named,
        "userId": occurrence.user_id,
        "key": occurrence.key,
        "nominalFireTime": iso(occurrence.nominal_at),
        "origin": occurrence.origin,
        "fence": leased.fence if leased else 0,
        "occurrence": leased.id if leased else "",
        "cron": occurrence.cron,
        "timezone": occurrence.timezone,
    }

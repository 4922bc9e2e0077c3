"""From a request to a schedule. One refusal lists everything that is wrong with it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, TypeAlias, cast

from duetick.core.wire import (
    WRITABLE,
    camel,
    definition_json,
    in_json,
    instant,
    policies_json,
    snake,
)
from duetick.domain.errors import Flaw, InvalidSchedule, Refusal, kind_of, refusals_of
from duetick.domain.expression import from_day_map
from duetick.domain.pausing import resume
from duetick.domain.policies import Policies
from duetick.domain.schedule import Json, Principal, Schedule

Check: TypeAlias = Callable[[Schedule], Sequence[Refusal]]
ReadTime: TypeAlias = Callable[[str, Json], int | None]

GivenPolicies: TypeAlias = Policies | Mapping[str, object]
"""Policies as Python code gives them: an object, or a mapping with the names of JSON."""

GivenCron: TypeAlias = str | Mapping[str, object]
"""A cron as Python code gives it: its text, or a day map as JSON has it."""

UNREADABLE: Final[Mapping[str, str]] = {
    "cron": "?",
    "timezone": "?",
    "flow": "not-read",
    "action": "not-read",
}
"""The texts in a draft for fields that could not be read. Checks refuse them, so they leave out all
further checks of these fields.
"""

_PARTED: Final = (("cron",), ("principal",))
"""The fields whose parts are refused one by one."""

TIMES: Final[tuple[str, ...]] = ("startsAt", "endsAt")


@dataclass(frozen=True, slots=True)
class Draft:
    """The readable part of a schedule, and the refusals of the rest.

    `doubts` are contradictions between two fields that are readable by themselves. They count only
    if nothing else is wrong with these fields.
    """

    readable: Schedule
    refusals: Sequence[Refusal] = ()
    doubts: Sequence[Refusal] = ()

    def with_defaults(self, complete: Callable[[Schedule], Schedule]) -> "Draft":
        """Return the draft with the defaults of its action. A default may contradict a choice."""
        try:
            return replace(self, readable=complete(self.readable))
        except Refusal as refusal:
            usual = replace(self.readable, policies=Policies())
            found = [*self.refusals, refusal]
            return replace(self, readable=complete(usual), refusals=found)

    def schedule(self, check: Check) -> Schedule:
        """Return the schedule. If anything is wrong, raise it, with the refusals of the check."""
        if self.refusals or self.doubts:
            refuse_once([*self.refusals, *check(self.readable), *self.doubts])
        return self.readable


def refuse_once(found: Sequence[Refusal]) -> None:
    """Raise the refusals, with the first flaw of each field. Fields have their names in JSON.

    If days of a day map, or parts of a principal, have flaws, the refusal of the whole field is
    left out.
    """
    first: dict[tuple[str | int, ...], Flaw] = {}
    for flaw in (flaw for refusal in found for flaw in refusal.flaws):
        path = in_json(flaw).path
        if not any(path[:size] in first for size in range(len(path) + 1)) and not (
            path in _PARTED and any(known[:1] == path for known in first)
        ):
            first[path] = flaw
    if first:
        raise found[0] if len(first) == 1 else InvalidSchedule.of(first.values())


def draft(
    user_id: str, key: str, fields: Mapping[str, Any], found: Sequence[Refusal] = ()
) -> Draft:
    """Return the draft of these fields. A flaw of one field does not hide a flaw of another."""
    try:
        return Draft(Schedule(user_id=user_id, key=key, **fields), found)
    except Refusal as refusal:
        wrong = {flaw.path[0] for flaw in refusal.flaws}
        if "user_id" in wrong:
            raise
        found = [*found, refusal]
    kept = {name: value for name, value in fields.items() if name not in wrong}
    kept |= {name: text for name, text in UNREADABLE.items() if name in wrong}
    named = "key" if "key" in wrong else key
    return Draft(Schedule(user_id=user_id, key=named, **kept), found)


def read_draft(
    user_id: str, key: str, body: Mapping[str, Json], refusals: Sequence[Refusal] = ()
) -> Draft:
    """Return the draft of a request body."""
    fields: dict[str, Any] = dict(UNREADABLE)

    def read(name: str) -> None:
        fields[snake(name)] = _READERS[name](name, body.get(name))

    known = ", ".join(WRITABLE)
    unknown = [
        InvalidSchedule((name,), f"is not a field; the fields are {known}.", "unknown_field")
        for name in body
        if name not in WRITABLE
    ]
    wrong = refusals_of(partial(read, name) for name in _READERS)
    fields["policies"], unfit, doubts = _policies(body.get("policies"), _text_time)
    made = draft(user_id, key, fields, [*refusals, *unknown, *wrong, *unfit])
    return replace(made, doubts=doubts)


def merge(body: Mapping[str, Json], patch: Mapping[str, Json]) -> dict[str, Json]:
    """Return a definition with the fields of a patch; policies and labels are merged by name,
    and so are the fields of `retry`.

    The value null resets a field to its default.
    """
    result = dict(body)
    for name, value in patch.items():
        inner = result.get(name)
        if value is None:
            result.pop(name, None)
        elif name in ("policies", "labels") and isinstance(value, dict) and isinstance(inner, dict):
            result[name] = _merge_names(inner, value)
        else:
            result[name] = value
    return result


def _merge_names(inner: Mapping[str, Json], patch: Mapping[str, Json]) -> dict[str, Json]:
    both = {**inner, **patch}
    for name, value in patch.items():
        before = inner.get(name)
        if isinstance(value, dict) and isinstance(before, dict):
            both[name] = _merge_names(before, value)
    return {name: value for name, value in both.items() if value is not None}


def read_policies(given: GivenPolicies | None) -> Policies:
    """Return policies that a flow or an agent gave. Raise a refusal of all their mistakes."""
    made, found, doubts = draft_policies(given)
    refuse_once([*found, *doubts])
    return made


def draft_policies(given: object) -> tuple[Policies, list[Refusal], list[Refusal]]:
    """See `_policies`. A mapping may have Python's names too, and milliseconds for times."""
    if isinstance(given, Policies):
        return given, [], []
    twice: list[Refusal] = []
    if isinstance(given, Mapping):
        twice = _twice(list(map(str, given)))
        given = {camel(str(name)): value for name, value in given.items()}
    made, found, doubts = _policies(cast("Json", given), instant)
    return made, [*twice, *found], doubts


def _twice(names: Sequence[str]) -> list[Refusal]:
    """Return the refusals of policies that are given under two names."""
    first: dict[str, str] = {}
    for name in names:
        first.setdefault(camel(name), name)
    return [
        InvalidSchedule(
            ("policies", name),
            f"is given twice, as {first[camel(name)]} and {name}; leave one of them out.",
            "duplicate_key",
        )
        for name in names
        if first[camel(name)] != name
    ]


def carry_over(current: Schedule, patch: Mapping[str, Json], usual: Policies) -> dict[str, Json]:
    """Return the definition into which a patch is merged.

    If the patch names another action, the new action's defaults replace the policies that equal the
    defaults of the action before (`usual`): nobody chose those.
    """
    body = definition_json(current)
    if all(patch.get(name, body[name]) == body[name] for name in ("flow", "action")):
        return body
    defaults = policies_json(usual)
    own = policies_json(resume(current).policies)
    return body | {"policies": {n: value for n, value in own.items() if value != defaults[n]}}


def _text_time(name: str, value: Json) -> int | None:
    return instant(name, _maybe_text(name, value))


def _text(name: str, value: Json) -> str:
    if value is None:
        raise InvalidSchedule(name, "is missing.", "missing")
    if not isinstance(value, str):
        raise InvalidSchedule(name, f"expected text, got {kind_of(value)}.", "wrong_type")
    if not value:
        raise InvalidSchedule(name, "must not be empty.", "blank")
    return value


def read_cron(name: str, value: object) -> str:
    """Return the text of a cron, which may be a day map. Raise a refusal that names each day."""
    if isinstance(value, Mapping):
        return from_day_map(value)
    return _text(name, cast("Json", value))


def draft_cron(given: GivenCron) -> tuple[str, list[Refusal]]:
    """Return a cron, a day map as its text, and the refusals of a map that cannot be read."""
    if not isinstance(given, Mapping):
        return given, []
    texts = [UNREADABLE["cron"]]
    found = refusals_of([lambda: texts.append(from_day_map(given))])
    return texts[-1], found


def _maybe_text(name: str, value: Json) -> str | None:
    return None if value is None else _text(name, value)


def _read_enabled(name: str, value: Json) -> bool:
    if value is None or isinstance(value, bool):
        return value is not False
    raise InvalidSchedule(name, f"expected true or false, got {kind_of(value)}.", "wrong_type")


def _object(name: str, value: Json) -> dict[str, Json]:
    if value is not None and not isinstance(value, dict):
        raise InvalidSchedule(name, f"expected an object, got {kind_of(value)}.", "wrong_type")
    return value or {}


def _principal(name: str, value: Json) -> Principal | None:
    """Read the principal of a schedule. Raise a refusal of everything that is wrong with it."""
    if value is None:
        return None
    given, read = _object(name, value), dict[str, Any]()
    readers = {"userId": _text, "orgId": _maybe_text, "attributes": _object}

    def read_one(field: str) -> None:
        read[snake(field)] = readers[field](f"{name}.{snake(field)}", given.get(field))

    known = f"is not a field; the fields are {', '.join(readers)}."
    unknown = [
        InvalidSchedule((name, field), known, "unknown_field")
        for field in given
        if field not in readers
    ]
    refuse_once([*unknown, *refusals_of(partial(read_one, field) for field in readers)])
    return Principal(**read)


def _input(_name: str, value: Json) -> Json:
    return value


def _policies(value: Json, read_time: ReadTime) -> tuple[Policies, list[Refusal], list[Refusal]]:
    """Return the readable policies, the refusals of the others, and the contradictions (doubts)."""
    given: list[dict[str, Json]] = []
    found = refusals_of([lambda: given.append(_object("policies", value))])
    known: dict[str, Json] = {}
    found += _unknown(("policies",), given[0] if given else {}, policies_json(Policies()), known)
    read: dict[str, Any] = {}

    def read_one(name: str) -> None:
        read[snake(name)] = _policy(name, known[name], read_time)

    found += refusals_of(partial(read_one, name) for name in known)
    made: list[Policies] = []
    doubts = refusals_of([lambda: made.append(Policies(**read))])
    if doubts:
        made.append(Policies(**{**read, "starts_at": None}))
    return made[0], found, doubts


def _policy(name: str, value: Json, read_time: ReadTime) -> object:
    """Read one policy by its name in JSON."""
    if name in TIMES:
        return read_time(f"policies.{name}", value)
    one = Policies.of(_snake_keys({name: value}))
    return getattr(one, snake(name))


def _unknown(
    path: tuple[str, ...],
    given: Mapping[str, Json],
    known: Mapping[str, Json],
    kept: dict[str, Json],
) -> list[Refusal]:
    """Return the refusals of unknown names. Put the other fields into `kept`."""
    found: list[Refusal] = []
    for name, value in given.items():
        inner = known.get(name)
        if name not in known:
            problem = f"is not known; known are {', '.join(known)}."
            found.append(InvalidSchedule((*path, name), problem, "unknown_field"))
        elif isinstance(value, dict) and isinstance(inner, dict):
            deeper: dict[str, Json] = {}
            kept[name] = deeper
            found += _unknown((*path, name), value, inner, deeper)
        else:
            kept[name] = value
    return found


def _snake_keys(given: Mapping[str, Json]) -> dict[str, Json]:
    """Return the fields under their names in the domain."""
    return {
        snake(name): _snake_keys(value) if isinstance(value, dict) else value
        for name, value in given.items()
    }


_READERS: Final[Mapping[str, Callable[[str, Json], object]]] = {
    "cron": read_cron,
    "timezone": _maybe_text,
    "flow": _text,
    "action": _text,
    "input": _input,
    "enabled": _read_enabled,
    "labels": _object,
    "externalId": _maybe_text,
    "principal": _principal,
}

"""The schedule as its user defines it, and the record that a store keeps."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import partial
from typing import Final, TypeAlias

from duetick.domain.errors import InvalidSchedule, check_all, kind_of
from duetick.domain.expression import check_zone, parse, sub_minute
from duetick.domain.identity import (
    check_external,
    check_name,
    check_schedule_key,
    schedule_id,
)
from duetick.domain.occurrence import (
    LATEST,
    Identity,
    IndexRow,
    Lease,
    Leased,
    NewOccurrence,
    Occurrence,
    ScheduleName,
)
from duetick.domain.policies import Policies

__all__ = [
    "DEFINED",
    "FLOW_USER",
    "HALF_A_PAIR",
    "LARGEST_INPUT",
    "LATEST",
    "Identity",
    "IndexRow",
    "Json",
    "Lease",
    "Leased",
    "NewOccurrence",
    "Occurrence",
    "Pause",
    "Principal",
    "Record",
    "Schedule",
    "ScheduleName",
    "check_pace",
    "check_timing",
    "dump_input",
]

Json: TypeAlias = bool | int | float | str | list["Json"] | dict[str, "Json"] | None

FLOW_USER: Final = "flow:"
"""The prefix of the user of a flow's static schedules. No authenticated user may have it."""

LARGEST_INPUT: Final = 64 * 1024
LARGEST_TEXTS: Final = 4 * 1024
"""The most bytes of all labels together, and of a principal."""

LONGEST_NOTE: Final = 500
HALF_A_PAIR: Final = "half of a character (a lone surrogate), which cannot be written as UTF-8."


@dataclass(frozen=True, slots=True)
class Principal:
    """The identity that an action runs as."""

    user_id: str
    org_id: str | None = None
    attributes: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.user_id:
            raise InvalidSchedule("principal.user_id", "must not be empty.", "blank")

    @property
    def texts(self) -> Sequence[object]:
        """All texts of the principal."""
        return [self.user_id, self.org_id or "", *self.attributes, *self.attributes.values()]


@dataclass(frozen=True, slots=True)
class Pause:
    """A time in which a schedule does not fire: its start, its note, its end.

    A pause without an end disables the schedule. A pause with an end moves the start of the
    schedule's window there; `starts_at` is the start of the window before.
    """

    since: int
    note: str = ""
    until: int | None = None
    starts_at: int | None = None

    def __post_init__(self) -> None:
        _check_kind("note", self.note, str)
        if len(self.note) > LONGEST_NOTE:
            raise InvalidSchedule(
                "note",
                f"has {len(self.note)} characters; {LONGEST_NOTE} are allowed.",
                "too_long",
            )
        _check_texts("note", [self.note])

    def holds(self, now: int) -> bool:
        """Return True if the pause is not over."""
        return self.until is None or now < self.until

    @property
    def end(self) -> int:
        """The instant at which the pause ends by itself; `LATEST` if it has no end."""
        return LATEST if self.until is None else self.until

    def dump(self) -> str:
        """Return the pause as compact JSON."""
        parts = [self.since, self.note, self.until, self.starts_at]
        return json.dumps(parts, separators=(",", ":"), ensure_ascii=False)

    @classmethod
    def load(cls, text: str | None) -> "Pause | None":
        """Return the pause that `dump` wrote, or None for no text."""
        return cls(*json.loads(text)) if text else None


@dataclass(frozen=True, slots=True)
class Schedule:
    """A schedule as its user defines it. It is checked when it is made."""

    user_id: str
    key: str
    cron: str
    flow: str
    action: str
    timezone: str | None = None
    input: Json = None
    principal: Principal | None = None
    enabled: bool = True
    policies: Policies = field(default_factory=Policies)
    labels: Mapping[str, str] = field(default_factory=dict)
    external_id: str | None = None
    pause: Pause | None = None

    def __post_init__(self) -> None:
        self.check()

    def check(self) -> None:
        """Raise an error that names every flaw of the fields.

        Cron and zone are not checked here: see `check_timing`. Neither flows nor the clock are
        known.
        """
        check_all(
            lambda: check_schedule_key(self.user_id, self.key),
            lambda: check_name("flow", self.flow),
            lambda: check_name("action", self.action),
            lambda: _check_input(self.input),
            lambda: _check_external(self.external_id),
            lambda: _check_kind("policies", self.policies, Policies),
            lambda: _check_labels(self.labels),
            lambda: _check_principal(self.principal),
        )

    @property
    def id(self) -> str:
        """The id: `user/key`."""
        return schedule_id(self.user_id, self.key)

    @property
    def times(self) -> tuple[object, ...]:
        """The fields that determine the fire times, besides `enabled`."""
        p = self.policies
        window = (p.starts_at, p.ends_at, p.max_runs)
        return (self.cron, self.timezone, p.gap, p.repeat, *window)

    @property
    def runs_as(self) -> Principal:
        """The named principal, else the owner. The owner of a static schedule is its flow."""
        return self.principal or Principal(self.user_id or f"{FLOW_USER}{self.flow}")

    @property
    def is_users(self) -> bool:
        """True if a user defines the schedule: the application named no principal for it."""
        owner = self.user_id
        return bool(owner) and self.principal is None and not owner.startswith(FLOW_USER)


DEFINED: Final = tuple(each.name for each in fields(Schedule))
"""The names of the fields that a user defines."""


@dataclass(frozen=True, slots=True)
class Record(Schedule):
    """A schedule as a store keeps it, with the store's fields. A read does not check it again.

    `version` counts the changes, `runs` the occurrences that have begun. The fire times are valid
    from `redefined_at` on. A `rate(…)` counts from `anchor`. If the row cannot be read, `defect`
    says why. A schedule that will never fire again is done since `done_at`. A purge looks at it at
    `purge_at`. A put that takes a schedule which fires more often than the tick comes answers with
    a `warning`; nobody keeps it.
    """

    version: int = 0
    redefined_at: int = 0
    anchor: int = 0
    created_at: int = 0
    updated_at: int = 0
    next_fire_at: int | None = None
    last_run_at: int | None = None
    defect: str | None = None
    runs: int = 0
    done_at: int | None = None
    purge_at: int | None = None
    warning: str | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        """Skip the check: a put has checked every record that a store keeps."""

    @classmethod
    def of(cls, schedule: Schedule) -> "Record":
        """Return a record as it is, and a definition as a record without a store's fields."""
        if isinstance(schedule, Record):
            return schedule
        return cls(**{name: getattr(schedule, name) for name in DEFINED})

    @property
    def used_up(self) -> bool:
        """True if the schedule has run as often as it may."""
        limit = self.policies.max_runs
        return limit is not None and self.runs >= limit

    def redefine(self, wanted: Schedule) -> "Record":
        """Return the record with another definition, which is checked."""
        if isinstance(wanted, Record):
            wanted.check()
        return replace(self, **{name: getattr(wanted, name) for name in DEFINED})

    def is_paused_by(self, wanted: Schedule) -> bool:
        """Return True if `wanted` disables the schedule and keeps its cron and zone.

        Cron and zone are not checked then: today's rules may refuse them, or they may be
        unreadable.
        """
        same = (self.cron, self.timezone) == (wanted.cron, wanted.timezone)
        return same and not wanted.enabled

    def defines(self, wanted: Schedule) -> bool:
        """Return True if `wanted` is exactly the same definition.

        In Python 1 equals True and 1.0; in JSON it equals neither.
        """
        alike = all(getattr(self, name) == getattr(wanted, name) for name in DEFINED)
        return alike and _spell(self.input) == _spell(wanted.input)


def _spell(value: Json) -> str:
    return json.dumps(value, sort_keys=True)


def check_timing(cron: str, timezone: str | None) -> None:
    """Raise a helpful error unless the expression and the zone can be read."""
    check_all(lambda: parse(cron), lambda: check_zone(timezone))


def check_pace(wanted: Schedule) -> None:
    """Raise InvalidSchedule if the schedule is a rate below a minute."""
    if sub_minute(wanted.cron):
        raise InvalidSchedule(
            "cron",
            f"{parse(wanted.cron)} is below a minute, and cron resolves to the minute: the tick "
            "runs once in each, and only a deployment with look-ahead can keep more. Write 60 "
            "seconds or more, for example: rate(60 seconds).",
            "below_a_minute",
        )


def _check_input(value: Json) -> None:
    if len(dump_input(value).encode()) > LARGEST_INPUT:
        raise InvalidSchedule(
            "input", f"larger than {LARGEST_INPUT // 1024} KB as JSON.", "too_large"
        )


def _check_external(text: str | None) -> None:
    if text is not None:
        check_external(text)


def _check_kind(name: str, value: object, kind: type) -> None:
    if not isinstance(value, kind):
        wanted = {"Mapping": "an object", "str": "text"}.get(kind.__name__, kind.__name__)
        raise InvalidSchedule(name, f"expected {wanted}, got {kind_of(value)}.", "wrong_type")


def _check_labels(labels: Mapping[str, str]) -> None:
    _check_kind("labels", labels, Mapping)
    if not labels:
        return
    check_all(*(partial(_check_label, name, text) for name, text in labels.items()))
    _check_texts("labels", [*labels, *labels.values()])


def _check_label(name: object, text: object) -> None:
    if not isinstance(name, str):
        raise InvalidSchedule("labels", f"its names are texts, got {kind_of(name)}.", "wrong_type")
    if not isinstance(text, str):
        wanted = f"expected text, got {kind_of(text)}."
        raise InvalidSchedule(("labels", name), wanted, "wrong_type")


def _check_texts(field: str, texts: Sequence[str]) -> None:
    """Raise InvalidSchedule unless every store can keep the texts beside the record."""
    try:
        size = sum(len(each.encode()) for each in texts)
    except UnicodeEncodeError:
        raise InvalidSchedule(field, f"holds {HALF_A_PAIR}", "character") from None
    if size > LARGEST_TEXTS:
        problem = f"has {size:,} bytes of text; {LARGEST_TEXTS:,} are allowed."
        raise InvalidSchedule(field, problem, "too_large")


def _check_principal(principal: Principal | None) -> None:
    if principal:
        for each in principal.texts:
            _check_kind("principal", each, str)
        _check_texts("principal", [str(each) for each in principal.texts])


def dump_input(value: Json) -> str:
    """Return the input as compact JSON. Raises InvalidSchedule if it is not JSON."""
    try:
        text = json.dumps(value, separators=(",", ":"), allow_nan=False, ensure_ascii=False)
        text.encode()  # a lone surrogate passes as JSON, and fails in every database
    except UnicodeEncodeError:
        raise InvalidSchedule("input", f"is not JSON: it holds {HALF_A_PAIR}", "not_json") from None
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidSchedule("input", f"is not JSON: {_explain(error)}", "not_json") from None
    return text


def _explain(error: Exception) -> str:
    if isinstance(error, TypeError):
        return (
            "it holds what JSON does not know. There are text, numbers, true, false, null, lists, "
            "and objects whose keys are text."
        )
    if isinstance(error, RecursionError) or "Circular" in str(error):
        return "it is nested too deeply, or holds itself."
    return "it holds a number that is infinite, or none (NaN)."

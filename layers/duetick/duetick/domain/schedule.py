"""What a schedule is, what a tick reads of it, and one firing of it."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from duetick.domain.errors import InvalidSchedule
from duetick.domain.expression import check_zone, parse
from duetick.domain.identity import (
    SCHEDULE_ORIGIN,
    check_external,
    check_key,
    check_name,
    schedule_id,
)
from duetick.domain.policies import Policies
from duetick.domain.states import Reason, State

Json: TypeAlias = bool | int | float | str | list["Json"] | dict[str, "Json"] | None

Identity: TypeAlias = tuple[str, str, int, str]
"""What names an occurrence for ever: user, key, nominal time, origin."""

LATEST: Final = 10**15
"""Later than any nominal time."""

FLOW_USER: Final = "flow:"
"""How the user of a flow's static schedules is called; nobody who proves who they are may be."""

LARGEST_INPUT: Final = 64 * 1024
LARGEST_LABELS: Final = 4 * 1024
LARGEST_PRINCIPAL: Final = 4 * 1024
LONGEST_NOTE: Final = 500


@dataclass(frozen=True, slots=True)
class Principal:
    """Whom an action runs as."""

    user_id: str
    org_id: str | None = None
    attributes: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.user_id:
            raise InvalidSchedule("principal.user_id", "must not be empty.")

    @property
    def texts(self) -> Sequence[object]:
        """All that it holds."""
        return [self.user_id, self.org_id or "", *self.attributes, *self.attributes.values()]


@dataclass(frozen=True, slots=True)
class Pause:
    """Why and since when a schedule does not fire, and from when on it does again.

    A pause without an end has disabled the schedule. One with an end has moved the start of its
    window there; `starts_at` is what the window began with before.
    """

    since: int
    note: str = ""
    until: int | None = None
    starts_at: int | None = None

    def __post_init__(self) -> None:
        if len(self.note) > LONGEST_NOTE:
            raise InvalidSchedule(
                "note", f"has {len(self.note)} characters; {LONGEST_NOTE} are allowed."
            )

    def holds(self, now: int) -> bool:
        """Whether it is not over."""
        return self.until is None or now < self.until

    def dump(self) -> str:
        """As compact JSON."""
        parts = [self.since, self.note, self.until, self.starts_at]
        return json.dumps(parts, separators=(",", ":"), ensure_ascii=False)

    @classmethod
    def load(cls, text: str | None) -> "Pause | None":
        """What `dump` wrote; None where there is none."""
        return cls(*json.loads(text)) if text else None


@dataclass(frozen=True, slots=True)
class Schedule:
    """The record of a schedule, the source of truth. Checked when it is made.

    What stands below `pause` is the store's: it sets those fields and ignores what
    a caller wrote there. `version` counts every change, `timing` those that move fire times.
    """

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
    version: int = 0
    timing: int = 0
    anchor: int = 0
    created_at: int = 0
    updated_at: int = 0
    disabled_at: int | None = None
    next_fire_at: int | None = None
    last_run_at: int | None = None
    defect: str | None = None
    runs: int = 0

    def __post_init__(self) -> None:
        check_key(self.user_id, self.key)
        check_name("flow", self.flow)
        check_name("action", self.action)
        if len(dump_input(self.input).encode()) > LARGEST_INPUT:
            raise InvalidSchedule("input", f"larger than {LARGEST_INPUT // 1024} KB as JSON.")
        if self.external_id is not None:
            check_external(self.external_id)
        for name, kind in (("policies", Policies), ("labels", Mapping)):
            if not isinstance(getattr(self, name), kind):
                got = type(getattr(self, name)).__name__
                raise InvalidSchedule(name, f"expected {kind.__name__}, got {got}.")
        if self.labels:
            _check_texts("labels", [*self.labels, *self.labels.values()], LARGEST_LABELS)
        if self.principal:
            _check_texts("principal", self.principal.texts, LARGEST_PRINCIPAL)

    @property
    def id(self) -> str:
        """`user/key`."""
        return schedule_id(self.user_id, self.key)

    @property
    def times(self) -> tuple[object, ...]:
        """What its fire times follow from, besides whether it is enabled."""
        p = self.policies
        window = (p.starts_at, p.ends_at, p.max_runs)
        return (self.cron, self.timezone, p.gap, p.repeat, *window)

    @property
    def used_up(self) -> bool:
        """Whether it has run as often as it may."""
        limit = self.policies.max_runs
        return limit is not None and self.runs >= limit

    @property
    def runs_as(self) -> Principal:
        """The principal it names, else its owner; a static one's is its flow."""
        return self.principal or Principal(self.user_id or f"{FLOW_USER}{self.flow}")


def check_timing(cron: str, timezone: str | None) -> None:
    """Raise with a helpful message unless the expression and the zone can be read."""
    parse(cron)
    if timezone is not None:
        check_zone(timezone)


def _check_texts(field: str, texts: Sequence[object], largest: int) -> None:
    """Raise unless every store can keep them beside the record."""
    size = 0
    for each in texts:
        if not isinstance(each, str):
            raise InvalidSchedule(field, f"expected texts, got {type(each).__name__}.")
        try:
            size += len(each.encode())
        except UnicodeEncodeError as error:
            raise InvalidSchedule(field, f"cannot be written as UTF-8: {error.reason}.") from None
    if size > largest:
        raise InvalidSchedule(field, f"has {size:,} bytes of text; {largest:,} are allowed.")


def dump_input(value: Json) -> str:
    """The input as compact JSON; raise where it is none."""
    try:
        text = json.dumps(value, separators=(",", ":"), allow_nan=False, ensure_ascii=False)
        text.encode()  # a lone surrogate passes as JSON, and fails in every database
    except (TypeError, ValueError) as error:
        raise InvalidSchedule("input", f"is not JSON: {error}.") from None
    return text


@dataclass(frozen=True, slots=True)
class IndexRow:
    """What a tick reads of an active schedule. Takes any text; a bad one is found at the claim."""

    user_id: str
    key: str
    cron: str
    timezone: str | None
    next_fire_at: int
    flow: str = ""
    anchor: int = 0
    timing: int = 0
    policies: Policies = field(default_factory=Policies)


@dataclass(frozen=True, slots=True)
class Occurrence:
    """One firing of one schedule, for ever named by (user_id, key, nominal_at, origin).

    A row with `range_end` stands for `count` nominal times that did not fire.
    """

    user_id: str
    key: str
    cron: str
    timezone: str | None
    nominal_at: int
    fence: int = 0
    origin: str = SCHEDULE_ORIGIN
    id: str = ""
    flow: str = ""
    state: State = State.QUEUED
    reason: Reason | None = None
    due_at: int = 0
    attempts: int = 0
    priority: int = 0
    lease_until: int | None = None
    timing: int = 0
    policies: Policies = field(default_factory=Policies)
    range_end: int | None = None
    count: int = 1
    error: str | None = None
    correlation_id: str | None = None
    idempotency_key: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    created_at: int = 0
    begun_at: int | None = None
    updated_at: int = 0

    @property
    def schedule_id(self) -> str:
        """`user/key`."""
        return schedule_id(self.user_id, self.key)

    @property
    def identity(self) -> Identity:
        """What names it, for ever."""
        return (self.user_id, self.key, self.nominal_at, self.origin)

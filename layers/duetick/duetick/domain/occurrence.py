"""The occurrence, the row that a tick reads, and the lease of an occurrence."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple, Protocol, TypeAlias

from duetick.domain.errors import ConfigurationError
from duetick.domain.identity import SCHEDULE_ORIGIN, schedule_id
from duetick.domain.policies import Policies
from duetick.domain.states import Reason, State

ScheduleName: TypeAlias = tuple[str, str]
"""The name of a schedule: user and key."""

Identity: TypeAlias = tuple[str, str, int, str]
"""The name of an occurrence, forever: user, key, nominal time, origin."""

LATEST: Final = 10**15
"""An instant later than any nominal time."""


@dataclass(frozen=True, slots=True)
class IndexRow:
    """The row of an active schedule, as a tick reads it.

    Its texts may be anything: a claim finds a text that cannot be read. A row without a flow goes
    to the flow with a resolver, or to the flow that DUETICK_ROW_FLOW names. `redefined_at` is that
    of the record; 0 means that the row has no record.
    """

    user_id: str
    key: str
    cron: str
    timezone: str | None
    next_fire_at: int
    flow: str = ""
    anchor: int = 0
    redefined_at: int = 0
    policies: Policies = field(default_factory=Policies)


class Leased(Protocol):
    """The name, flow and fence of a leased occurrence: a `Lease` or an `Occurrence`."""

    @property
    def user_id(self) -> str: ...
    @property
    def key(self) -> str: ...
    @property
    def nominal_at(self) -> int: ...
    @property
    def origin(self) -> str: ...
    @property
    def flow(self) -> str: ...
    @property
    def fence(self) -> int: ...
    @property
    def identity(self) -> Identity: ...


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to begin, settle, renew and release an occurrence while its fence is current.

    A lease without a flow is valid for an occurrence of any flow.
    """

    user_id: str
    key: str
    nominal_at: int
    origin: str
    flow: str
    fence: int

    def __post_init__(self) -> None:
        if self.fence < 1:
            raise ConfigurationError("A lease has a fence of 1 or more; a claim gives it.")

    @property
    def identity(self) -> Identity:
        """The name of the leased occurrence."""
        return (self.user_id, self.key, self.nominal_at, self.origin)


@dataclass(frozen=True, slots=True)
class NewOccurrence:
    """An occurrence that an outside caller requests. `Ledger.bring` records and leases it."""

    user_id: str
    key: str
    cron: str
    timezone: str | None
    nominal_at: int
    origin: str
    due_at: int
    flow: str = ""
    redefined_at: int = 0
    policies: Policies = field(default_factory=Policies)
    idempotency_key: str | None = None

    @property
    def schedule_id(self) -> str:
        """The id of the schedule: `user/key`."""
        return schedule_id(self.user_id, self.key)

    @property
    def identity(self) -> Identity:
        """The name that the occurrence will have."""
        return (self.user_id, self.key, self.nominal_at, self.origin)


@dataclass(frozen=True, slots=True)
class Missed:
    """A range of nominal times that do not fire."""

    first: int
    last: int
    count: int


class Death(NamedTuple):
    """The death of an occurrence, as its failure hook tells of it.

    `occurrence` is the id of the dead one. `error` is for operators; `told` is what the user may
    read of it.
    """

    occurrence: str
    origin: str
    reason: Reason
    attempts: int
    at: int
    error: str | None = None
    told: str | None = None

    def dump(self) -> str:
        """Return the death as compact JSON."""
        return json.dumps([*self], separators=(",", ":"), ensure_ascii=False)

    @classmethod
    def load(cls, text: str | None) -> "Death | None":
        """Return the death that `dump` wrote, or None for no text."""
        if not text:
            return None
        occurrence, origin, reason, *others = json.loads(text)
        return cls(occurrence, origin, Reason(reason), *others)


@dataclass(frozen=True, slots=True)
class Occurrence:
    """One firing of one schedule, named forever by (user_id, key, nominal_at, origin).

    An occurrence with `range_end` stands for `count` nominal times that did not fire. `labels` are
    those of the schedule when the occurrence began. `error` is for operators; `told` is what the
    user may read of it. A failure hook has the `death` that it tells of.
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
    redefined_at: int = 0
    policies: Policies = field(default_factory=Policies)
    range_end: int | None = None
    count: int = 1
    error: str | None = None
    idempotency_key: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    created_at: int = 0
    begun_at: int | None = None
    updated_at: int = 0
    told: str | None = None
    death: Death | None = None

    @property
    def schedule_id(self) -> str:
        """The id of the schedule: `user/key`."""
        return schedule_id(self.user_id, self.key)

    @property
    def identity(self) -> Identity:
        """The name of the occurrence, forever."""
        return (self.user_id, self.key, self.nominal_at, self.origin)


def occurrence_of(
    row: IndexRow,
    nominal_at: int,
    now: int,
    *,
    due_at: int | None = None,
    state: State = State.QUEUED,
    reason: Reason | None = None,
    fence: int = 0,
    lease_until: int | None = None,
    missed: Missed | None = None,
) -> Occurrence:
    """Return an occurrence of a row, without an id. It stands for the times that were `missed`."""
    return Occurrence(
        user_id=row.user_id,
        key=row.key,
        cron=row.cron,
        timezone=row.timezone,
        nominal_at=nominal_at,
        flow=row.flow,
        fence=fence,
        state=state,
        reason=reason,
        due_at=nominal_at if due_at is None else due_at,
        lease_until=lease_until,
        range_end=missed.last if missed else None,
        count=missed.count if missed else 1,
        priority=row.policies.priority,
        redefined_at=row.redefined_at,
        policies=row.policies,
        created_at=now,
        updated_at=now,
    )


def range_of(row: IndexRow, missed: Missed, reason: Reason, now: int) -> Occurrence:
    """Return one cancelled occurrence for all times of a range."""
    return occurrence_of(
        row, missed.first, now, state=State.CANCELLED, reason=reason, missed=missed
    )


def poison(row: IndexRow, error: Exception, now: int) -> Occurrence:
    """Return the dead occurrence of a row whose expression or zone cannot be read."""
    why = storable(str(error))
    return replace(
        occurrence_of(row, row.next_fire_at, now),
        state=State.DEAD,
        reason=Reason.POISONED,
        error=why,
        told=why,
    )


def storable(text: str) -> str:
    """Return a foreign text, such as an error's, without the characters that databases refuse."""
    return text.replace("\0", "\N{REPLACEMENT CHARACTER}").encode(errors="replace").decode()

"""What the core asks of the world: a store, a transport, a clock.

Every method that depends on the time takes `now` in milliseconds since the epoch; without it the
store asks its own clock. A store raises `StoreUnavailable` where its database does not answer, and
`SchemaOutdated` where its schema is missing.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from duetick.domain.attempts import SUCCEEDED, OnLost, Outcome, Refused
from duetick.domain.creation import Made, Repeatable
from duetick.domain.mirror import Problem
from duetick.domain.schedule import Identity, IndexRow, Occurrence, Schedule
from duetick.domain.states import State

__all__ = [
    "SUCCEEDED",
    "Begun",
    "CallerKey",
    "Clock",
    "Delivery",
    "Difference",
    "Event",
    "Index",
    "Ledger",
    "OnLost",
    "OnPoisoned",
    "Outcome",
    "Page",
    "Refused",
    "Schedules",
    "Store",
    "Transaction",
    "Transport",
]

OnPoisoned: TypeAlias = Callable[[Occurrence], object]
"""Told what was recorded of a row that cannot be read."""

Clock: TypeAlias = Callable[[], int]
"""Milliseconds since the epoch."""


@dataclass(frozen=True, slots=True)
class Page:
    """Some schedules of one user, and where the next page begins."""

    schedules: tuple[Schedule, ...]
    cursor: str | None = None


@dataclass(frozen=True, slots=True)
class Difference:
    """A schedule whose index row is not what its record asks for.

    `missing`: there is none. `stray`: there should be none. `stale`: it says something else,
    or waits for a time that the record does not ask for.
    `unreadable`: the expression or the zone cannot be read (any more).
    """

    user_id: str
    key: str
    problem: Problem


class Index(Protocol):
    """The rows that a tick reads: one for each active schedule."""

    def upsert(self, row: IndexRow) -> None:
        """Put the row, keyed on (user_id, key). Any text is taken; a bad one is found at a claim.

        What has already been fired stays fired: a row that is set back fires nothing twice.
        """

    def remove(self, user_id: str, key: str) -> None:
        """Delete the row; an absent one is no error."""

    def get(self, user_id: str, key: str) -> IndexRow | None:
        """The row, unless it is absent or poisoned."""

    def claim_due(
        self, now: int, limit: int = 100, *, ahead: int = 0, on_poisoned: OnPoisoned | None = None
    ) -> Sequence[Occurrence]:
        """Advance at most `limit` rows that are due, oldest first; record and lease what fires.

        In one transaction, or one item at a time. Rows that yield nothing do not end it early:
        an empty answer means that nothing is due. A row may yield several occurrences.
        `on_poisoned` is told of each row that cannot be read, once that is committed.
        """

    def poisoned(self, limit: int = 100, *, since: int = 0) -> Sequence[Occurrence]:
        """Rows that could not be read and left the index since then, the first first.

        The reason is their `error`.
        """

    def backlog(self, now: int, limit: int = 10_000) -> int:
        """How many rows are due, counted up to `limit`."""

    def restore(self, user_id: str, key: str, *, now: int | None = None) -> bool:
        """Put a poisoned row back with a fresh time. False where there is none.

        Raises PoisonedRow where it still cannot be read.
        """


class Schedules(Protocol):
    """The records. Each change moves the index row in the same transaction."""

    def put(
        self,
        schedule: Schedule,
        *,
        now: int | None = None,
        if_version: int | None = None,
        at_most: int | None = None,
        repeatable: Repeatable | None = None,
    ) -> Schedule:
        """Create or replace; the answer holds what the store set (version, anchor, next time).

        An unchanged schedule is left as it is. A change of timing first accounts for what was due.
        Raises VersionConflict unless the record has version `if_version`, where 0 stands for none;
        QuotaReached where it would be one more than `at_most` of its user's. Both are decided by
        the very write: of several at once, one wins. With `repeatable`, a creation is kept in mind
        by that write, until its end; VersionConflict too where another one is by that name.
        """

    def made(self, user_id: str, name: str, *, now: int | None = None) -> Made | None:
        """What the creation made that is kept in mind by that name, whatever became of it since."""

    def get(self, user_id: str, key: str) -> Schedule | None:
        """The record, or None."""

    def list(self, user_id: str, *, limit: int = 100, cursor: str | None = None) -> Page:
        """One user's, ordered by key."""

    def delete(
        self, user_id: str, key: str, *, now: int | None = None, if_version: int | None = None
    ) -> bool:
        """False where there was none. What was due is accounted for.

        Raises VersionConflict unless the record has version `if_version`.
        """

    def find_by_external(self, external_id: str) -> Schedule | None:
        """The one schedule that owns an outside id."""


@dataclass(frozen=True, slots=True)
class Begun:
    """The attempt may run. `schedule` is the record as that leaves it, None where there is none."""

    occurrence: Occurrence
    schedule: Schedule | None


@dataclass(frozen=True, slots=True)
class CallerKey:
    """An idempotency key of an outside caller's own. One run at most holds it, within its flow."""

    flow: str
    key: str
    window_ms: int


class Transaction(Protocol):
    """Writes of an action's own that are committed with the settling of its attempt, or not."""

    def run(self, sql: str, /, **params: object) -> Sequence[Sequence[object]]:
        """A statement in the store's SQL database, parameters as `:name`; or EffectsRefused."""

    def write(self, item: Mapping[str, Any], /) -> None:
        """On DynamoDB, a Put, Update, Delete or ConditionCheck as TransactWriteItems takes it.

        One that cannot be done is EffectsRefused at the end of the block.
        """


@dataclass(frozen=True, slots=True)
class Event:
    """A transition that the occurrence's own row does not tell."""

    at: int
    before: State
    after: State
    note: str


class Ledger(Protocol):
    """All occurrences and what became of them."""

    def begin(
        self,
        occurrence: Occurrence,
        *,
        now: int | None = None,
        key: CallerKey | None = None,
        on_lost: OnLost | None = None,
    ) -> Begun | Refused:
        """Take up an attempt if the fence, the schedule and the overlap policy allow it.

        One conditional write: it counts the attempt. A fence of 0 records the occurrence first
        (a caller that is not the tick), unless it is recorded already. A `key` that comes with it
        is asked first, and refuses where it is held; it is taken in the write that records, and by
        nothing else: a failure or the end of its window frees it. Any other fence needs no key.
        It ends another of its schedule that runs with its lease over.
        """

    def bring(
        self, occurrence: Occurrence, *, now: int | None = None, key: CallerKey | None = None
    ) -> Occurrence | Refused:
        """Record a caller's occurrence under a lease, for a call with its fence to begin.

        It is a new one: nothing that the caller says of state, fence or attempts is kept.
        Should that call never come, a tick finds the end of its lease. Refused where it is
        recorded already, or where the `key` is held, which is asked and taken as `begin` does.
        """

    def holds(self, key: CallerKey, *, now: int | None = None) -> Refused | None:
        """What holds a caller's own key, as `begin` would refuse for it; it is not taken here."""

    def settle(
        self, occurrence: Occurrence, outcome: Outcome, *, now: int | None = None
    ) -> Occurrence | None:
        """Write what became of a begun attempt; None where the fence is stale.

        A failure of a schedule that retries leaves it retrying until its attempts are spent.
        """

    def settling(self, occurrence: Occurrence, clock: Clock) -> AbstractContextManager[Transaction]:
        """A transaction for an action's effects: its commit settles the attempt as succeeded.

        Where the block raises, nothing is written, the settling neither. Raises LeaseLost, and
        writes nothing, where the fence is stale at the block's end, or the attempt has ended, as
        succeeded too: what is said again would be done again.
        """

    def release(
        self, occurrence: Occurrence, *, now: int | None = None, on_lost: OnLost | None = None
    ) -> bool:
        """Give back what never began: it is due again, or lost when its time is over.

        False where it began, or where another holds the fence: then nothing changes. A straggler
        that comes with the old fence is refused, so asking is always safe.
        """

    def renew(self, occurrence: Occurrence, *, now: int | None = None) -> Occurrence | None:
        """Hold a begun attempt longer; None where the fence is stale."""

    def claim_waiting(
        self, now: int, limit: int = 100, *, ahead: int = 0, on_lost: OnLost | None = None
    ) -> Sequence[Occurrence]:
        """Lease what waits: ended leases first, then due scheduled and retrying occurrences.

        With `ahead`, those too that come due by then. Those that may not be tried again become
        dead, reason `lost`, and are not in the answer.
        """

    def find(
        self,
        user_id: str | None = None,
        key: str | None = None,
        *,
        state: State | None = None,
        limit: int = 50,
        before: int | Identity | None = None,
    ) -> Sequence[Occurrence]:
        """The newest occurrences first; those of one time by user, key and origin.

        `before` is a time, and nothing of that time is found; or the identity of the last one of
        a page, and the next page goes on after it. Without a user only `state` dead, scheduled or
        retrying can be asked for, which have an index; anything else raises InvalidQuery.
        """

    def get(self, user_id: str, key: str, nominal_at: int, origin: str) -> Occurrence | None:
        """One occurrence by its identity."""

    def events(self, occurrence: Occurrence) -> Sequence[Event]:
        """The transitions beyond claim, begin and settle, oldest first."""


class Store(Protocol):
    """One database. `open_store` makes it; opening never runs DDL."""

    @property
    def index(self) -> Index:
        """The index."""

    @property
    def schedules(self) -> Schedules:
        """The records."""

    @property
    def ledger(self) -> Ledger:
        """The ledger."""

    def now(self) -> int:
        """The store's clock, unless one was given: the database's on SQL, the host's elsewhere."""

    def migrate(self) -> None:
        """Create or update the schema; safe twice and at the same time as another."""

    def check_schema(self) -> None:
        """Raise SchemaOutdated, naming the command that mends it, unless this code can use it."""

    def check(self, *, now: int | None = None) -> Sequence[Difference]:
        """Where records and index rows disagree. Good rows without a record are left alone.

        A poisoned row is `unreadable`, with a record or without; `domain.mirror.problem_of` knows
        the rest.
        """

    def rebuild(self, *, now: int | None = None) -> int:
        """Mend what `check` finds; how many rows were.

        What is `unreadable` stays: `restore`, an upsert or a change of timing brings it back.
        """

    def erase(self, user_id: str) -> int:
        """Delete everything that is kept of a user; how many schedules there were.

        Their history goes as well: nothing of it is accounted for afterwards.
        """

    def admit_run(self, user_id: str, at_most: int, *, now: int | None = None) -> bool:
        """Count a run by hand, unless the user has had `at_most` in this minute; one write decides.

        A minute begins where the clock says so.
        """

    def close(self) -> None:
        """Let go of connections. A closed store may be used again; it connects anew."""


class Transport(Protocol):
    """How an occurrence gets from a tick to dispatch."""

    def deliver(self, occurrence: Occurrence, *, timeout: float) -> "Delivery":
        """Hand it over and wait for the answer, at most `timeout` seconds. Never raises."""

    def close(self) -> None:
        """Let go of connections."""


@dataclass(frozen=True, slots=True)
class Delivery:
    """What dispatch answered: the HTTP status, 0 for a transport error."""

    status: int
    detail: str = ""

"""The ledger: what an attempt is begun with, and what became of it."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from duetick.domain.attempts import OnLost, Outcome, Refused
from duetick.domain.schedule import Identity, Occurrence, Schedule
from duetick.domain.states import State

Clock: TypeAlias = Callable[[], int]
"""Milliseconds since the epoch."""


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

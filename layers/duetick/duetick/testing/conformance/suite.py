"""The base of all parts of the suite: the store under test, its hooks, and short verbs."""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from enum import StrEnum
from typing import TypeVar

import pytest

from duetick.core.store import Store
from duetick.domain.attempts import Begun, CallerKey, Outcome, Refused
from duetick.domain.group_pauses import NO_PAUSES, Pauses
from duetick.domain.limits import NO_LIMITS, Limits
from duetick.domain.schedule import NewOccurrence, Occurrence
from duetick.domain.states import Reason, State

T = TypeVar("T")

FAILED = Outcome(State.FAILED, Reason.FAILED, "it went wrong")


class Capability(StrEnum):
    """An ability that a store may lack. Leave it out of `capabilities`: its tests are skipped."""

    LOOK_AHEAD = "look_ahead"
    THREADS = "threads"
    EXTERNAL_IDS = "external_ids"
    TRACES = "traces"
    WAIT = "wait"
    FIND_WITHOUT_USER = "find_without_user"
    MANY_UNDER_WAY = "many_under_way"
    LASTING = "lasting"
    FORGETS = "forgets"
    FAILING_WRITES = "failing_writes"
    UNMIGRATED = "unmigrated"
    UNREACHABLE = "unreachable"


OF_HOOKS = frozenset({Capability.FAILING_WRITES, Capability.UNMIGRATED, Capability.UNREACHABLE})
"""The capabilities that need the hook of the same name. It has no default."""


class StoreSuite:
    """The base of each part. Override `store`. The rest has defaults."""

    capabilities: frozenset[Capability] = frozenset(Capability) - OF_HOOKS

    @pytest.fixture
    def store(self) -> Store:
        """Return an open, migrated, empty store."""
        raise NotImplementedError(
            "Override the fixture `store` with one that gives an open, migrated, empty store."
        )

    def failing_writes(self, store: Store) -> AbstractContextManager[type[Exception]]:
        """Let each write of an occurrence fail, with an error of the type that it yields."""
        raise NotImplementedError("A store with the capability `failing_writes` overrides this.")

    def unmigrated(self, store: Store) -> Store:
        """Return a store like this one on a database that was never migrated."""
        raise NotImplementedError("A store with the capability `unmigrated` overrides this.")

    def unreachable(self, store: Store) -> Store:
        """Return a store like this one whose database does not answer."""
        raise NotImplementedError("A store with the capability `unreachable` overrides this.")

    def another(self, store: Store) -> Store:
        """Return a second store on the same database, as another process would have it."""
        return store

    def reopened(self, store: Store) -> Store:
        """Return a store on the same database with a new connection."""
        store.close()
        return store

    def needs(self, capability: Capability) -> None:
        """Skip the test, with the reason, if the store lacks a capability."""
        if capability not in self.capabilities:
            pytest.skip(f"{type(self).__name__} lacks the capability {capability.value!r}")


def only(found: Sequence[T]) -> T:
    """Return the only element."""
    assert len(found) == 1, f"expected exactly one, found {len(found)}: {found}"
    return found[0]


def must(found: T | None) -> T:
    """Return the value, which must not be None."""
    assert found is not None, "expected something, found nothing"
    return found


def begun(answer: Begun | Refused) -> Begun:
    """Return the answer to a begin that must be allowed."""
    assert isinstance(answer, Begun), f"expected to begin, got {answer}"
    return answer


def refused(answer: Begun | Occurrence | Refused) -> Refused:
    """Return the answer to a begin or a call that must be refused."""
    assert isinstance(answer, Refused), "expected to be refused, but it was not"
    return answer


def recorded(store: Store, occurrence: Occurrence) -> Occurrence:
    """Return the occurrence as the ledger has it."""
    return must(store.ledger.get(*occurrence.identity))


def run(
    store: Store, asked: NewOccurrence, now: int, key: CallerKey | None = None
) -> Begun | Refused:
    """Bring an occurrence and begin it at once, as an outside caller does."""
    leased = store.ledger.bring(asked, now=now, key=key)
    return leased if isinstance(leased, Refused) else store.ledger.begin(leased, now=now)


def start(store: Store, asked: Occurrence | NewOccurrence, now: int) -> Occurrence:
    """Begin an occurrence, leased or new to the ledger. Return it as it is under way."""
    if isinstance(asked, NewOccurrence):
        return begun(run(store, asked, now)).occurrence
    return begun(store.ledger.begin(asked, now=now)).occurrence


def drain(
    store: Store,
    now: int,
    limit: int = 100,
    *,
    ahead: int = 0,
    pauses: Pauses = NO_PAUSES,
    limits: Limits = NO_LIMITS,
) -> list[Occurrence]:
    """Claim until nothing is due, as a tick does."""
    claimed: list[Occurrence] = []
    for _ in range(1_000):
        chunk = store.index.claim_due(now, limit, ahead=ahead, pauses=pauses, limits=limits)
        if not chunk:
            return claimed
        claimed += chunk
    raise AssertionError("claim_due never comes to an end at one `now`")

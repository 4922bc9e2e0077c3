"""What every part of the suite shares: the store under test, its hooks, and short ways to act."""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from enum import StrEnum
from typing import TypeVar

import pytest

from duetick.domain.schedule import Occurrence
from duetick.domain.states import Reason, State
from duetick.ports import Begun, Outcome, Refused, Store

T = TypeVar("T")

FAILED = Outcome(State.FAILED, Reason.FAILED, "it went wrong")


class Capability(StrEnum):
    """What a store may lack. Leave it out of `capabilities`; its tests then skip out loud."""

    LOOK_AHEAD = "look_ahead"
    THREADS = "threads"
    EXTERNAL_IDS = "external_ids"
    TRACES = "traces"
    WAIT = "wait"
    FIND_WITHOUT_USER = "find_without_user"
    MANY_UNDER_WAY = "many_under_way"
    LASTING = "lasting"
    FAILING_WRITES = "failing_writes"
    UNMIGRATED = "unmigrated"
    UNREACHABLE = "unreachable"


OF_HOOKS = frozenset({Capability.FAILING_WRITES, Capability.UNMIGRATED, Capability.UNREACHABLE})
"""Each needs the hook of its name, which has no default."""


class StoreSuite:
    """The base of each part. Override `store`; the rest has defaults."""

    capabilities: frozenset[Capability] = frozenset(Capability) - OF_HOOKS

    @pytest.fixture
    def store(self) -> Store:
        """An open, migrated, empty store."""
        raise NotImplementedError(
            "Override the fixture `store` with one that gives an open, migrated, empty store."
        )

    def failing_writes(self, store: Store) -> AbstractContextManager[type[Exception]]:
        """Inside it, each write of an occurrence fails with the error whose type it yields."""
        raise NotImplementedError("A store with the capability `failing_writes` overrides this.")

    def unmigrated(self, store: Store) -> Store:
        """A store like this one on a database that was never migrated."""
        raise NotImplementedError("A store with the capability `unmigrated` overrides this.")

    def unreachable(self, store: Store) -> Store:
        """A store like this one whose database does not answer: where nobody listens, say."""
        raise NotImplementedError("A store with the capability `unreachable` overrides this.")

    def another(self, store: Store) -> Store:
        """A second store on the same database, as another process would have it."""
        return store

    def reopened(self, store: Store) -> Store:
        """The same database, seen through a connection of its own."""
        store.close()
        return store

    def needs(self, capability: Capability) -> None:
        """Skip the test, saying why, where the store lacks something."""
        if capability not in self.capabilities:
            pytest.skip(f"{type(self).__name__} lacks the capability {capability.value!r}")


def only(found: Sequence[T]) -> T:
    """The one thing that was found."""
    assert len(found) == 1, f"expected exactly one, found {len(found)}: {found}"
    return found[0]


def must(found: T | None) -> T:
    """What was found, which has to be there."""
    assert found is not None, "expected something, found nothing"
    return found


def begun(answer: Begun | Refused) -> Begun:
    """The answer of a begin that has to be allowed."""
    assert isinstance(answer, Begun), f"expected to begin, got {answer}"
    return answer


def refused(answer: Begun | Refused) -> Refused:
    """The answer of a begin that has to be refused."""
    assert isinstance(answer, Refused), "expected to be refused, but it began"
    return answer


def recorded(store: Store, occurrence: Occurrence) -> Occurrence:
    """The occurrence as the ledger has it."""
    return must(store.ledger.get(*occurrence.identity))


def start(store: Store, occurrence: Occurrence, now: int) -> Occurrence:
    """Begin it; the occurrence under way."""
    return begun(store.ledger.begin(occurrence, now=now)).occurrence


def drain(store: Store, now: int, limit: int = 100, *, ahead: int = 0) -> list[Occurrence]:
    """Claim until nothing is due, as a tick does."""
    claimed: list[Occurrence] = []
    for _ in range(1_000):
        chunk = store.index.claim_due(now, limit, ahead=ahead)
        if not chunk:
            return claimed
        claimed += chunk
    raise AssertionError("claim_due never comes to an end at one `now`")

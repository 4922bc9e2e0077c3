"""What a tick cannot see: how much is active, and what should be and is not."""

from dataclasses import dataclass
from typing import Final

from duetick.domain.policies import LAST_INSTANT
from duetick.ports import Store

EVERYTHING: Final = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Audit:
    """`unindexed` are enabled, can fire again, and have no row that a tick would find."""

    active: int
    unindexed: int


def audit(store: Store) -> Audit:
    """Count. It reads every record's name, so it is for once an hour."""
    unindexed = sum(found.problem == "missing" for found in store.check())
    return Audit(store.index.backlog(LAST_INSTANT, EVERYTHING), unindexed)

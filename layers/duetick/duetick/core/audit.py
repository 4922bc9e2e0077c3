"""What a tick cannot see: how much is active, and what should be and is not."""

from dataclasses import dataclass
from typing import Final

from duetick.ports import Store

THE_YEAR_9999: Final = 253_370_764_800_000
EVERYTHING: Final = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Audit:
    """`unindexed` are enabled, can fire again, and have no row that a tick would find."""

    active: int
    unindexed: int


def audit(store: Store) -> Audit:
    """Count. It reads every record's name, so it is for once an hour."""
    unindexed = sum(found.problem == "missing" for found in store.check())
    return Audit(store.index.backlog(THE_YEAR_9999, EVERYTHING), unindexed)
